"""Who calls: a client's name, its role, the scrapers it may call and its limits; and the keys that prove it.

The secret of a key is `sy_`, 32 random letters and digits, and six more that are their checksum:

    sy_[0-9A-Za-z]{38}

so that scanners of repositories and logs find it, and a mistyped one is refused without a look at the store.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

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
    direct_mb: float = 0.0
    """Megabytes without a proxy."""
    datacenter_mb: float = 0.0
    """Megabytes through datacenter proxies."""
    residential_mb: float = 0.0
    """Megabytes through residential proxies and unlockers."""
    browser_seconds: float = 0.0


class ClientLimits(Struct, frozen=True, kw_only=True):
    """How much a client may ask for. 0: no limit."""

    rate: float = 0.0
    """Calls per second."""
    concurrency: int = 0
    """Runs at once."""
    body_mb: float = 0.0
    """Megabytes of one call's body, within what the gateway takes."""
    daily: ClientBudget = ClientBudget()
    monthly: ClientBudget = ClientBudget()

    def over(self, default: "ClientLimits") -> "ClientLimits":
        """The same with the default's values where it has none."""
        return ClientLimits(
            rate=self.rate or default.rate,
            concurrency=self.concurrency or default.concurrency,
            body_mb=self.body_mb or default.body_mb,
            daily=_over(self.daily, default.daily),
            monthly=_over(self.monthly, default.monthly),
        )

    def or_more(self, other: "ClientLimits") -> "ClientLimits":
        """The larger of each; no limit where one of them has none."""
        return ClientLimits(
            rate=_larger(self.rate, other.rate),
            concurrency=round(_larger(self.concurrency, other.concurrency)),
            body_mb=_larger(self.body_mb, other.body_mb),
            daily=_or_more(self.daily, other.daily),
            monthly=_or_more(self.monthly, other.monthly),
        )


def _larger(one: float, other: float) -> float:
    return max(one, other) if one and other else 0


def _or_more(one: ClientBudget, other: ClientBudget) -> ClientBudget:
    names = ClientBudget.__struct_fields__
    larger: dict[str, Any] = {name: _larger(getattr(one, name), getattr(other, name)) for name in names}
    return ClientBudget(**larger)


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

PREFIX = "sy_"
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 32
_CHECKED = 6
_FORM = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM + _CHECKED}}}")
KEY_ID = r"^key_[0-9a-f]{32}$"


class ApiKey(Struct, frozen=True, kw_only=True):
    """A key as stored. The secret is not."""

    id: str
    name: str
    client: str
    """Owns what is created with it. Several keys may be of one client."""
    role: Role
    scrapers: tuple[str, ...] = ()
    limits: ClientLimits = ClientLimits()
    digest: str
    """HMAC-SHA256 of the secret, under the pepper."""
    pepper_id: str
    """Tells whether a gateway has the pepper that `digest` was made with."""
    created_at: float
    expires_at: float | None = None
    """None: never."""
    revoked_at: float | None = None
    replaced_by: str = ""
    """The key that a rotation made in its place."""
    last_used_at: float | None = None
    """To the minute."""
    changed_at: float

    @property
    def identity(self) -> Identity:
        """Who calls with it."""
        return Identity(client=self.client, role=self.role, scrapers=self.scrapers, key_id=self.id, limits=self.limits)

    def fault(self, now: float) -> str:
        """Why it cannot be used; empty if it can."""
        if self.revoked_at is not None:
            return "the key was revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "the key has expired"
        return ""

    def ending(self, at: float, successor: str) -> "ApiKey":
        """The same, replaced by another and ending no later than then."""
        until = at if self.expires_at is None else min(at, self.expires_at)
        return replace(self, expires_at=until, replaced_by=successor)


class Pepper:
    """The server's secret under which keys are hashed: a dump of the database alone does not help to guess a key."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.id = self._mac("id", "pepper")[:16]

    def digest(self, secret: str) -> str:
        """The keyed hash of a key's secret."""
        return self._mac("key", secret)

    def sign(self, use: Literal["csrf", "link", "session", "sign-in"], text: str) -> str:
        """A signature of ours, good for one use."""
        return self._mac(use, text)

    def _mac(self, use: str, text: str) -> str:
        return hmac.new(self._secret, f"{use}:{text}".encode(), hashlib.sha256).hexdigest()


def new_secret() -> str:
    """A new secret."""
    chosen = PREFIX + "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM))
    return chosen + _checksum(chosen)


def is_secret(text: str) -> bool:
    """Whether it has the form of a secret, with a checksum that fits."""
    return _FORM.fullmatch(text) is not None and text[-_CHECKED:] == _checksum(text[:-_CHECKED])


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKED):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
