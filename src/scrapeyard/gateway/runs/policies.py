"""`policy` of a call: how hard to try, and how its fetches are made."""

from typing import Annotated, Any, Literal

from msgspec import convert
from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.model import FetchPolicy
from scrapeyard.model.fetching import CITY, COUNTRY, POOL, STATE, BackoffKind, CacheMode, RobotsMode

MOST = 10**12
_Seconds = Annotated[float, Field(ge=0, le=86_400)]


class Budget(BaseModel):
    """What the run may use up; then its fetches end as `fetch_budget`. The smaller of this and the operator's holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    requests: int | None = Field(None, ge=1, le=MOST, description="Requests to the web, redirects included.")
    megabytes: float | None = Field(None, gt=0, le=MOST, description="Received, as on the wire.")
    residential_megabytes: float | None = Field(
        None, ge=0, le=MOST, description="The part of it that came through residential or unlocking proxies."
    )
    seconds: float | None = Field(None, gt=0, le=MOST, description="Spent in requests; those at once add up.")


class Backoff(BaseModel):
    """How long to wait before another attempt, unless the site says."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: BackoffKind | None = Field(None, description="How the wait grows; default: exponential.")
    first_seconds: _Seconds | None = Field(None, description="Before the second attempt; default: 5.")
    cap_seconds: _Seconds | None = Field(None, description="No wait is longer; default: 300.")


class Policy(BaseModel):
    """How hard to try, and how. What is not given is as the scraper's manifest says, then as the operator set it."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"retries": 2, "proxy": "home", "country": "us", "budget": {"requests": 50}}]},
    )

    timeout_seconds: float | None = Field(
        None, gt=0, le=86_400, description="Shortens the scraper's own wall clock, never lengthens it."
    )
    retries: int = Field(1, ge=0, le=10, description="Further attempts after the first.")
    robots: RobotsMode | None = Field(None, description="What robots.txt means.")
    cache: CacheMode | None = Field(None, description="Which pages are kept, and where.")
    max_age_seconds: float | None = Field(None, ge=0, le=MOST, description="A kept page not older than this serves.")
    profile: Literal["chrome", "firefox", "safari", "none"] | None = Field(None, description="Browser to look like.")
    proxy: str | None = Field(None, pattern=POOL, description="Name of a pool; `none` for no proxy.")
    country: str | None = Field(None, pattern=COUNTRY, description="Where the exit is, as two letters.")
    state: str | None = Field(None, pattern=STATE, description="Its state, as two letters; needs a country.")
    city: str | None = Field(None, pattern=CITY, description="Its city; needs a country.")
    escalate: bool | None = Field(None, description="Whether a block leads to other profiles, proxies and the solver.")
    budget: Budget = Budget()
    backoff: Backoff = Backoff()


_FETCHING = frozenset(FetchPolicy.__struct_fields__)
_NOTHING = FetchPolicy()


def fetching_of(policy: Policy) -> FetchPolicy:
    """What the call says about fetching, and no more."""
    if policy.model_fields_set.isdisjoint(_FETCHING):
        return _NOTHING
    given: dict[str, Any] = policy.model_dump(include=set(_FETCHING), exclude_none=True)
    return convert(given, FetchPolicy)
