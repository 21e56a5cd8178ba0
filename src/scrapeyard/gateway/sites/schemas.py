"""What the API takes and answers about sites."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.model.fetching import RobotsMode

SITE = r"^[a-z0-9_](?:[a-z0-9_.:-]{0,251}[a-z0-9_:])?$"
"""A registrable domain in lower case, as punycode, or an address without brackets."""


class SiteCall(BaseModel):
    """How a site is to be treated. What is left out, or null, is as the settings say for every site."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"rate": 2, "concurrency": 4, "note": "their wish"}, {"robots": "obey"}]},
    )

    rate: float | None = Field(None, ge=0, le=100_000, description="Requests a second of all workers; 0: no limit.")
    burst: int | None = Field(None, ge=1, le=10_000, description="Requests that may come at once after a rest.")
    concurrency: int | None = Field(None, ge=0, le=10_000, description="Requests in flight; 0: any number.")
    adapt: bool | None = Field(None, description="Whether 429, 503 and rising latency slow it down.")
    min_rate: float | None = Field(None, gt=0, le=100_000, description="Slowed down no further than this.")
    breaker_failures: int | None = Field(
        None, ge=1, le=1_000_000, description="Failures in a row that make us leave it alone."
    )
    breaker_ratio: float | None = Field(None, gt=0, le=1, description="Share of failures among the last that does.")
    breaker_seconds: float | None = Field(None, gt=0, le=86_400, description="For how long.")
    robots: RobotsMode | None = Field(None, description="What its robots.txt means unless the call says.")
    note: str = Field("", max_length=2000, pattern=r"^[^\x00]*$", description="For people.")


class SiteRulesDocument(SiteCall):
    """What operators wrote for a site."""

    updated_at: str


class SiteLimitsDocument(BaseModel):
    """What is in force for a site."""

    rate: float = Field(description="0: no limit.")
    burst: int
    concurrency: int = Field(description="0: any number.")
    adapt: bool
    min_rate: float
    breaker_failures: int
    breaker_ratio: float
    breaker_seconds: float
    robots: RobotsMode


class SiteStateDocument(BaseModel):
    """How a site is doing, as all workers know it."""

    rate: float | None = Field(description="In force now, slow-downs and crawl delays included; null: no limit.")
    slowed: bool = Field(description="Whether its own answers brought the rate down.")
    closed_seconds: float = Field(description="Left of what it asked for with Retry-After.")
    waiting: int = Field(description="Requests that wait for their turn.")
    in_flight: int | None = Field(description="Null: not counted, since it is not limited.")
    breaker: Literal["closed", "open", "half_open"]
    breaker_seconds: float = Field(description="Until one request may try it.")
    recent: int = Field(description="How many of the last requests `success_share` is of, 40 at most.")
    success_share: float | None
    latency_ms: float | None
    requests_a_second: float
    seen_at: str | None


class SiteDocument(BaseModel):
    """A site."""

    site: str
    limits: SiteLimitsDocument
    rules: SiteRulesDocument | None = Field(description="What operators wrote; null: nothing.")
    state: SiteStateDocument | None = Field(description="Null: it was not asked for lately.")
    more: dict[str, Any] = Field(description="What other parts know of it, by part.")


class SitePageDocument(BaseModel):
    """One page of the listing, by name."""

    sites: list[SiteDocument]
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")
