"""Who calls: a client's name, its role, the scrapers it may call and its limits."""

import re
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

CLIENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
"""Names of clients. Without a dot: the ids that a client chooses for its jobs begin with its name and a dot."""


class Role(StrEnum):
    """What an identity may do; the gateway's table of permissions says it route by route."""

    CLIENT = "client"
    """Calls scrapers; sees and steers only what it owns."""
    VIEWER = "viewer"
    """Reads everything, changes nothing."""
    OPERATOR = "operator"
    """Works with everything."""
    ADMIN = "admin"
    """Also keys, settings and audit."""


class ClientBudget(Struct, frozen=True, kw_only=True):
    """What a client may use in one day or one month. 0: no limit."""

    runs: int = 0
    """Runs and items of jobs."""
    fetches: int = 0
    mb: float = 0.0
    """Megabytes received, through whatever way."""
    residential_mb: float = 0.0
    """Megabytes through residential proxies and unlockers."""
    browser_seconds: float = 0.0


class ClientLimits(Struct, frozen=True, kw_only=True):
    """How much a client may ask for. 0: no limit."""

    rate: float = 0.0
    """Calls per second."""
    concurrency: int = 0
    """Runs at once."""
    daily: ClientBudget = ClientBudget()
    monthly: ClientBudget = ClientBudget()

    def over(self, default: "ClientLimits") -> "ClientLimits":
        """The same with the default's values where it has none."""
        return ClientLimits(
            rate=self.rate or default.rate,
            concurrency=self.concurrency or default.concurrency,
            daily=_over(self.daily, default.daily),
            monthly=_over(self.monthly, default.monthly),
        )


def _over(budget: ClientBudget, default: ClientBudget) -> ClientBudget:
    names = ClientBudget.__struct_fields__
    return ClientBudget(**{name: getattr(budget, name) or getattr(default, name) for name in names})


class Identity(Struct, frozen=True, kw_only=True):
    """Who calls."""

    client: str
    """Owns what the call creates. Empty while authentication is off."""
    role: Role
    scrapers: tuple[str, ...] = ()
    """Patterns of the scrapers that it may call: `shop/*`. Empty: all."""
    key_id: str = ""
    """The key that it was recognised by; empty for other credentials."""
    limits: ClientLimits = ClientLimits()

    @property
    def sees_all(self) -> bool:
        """Whether it may look at what others own."""
        return self.role is not Role.CLIENT

    @property
    def only(self) -> str | None:
        """The owner whose things it sees; None if it sees all."""
        return None if self.sees_all else self.client

    def may_see(self, owner: str) -> bool:
        """Whether it may look at what this client owns."""
        return self.sees_all or owner == self.client

    def may_call(self, scraper: str) -> bool:
        """Whether it may call `site/task`, with or without a version."""
        scraper_id = scraper.partition("@")[0]
        return not self.scrapers or any(fnmatchcase(scraper_id, each) for each in self.scrapers)

    def scoped(self, key: str) -> str:
        """An Idempotency-Key within those of this client. Keys have no spaces, so no two are alike."""
        return f"{self.client} {key}" if self.client else key

    def job_id(self, chosen: str) -> str:
        """The id of a job for which the caller chose an id: those that clients choose begin with their name."""
        return chosen if self.sees_all else f"{self.client}.{chosen}"


def on_behalf_of(owner: str) -> Identity:
    """Who starts what a client's schedule asks for. What the client may do was checked when it made the schedule."""
    return Identity(client=owner, role=Role.OPERATOR)


EVERYONE = Identity(client="", role=Role.ADMIN)
"""Whoever calls while authentication is off. May do everything."""
NOBODY = Identity(client="(nobody)", role=Role.CLIENT)
"""A caller without credentials, on the routes that need none. No client can have this name."""
