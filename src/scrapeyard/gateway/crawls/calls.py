"""The bodies of `/api/crawl` and `/api/map`. `scrapeyard crawl` reads its options by them, without a server."""

from typing import Literal

from pydantic import ConfigDict, Field

from scrapeyard.builtin import MAP, PAGE
from scrapeyard.builtin.pages.port import PARTS
from scrapeyard.gateway.http.patterns import Url
from scrapeyard.gateway.jobs.calls import TEXT, Choice, ExportCall, JobCall, WebhookCall
from scrapeyard.gateway.jobs.policies import JobPolicyCall
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.inputs.source import MAX_DEPTH, MAX_ITEMS, QueryMode, ScopeKind

_FORMATS = ("markdown",)


class CrawlCall(Choice):
    """A crawl of one site. It becomes a job, with these defaults."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"url": "https://shop.example/"},
                {"url": "https://shop.example/docs/", "scope": "path", "limit": 200, "formats": ["markdown", "links"]},
            ]
        }
    )

    url: Url = Field(description="Where to begin.")
    depth: int = Field(3, ge=0, le=MAX_DEPTH, strict=True, description="Links from the start to the farthest page.")
    limit: int = Field(1000, ge=1, le=MAX_ITEMS, strict=True, description="Maximum pages.")
    scope: ScopeKind = Field(
        "host",
        description="Which links are followed: those to the same host (`www.` or not), to the same site, or below the "
        "path of `url`.",
    )
    query: QueryMode = Field(
        "keep",
        description="The query of a link: as it is; `clean`: without utm_source and the like; `sort`: also sorted; "
        "`drop`: none.",
    )
    sitemap: bool = Field(True, strict=True, description="Whether the pages of the site's sitemaps are taken, too.")
    formats: list[Literal[PARTS]] = Field(  # type: ignore[valid-type]  # it is a tuple of texts
        list(_FORMATS), max_length=len(PARTS), description="What is read of each page beside its head and its links."
    )
    robots: Literal["ignore", "obey"] = Field("obey", description="Whether robots.txt is obeyed.")
    rate: float | None = Field(
        None, gt=0, le=100_000, description="Pages begun a second; null: as fast as the politeness of sites allows."
    )
    concurrency: int | None = Field(None, ge=1, le=100_000, description="Pages at once; null: as workers take them.")
    policy: JobPolicyCall = Field(JobPolicyCall(), description="As of a job; `robots`, `rate`, `concurrency` go first.")
    name: str = Field("", max_length=200, pattern=TEXT, description="Name to show in lists.")
    exports: list[ExportCall] = Field(
        default_factory=list, max_length=20, description="Files to be made when it has ended; `pages` is made for this."
    )
    webhook: WebhookCall | None = Field(None, description="Who is told of what happens to it.")

    def job_call(self) -> JobCall:
        """The job that it stands for."""
        own = {"robots": self.robots, "rate": self.rate, "concurrency": self.concurrency}
        policy = self.policy.model_dump(exclude_unset=True)
        policy |= {name: value for name, value in own.items() if name in self.model_fields_set or name not in policy}
        fields = {
            "scraper": PAGE,
            "start_url": self.url,
            "follow": {
                **self.model_dump(include={"depth", "limit", "scope", "query", "sitemap", "include", "exclude"}),
                "count_beyond": True,
            },
            "input": {"include": list(dict.fromkeys(["links", *self.formats]))},
            "policy": policy,
            "name": self.name,
            "exports": [export.model_dump(exclude_unset=True) for export in self.exports],
            "webhook": None if self.webhook is None else self.webhook.model_dump(exclude_unset=True),
        }
        return JobCall.model_validate(fields)


class MapCall(Choice):
    """The URLs of a site to list."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"url": "https://shop.example/"}, {"url": "https://shop.example/", "search": "lamp"}]
        }
    )

    url: Url = Field(description="A page of the site.")
    limit: int = Field(5000, ge=1, le=100_000, strict=True, description="Maximum URLs.")
    scope: ScopeKind = Field("host", description="Which URLs are listed: of the same host, site, or below the path.")
    search: str = Field("", max_length=200, description="Only URLs that contain this word.")
    sitemap: bool = Field(True, strict=True, description="Whether the site's sitemaps are read.")
    wait: float | None = Field(None, ge=0, description="Seconds to wait for the end; 0 answers at once with a handle.")

    def scrape_call(self) -> ScrapeCall:
        """The call of `builtin/map` that it stands for."""
        asked = self.model_dump(exclude={"wait"}, exclude_unset=True)
        return ScrapeCall.model_validate({"scraper": MAP, "input": asked, "wait": self.wait})
