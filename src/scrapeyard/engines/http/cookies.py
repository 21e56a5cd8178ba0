"""Cookies by the rules of browsers (RFC 6265), and named sessions that keep them for a scraper across runs."""

import re
from calendar import timegm
from collections.abc import Callable, Iterable, Sequence
from email.utils import parsedate_tz

import msgspec
from msgspec import Struct

from scrapeyard.engines.http.url import Target
from scrapeyard.errors import FetchFailed, StoreUnavailable
from scrapeyard.model import ExitReason
from scrapeyard.store.ports.operations import SessionChange, SessionStore
from scrapeyard.telemetry.events import get_log

MAX_COOKIES = 200
"""In one jar; the one that was set first goes."""
MAX_COOKIE = 4096
"""Bytes of name and value together."""
MAX_LIFE = 400 * 86_400.0
"""Seconds; browsers allow no more."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f;]")
_DIGITS = re.compile(r"-?[0-9]{1,15}", re.ASCII)

SiteOf = Callable[[str], str]
Place = tuple[str, str, str]
"""Name, domain and path: a later cookie with the same place takes an earlier one's."""


class Cookie(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cookie as it is kept."""

    name: str
    value: str
    domain: str
    host_only: bool = False
    """Only for that very host; otherwise also for every name below it."""
    path: str = "/"
    secure: bool = False
    http_only: bool = False
    """Scripts of a page in a browser do not see it."""
    ends: float | None = None
    """Unix seconds; None: with the session."""

    @property
    def place(self) -> Place:
        """A later cookie with the same place takes this one's."""
        return self.name, self.domain, self.path

    def goes_to(self, target: Target, now: float) -> bool:
        """Whether a request to this target carries it."""
        if (self.ends is not None and self.ends <= now) or (self.secure and not _is_secure(target)):
            return False
        return _within(target.host, self.domain, self.host_only) and _below(target.resource, self.path)


class Jar:
    """The cookies of one fetch, or of a session. `changed` are the places that were set or ended since it was made."""

    def __init__(self, site_of: SiteOf, cookies: Iterable[Cookie] = ()) -> None:
        self._site_of = site_of
        self._cookies = {cookie.place: cookie for cookie in cookies}
        self.changed: set[Place] = set()

    def __bool__(self) -> bool:
        return bool(self._cookies)

    def put(self, cookie: Cookie) -> None:
        """Without a question asked and without counting as a change: for what the platform itself brings."""
        self._cookies.setdefault(cookie.place, cookie)

    def hear(self, header: str, target: Target, now: float, *, sendable: bool = True) -> None:
        """A Set-Cookie header of an answer from this target. A cookie that cannot be sent as it came is not kept, but
        ends the one whose place it takes."""
        cookie = parse_cookie(header, target, self._site_of(target.host), now)
        if cookie is None:
            return
        self.changed.add(cookie.place)
        if sendable and (cookie.ends is None or cookie.ends > now):
            self._cookies[cookie.place] = cookie  # one that was there before stays as old as it was
        else:
            self._cookies.pop(cookie.place, None)
        if len(self._cookies) > MAX_COOKIES:
            oldest = next(iter(self._cookies))
            del self._cookies[oldest]
            self.changed.add(oldest)

    def header(self, target: Target, now: float) -> str:
        """The Cookie header for a request to this target; empty: none. Longer paths come first, then older cookies."""
        going = [cookie for cookie in self._cookies.values() if cookie.goes_to(target, now)]
        going.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in going)

    def changes(self) -> list[Cookie]:
        """The cookies that were set, the oldest first; those in `changed` that are not here have ended."""
        return [cookie for place, cookie in self._cookies.items() if place in self.changed]


def parse_cookie(header: str, target: Target, site: str, now: float) -> Cookie | None:
    """The cookie that a Set-Cookie header sets; None when it sets none. One that ends in the past takes another's place
    and is then gone. `site` is the target's registrable domain."""
    pair, *attributes = header.split(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(), value.strip()) if equals else ("", pair.strip())
    if not (name or value) or len((name + value).encode()) > MAX_COOKIE or _CONTROL.search(name + value):
        return None
    given = _attributes(attributes)
    secure = "secure" in given
    domain = _domain(given.get("domain", ""), target.host, site)
    if domain is None or (secure and not _is_secure(target)) or not _keeps_promise(name, value, given, secure):
        return None
    path = given.get("path", "")
    return Cookie(
        name=name,
        value=value,
        domain=domain or target.host,
        host_only=not domain,
        path=path if path.startswith("/") else _default_path(target.resource),
        secure=secure,
        http_only="httponly" in given,
        ends=_ends(given, now),
    )


def _attributes(parts: list[str]) -> dict[str, str]:
    split = (part.partition("=") for part in parts)
    return {name.strip().lower(): value.strip()[:1024] for name, _, value in split}


def _domain(said: str, host: str, site: str) -> str | None:
    """Empty: for the host alone; None: the cookie is refused."""
    said = said.removeprefix(".").lower()
    if not said:
        return ""
    if not _within(host, said, host_only=False):
        return None
    if said == site or said.endswith("." + site):
        return said
    return "" if said == host else None


def _keeps_promise(name: str, value: str, given: dict[str, str], secure: bool) -> bool:
    if not name and value.lower().startswith(("__host-", "__secure-")):
        return False  # on the wire it would look like one that has the name
    prefix = name.lower()
    if prefix.startswith("__host-"):
        return secure and not given.get("domain") and given.get("path") == "/"
    return secure or not prefix.startswith("__secure-")


def _ends(given: dict[str, str], now: float) -> float | None:
    if _DIGITS.fullmatch(age := given.get("max-age", "")):
        return now + min(float(age), MAX_LIFE)
    if "expires" not in given:
        return None
    moment = _moment(given["expires"])
    return None if moment is None else min(moment, now + MAX_LIFE)


def _moment(text: str) -> float | None:
    try:
        parsed = parsedate_tz(text.replace("-", " "))
        return None if parsed is None else float(timegm((*parsed[:6], 0, 0, 0))) - (parsed[9] or 0)
    except (ValueError, OverflowError, TypeError):
        return None


def _within(host: str, domain: str, host_only: bool) -> bool:
    if host == domain:
        return True
    return not host_only and host.endswith("." + domain) and not host.replace(".", "").isdigit()


def _below(resource: str, path: str) -> bool:
    asked = resource.partition("?")[0]
    return asked == path or (asked.startswith(path) and (path.endswith("/") or asked[len(path)] == "/"))


def _default_path(resource: str) -> str:
    return resource.partition("?")[0].rpartition("/")[0] or "/"


def _is_secure(target: Target) -> bool:
    return target.scheme == "https" or target.host in ("localhost", "127.0.0.1", "::1")


MAX_SESSION_BYTES = 64 * 1024
"""Of one session's cookies as JSON; those set first go."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_COOKIES = msgspec.json.Decoder(tuple[Cookie, ...])
_DAY = 86_400.0
log = get_log("engines")


class MemorySessions:
    """For one process, as long as it lives."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[float, bytes]] = {}

    async def read(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was kept since then; empty when nothing was."""
        saved_at, kept = self._kept.get((scraper_id, name), (0.0, b""))
        return kept if saved_at > saved_after else b""

    async def change(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is kept."""
        self._kept[scraper_id, name] = (now, change(self._kept.get((scraper_id, name), (0.0, b""))[1]))

    async def forget_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""
        self._kept = {place: kept for place, kept in self._kept.items() if kept[0] >= saved_before}


class Sessions:
    """Opens and keeps the sessions of one worker's scrapers."""

    def __init__(self, sessions: SessionStore, days: float) -> None:
        self._sessions = sessions
        self._seconds = days * _DAY

    async def open(self, scraper_id: str, name: str, now: float) -> list[Cookie]:
        """The cookies kept under a name, without those that have ended. Raises FetchFailed (fetch_not_allowed) for a
        name that is none.

        While the store is away there are none: a site then asks for a login, which the script sees.
        """
        if not _NAME.fullmatch(name):
            raise FetchFailed(
                ExitReason.FETCH_NOT_ALLOWED,
                f"the session {name[:80]!r} has a name that cannot be; use letters, digits, dots, dashes, at most 64",
            )
        try:
            kept = await self._sessions.read(scraper_id, name, now - self._seconds)
        except StoreUnavailable as error:
            log.warning("fetch.session_unread", scraper=scraper_id, session=name, error=error.message)
            return []
        return _alive(kept, now)

    async def keep(self, scraper_id: str, name: str, cookies: Sequence[Cookie], places: set[Place], now: float) -> None:
        """Note the cookies at these places, and that those which are not among `cookies` have ended. Others that were
        set meanwhile stay, and so does their order."""

        def change(kept: bytes) -> bytes:
            new = {cookie.place: cookie for cookie in cookies}
            merged = {cookie.place: cookie for cookie in _alive(kept, now) if cookie.place not in places - new.keys()}
            return _bounded([*(merged | new).values()])

        try:
            await self._sessions.change(scraper_id, name, change, now)
        except StoreUnavailable as error:
            log.warning("fetch.session_lost", scraper=scraper_id, session=name, error=error.message)


def _alive(kept: bytes, now: float) -> list[Cookie]:
    if not kept:
        return []
    return [cookie for cookie in _COOKIES.decode(kept) if cookie.ends is None or cookie.ends > now]


def _bounded(cookies: list[Cookie]) -> bytes:
    cookies = cookies[-MAX_COOKIES:]
    while len(packed := msgspec.json.encode(cookies)) > MAX_SESSION_BYTES:
        cookies = cookies[len(cookies) // 4 + 1 :]
    return packed if cookies else b""
