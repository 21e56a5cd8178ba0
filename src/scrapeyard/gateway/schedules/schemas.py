"""What the API takes about schedules."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from scrapeyard.dispatch.schedules.timetable import MAX_CRON
from scrapeyard.gateway.http.names import Named
from scrapeyard.gateway.http.patterns import NAME, SCRAPER_WANTED, Url
from scrapeyard.gateway.jobs.calls import TEXT, JobCall
from scrapeyard.gateway.runs.policies import Policy
from scrapeyard.gateway.runs.schemas import RunWebhookCall
from scrapeyard.model import Priority
from scrapeyard.model.schedule import Missed, Overlap

SCHEDULE_ID = r"^schedule_[0-9a-f]{32}$"
EXAMPLE_SCHEDULE = "schedule_0199f0c2a1b43f0e9d8c7b6a5f4e3d2c"
_NAME_OF_ZONE = r"^[A-Za-z0-9_+/-]{1,64}$"
_FORBID = ConfigDict(extra="forbid", frozen=True)


class ScheduledScrape(Named):
    """A single run, as `POST /api/scrape` takes it."""

    model_config = _FORBID

    url: Url | None = Field(None, description="The page. Alone it runs `builtin/page`; else it becomes `input.url`.")
    scraper: str | None = Field(None, pattern=SCRAPER_WANTED, description="`site/task` or `site/task@version`.")
    input: dict[str, Any] = Field(default_factory=dict, description="Fits the scraper's input schema.")
    priority: Priority | None = Field(None, description="Default: the scraper's, else `normal`.")
    lane: str | None = Field(None, pattern=NAME, description="Which workers take it; default: the scraper's lane.")
    policy: Policy = Policy()
    webhook: RunWebhookCall | None = Field(None, description="Who is told when a run ends.")

    @model_validator(mode="after")
    def _names_something(self) -> "ScheduledScrape":
        if self.url is None and self.scraper is None:
            raise ValueError("give at least one of url and scraper")
        if "url" in self.input and self.url not in (None, self.input["url"]):
            raise ValueError("input.url and url say different things; give one of them")
        return self


_Cron = Annotated[str, Field(min_length=1, max_length=MAX_CRON)]
_Every = Annotated[float, Field(ge=10, le=366 * 86_400, allow_inf_nan=False)]
_Zone = Annotated[str, Field(pattern=_NAME_OF_ZONE)]
_Jitter = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
_Title = Annotated[str, Field(max_length=200, pattern=TEXT)]
_CRON = "Minute, hour, day, month, weekday, in the time zone; names and `@daily`, `@hourly`, … are understood."
_EVERY = "Seconds from one start to the next; instead of `cron`."
_JITTER = "Each start is late by up to so many seconds, always the same for the same time."
_OVERLAP = "What is done when the last one still goes on: `skip`, `queue` until it has ended, or `cancel_previous`."
_MISSED = "What is done about times when no dispatcher worked: `skip` them, `run_once`, or `run_all` (the last 100)."


class ScheduleCall(Named):
    """What is to be started when. Give one of `cron` and `every_seconds`, and one of `job` and `scrape`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "nightly",
                    "cron": "30 3 * * *",
                    "time_zone": "Europe/Berlin",
                    "job": {"sitemap_url": "https://shop.example/sitemap.xml"},
                },
                {"every_seconds": 600, "scrape": {"url": "https://shop.example/"}},
            ]
        },
    )

    name: _Title = Field("", description="Name to show in lists.")
    cron: _Cron | None = Field(None, description=_CRON)
    every_seconds: _Every | None = Field(None, strict=True, description=_EVERY)
    time_zone: _Zone = Field("UTC", description="For `cron`: a name such as `Europe/Berlin`.")
    jitter_seconds: _Jitter = Field(0.0, strict=True, description=_JITTER)
    overlap: Overlap = Field("skip", description=_OVERLAP)
    missed: Missed = Field("run_once", description=_MISSED)
    paused: bool = Field(False, strict=True, description="Whether it waits for /resume.")
    job: JobCall | None = Field(None, description="As `POST /api/jobs` takes it.")
    scrape: ScheduledScrape | None = Field(None, description="As `POST /api/scrape` takes it.")

    @model_validator(mode="after")
    def _is_whole(self) -> "ScheduleCall":
        if (self.cron is None) == (self.every_seconds is None):
            raise ValueError("give one of cron and every_seconds")
        if (self.job is None) == (self.scrape is None):
            raise ValueError("give one of job and scrape")
        _check_job(self.job)
        return self


class ScheduleChange(Named):
    """What is to be different; the rest stays. A schedule of jobs stays one of jobs."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"cron": "0 4 * * *"}, {"overlap": "queue"}]}
    )

    name: _Title | None = Field(None, description="Name to show in lists.")
    cron: _Cron | None = Field(None, description=_CRON)
    every_seconds: _Every | None = Field(None, strict=True, description=_EVERY)
    time_zone: _Zone | None = Field(None, description="For `cron`.")
    jitter_seconds: _Jitter | None = Field(None, strict=True, description=_JITTER)
    overlap: Overlap | None = Field(None, description=_OVERLAP)
    missed: Missed | None = Field(None, description=_MISSED)
    paused: bool | None = Field(None, strict=True, description="As /pause and /resume.")
    job: JobCall | None = Field(None, description="Whole.")
    scrape: ScheduledScrape | None = Field(None, description="Whole.")

    @model_validator(mode="after")
    def _names_one(self) -> "ScheduleChange":
        if self.cron is not None and self.every_seconds is not None:
            raise ValueError("give one of cron and every_seconds")
        _check_job(self.job)
        return self


def _check_job(job: JobCall | None) -> None:
    if job is not None and job.job_id is not None:
        raise ValueError("job: leave job_id out; each start is a job of its own")
