"""Named sessions: cookies kept for a scraper across its fetches and runs, on whatever worker they happen."""

import re
from collections.abc import Sequence

import msgspec

from scrapeyard.engines.http.cookies import MAX_COOKIES, Cookie
from scrapeyard.errors import FetchFailed, StoreUnavailable
from scrapeyard.model import ExitReason
from scrapeyard.store.ports.runs import SessionChange, SessionStore
from scrapeyard.telemetry.events import get_log

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

    async def read_session(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was kept since then; empty when nothing was."""
        saved_at, kept = self._kept.get((scraper_id, name), (0.0, b""))
        return kept if saved_at > saved_after else b""

    async def change_session(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is kept."""
        self._kept[scraper_id, name] = (now, change(self._kept.get((scraper_id, name), (0.0, b""))[1]))

    async def forget_sessions_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""
        self._kept = {place: kept for place, kept in self._kept.items() if kept[0] >= saved_before}


class Sessions:
    """Opens and keeps the sessions of one worker's scrapers."""

    def __init__(self, store: SessionStore, days: float) -> None:
        self._store = store
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
            kept = await self._store.read_session(scraper_id, name, now - self._seconds)
        except StoreUnavailable as error:
            log.warning("fetch.session_unread", scraper=scraper_id, session=name, error=error.message)
            return []
        return _alive(kept, now)

    async def keep(
        self, scraper_id: str, name: str, cookies: Sequence[Cookie], places: set[tuple[str, str, str]], now: float
    ) -> None:
        """Note the cookies at these places, and that those which are not among `cookies` have ended. Others that were
        set meanwhile stay."""

        def change(kept: bytes) -> bytes:
            others = [cookie for cookie in _alive(kept, now) if cookie.place not in places]
            return _bounded([*others, *cookies])

        try:
            await self._store.change_session(scraper_id, name, change, now)
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
