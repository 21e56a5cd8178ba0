"""How a run may fetch: what a call, a job or a manifest asks for, and what it may use up."""

from typing import Literal

from msgspec import Struct

CacheMode = Literal["off", "through", "back", "around"]
RobotsMode = Literal["ignore", "obey"]


class BudgetLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be used up before fetching stops with `fetch_budget`. None: no limit of its own."""

    requests: int | None = None
    megabytes: float | None = None
    """Received, as on the wire."""
    residential_megabytes: float | None = None
    """The part of it that came through residential or unlocking proxies."""
    seconds: float | None = None
    """Time spent in fetches."""


class FetchPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run's fetches do when the script does not say. Empty and None: the platform's setting."""

    robots: RobotsMode | Literal[""] = ""
    cache: CacheMode | Literal[""] = ""
    max_age_seconds: float | None = None
    """A kept page not older than this serves."""
    profile: str = ""
    """Browser to look like."""
    proxy: str = ""
    """Name of a pool; `none` for no proxy."""
    country: str = ""
    state: str = ""
    city: str = ""
    escalate: bool | None = None
    """Whether a block leads to other profiles, proxy tiers and the solver."""
    budget: BudgetLimits = BudgetLimits()
