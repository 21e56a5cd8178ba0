"""What `POST /api/scrape` takes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scrapeyard.gateway.http.names import NamesShown
from scrapeyard.gateway.http.patterns import NAME, SCRAPER_WANTED, Url
from scrapeyard.gateway.runs.policies import Policy
from scrapeyard.model import Priority

RunWebhookEvent = Literal["run.succeeded", "run.failed", "run.cancelled"]
Secret = Annotated[str, Field(min_length=16, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class RunWebhookCall(BaseModel):
    """Who is told when a run ends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Url = Field(description="Where to; private addresses are refused unless the operator allows them.")
    events: list[RunWebhookEvent] = Field(
        ["run.succeeded", "run.failed", "run.cancelled"],
        min_length=1,
        max_length=3,
        description="What is told.",
    )
    secret: Secret | None = Field(None, description="Signs what is sent, never shown; default: the operator's.")


class ScrapeCall(NamesShown):
    """A scrape to do. Give at least one of `url`, `urls` and `scraper`; `url` and `urls` exclude each other."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"url": "https://shop.example/p/1"},
                {"url": "https://shop.example/p/1", "formats": ["markdown", "tables"]},
                {
                    "url": "https://shop.example/p/1",
                    "fields": {"title": "h1", "price": {"css": ".price", "as": "price"}},
                },
                {
                    "scraper": "shop/product",
                    "input": {"url": "https://shop.example/p/1", "currency": "EUR"},
                    "wait": 10,
                },
                {
                    "scraper": "shop/product",
                    "urls": ["https://shop.example/p/1", "https://shop.example/p/2"],
                    "wait": 0,
                },
            ]
        },
    )

    url: Url | None = Field(
        None,
        description="The page. Alone it runs `builtin/page`, with `fields` `builtin/select`; with `scraper` "
        "it becomes `input.url`.",
    )
    urls: list[Url] | None = Field(None, min_length=1, max_length=100_000, description="One run for each.")
    scraper: str | None = Field(None, pattern=SCRAPER_WANTED, description="`site/task` or `site/task@version`.")
    input: dict[str, Any] = Field(default_factory=dict, description="Fits the scraper's input schema.")
    wait: float | None = Field(None, ge=0, description="Seconds to wait for the end; 0 answers at once with a handle.")
    on_timeout: Literal["continue", "cancel"] = Field(
        "continue", description="What becomes of a run that is not finished when `wait` is over."
    )
    on_disconnect: Literal["continue", "cancel"] = Field(
        "continue", description="What becomes of it when the caller hangs up while waiting."
    )
    priority: Priority | None = Field(None, description="Default: `high` for a waiting call, otherwise `normal`.")
    lane: str | None = Field(None, pattern=NAME, description="Which workers take it; default: the scraper's lane.")
    policy: Policy = Policy()
    webhook: RunWebhookCall | None = Field(None, description="Who is told when a run ends.")

    @model_validator(mode="after")
    def _names_something(self) -> "ScrapeCall":
        if self.url is None and self.urls is None and self.scraper is None:
            raise ValueError("give at least one of url, urls and scraper")
        if self.url is not None and self.urls is not None:
            raise ValueError("give url or urls, not both")
        if "url" in self.input and (self.urls is not None or self.url not in (None, self.input["url"])):
            raise ValueError("input.url and url (or urls) say different things; give one of them")
        return self
