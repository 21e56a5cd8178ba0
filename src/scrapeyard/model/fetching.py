"""How a run may fetch: what a call, a job or a manifest asks for, and what it may use up."""

from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

CacheMode = Literal["off", "through", "back", "around"]
RobotsMode = Literal["ignore", "obey"]
BackoffKind = Literal["linear", "exponential"]
PROFILES = ("chrome", "firefox", "safari", "none")
"""Browsers to look like."""
POOL = r"^[a-z0-9][a-z0-9_-]{0,31}$"
"""Name of a pool of proxies."""
COUNTRY = r"^[A-Za-z]{2}$"
STATE = r"^[A-Za-z]{2}$"
CITY = r"^[A-Za-z0-9][A-Za-z0-9 .'-]{0,59}$"
"""Places, as policies write them."""


class _Wishes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Wishes, each of which may be left open by its default."""

    def over(self, weaker: Self) -> Self:
        """These wishes; where one is open, the weaker one's. Field by field, also within a field that has fields."""
        if weaker == type(weaker)():
            return self
        open_fields = type(self)()
        changes: dict[str, Any] = {}
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(weaker, name)
            if isinstance(mine, _Wishes):
                changes[name] = mine.over(theirs)
            elif mine == getattr(open_fields, name):
                changes[name] = theirs
        return replace(self, **changes)


class BudgetLimits(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """What may be used up before fetching stops with `fetch_budget`. None: no limit of its own."""

    requests: int | None = None
    megabytes: float | None = None
    """Received, as on the wire."""
    residential_megabytes: float | None = None
    """The part of it that came through residential or unlocking proxies."""
    seconds: float | None = None
    """Time spent in fetches."""


class Backoff(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """How long to wait before another attempt, unless the site says. Open: 5, 10, 20, 40, … s, at most five minutes."""

    kind: BackoffKind | Literal[""] = ""
    first_seconds: float | None = None
    cap_seconds: float | None = None

    def seconds(self, attempt: int) -> float:
        """After this attempt failed (the first is 1), without jitter."""
        first = 5.0 if self.first_seconds is None else self.first_seconds
        cap = 300.0 if self.cap_seconds is None else self.cap_seconds
        times = attempt if self.kind == "linear" else 2 ** min(attempt - 1, 32)
        return min(first * times, cap)


class FetchPolicy(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
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
    backoff: Backoff = Backoff()
