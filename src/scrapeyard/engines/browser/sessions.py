"""Named sessions in a browser: the cookies that plain HTTP has under the same name, and the storage of pages."""

import time
from typing import Any

import msgspec

from scrapeyard.engines.http.cookies import MAX_COOKIE, MAX_COOKIES, Cookie, Sessions
from scrapeyard.errors import StoreUnavailable
from scrapeyard.store.ports.operations import SessionStore
from scrapeyard.telemetry.events import get_log

log = get_log("browser")
MAX_STORAGE = 512 * 1024
"""Bytes of the local storage of one session; more is not kept."""
_ORIGINS = msgspec.json.Decoder(list[dict[str, Any]])


class BrowserSessions:
    """Opens and keeps them for one worker."""

    def __init__(self, store: SessionStore, days: float) -> None:
        self._store = store
        self._cookies = Sessions(store, days)
        self._seconds = days * 86_400

    async def open(self, scraper_id: str, name: str) -> dict[str, Any]:
        """As Playwright's `storage_state`. Raises FetchFailed for a name that cannot be."""
        now = time.time()
        cookies = await self._cookies.open(scraper_id, name, now)
        try:
            kept = await self._store.read(scraper_id, _storage(name), now - self._seconds)
        except StoreUnavailable:
            kept = b""
        return {"cookies": [to_browser(cookie) for cookie in cookies], "origins": _ORIGINS.decode(kept or b"[]")}

    async def keep(self, scraper_id: str, name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Write what changed between the two states. What others wrote meanwhile stays."""
        if not after:
            return
        now = time.time()
        old = {cookie.place: cookie for cookie in map(from_browser, before.get("cookies", ()))}
        new = {cookie.place: cookie for cookie in map(from_browser, after.get("cookies", ())) if _fits(cookie)}
        changed = {place for place in old.keys() | new.keys() if old.get(place) != new.get(place)}
        if changed:
            set_now = [cookie for place, cookie in new.items() if place in changed][-MAX_COOKIES:]
            await self._cookies.keep(scraper_id, name, set_now, changed, now)
        origins = msgspec.json.encode(after.get("origins", []))
        if origins == msgspec.json.encode(before.get("origins", [])):
            return
        if len(origins) > MAX_STORAGE:
            log.warning("browser.storage_too_large", scraper=scraper_id, session=name, bytes=len(origins))
            return
        try:
            await self._store.change(scraper_id, _storage(name), lambda _: origins, now)
        except StoreUnavailable as error:
            log.warning("fetch.session_lost", scraper=scraper_id, session=name, error=error.message)


def to_browser(cookie: Cookie) -> dict[str, Any]:
    """As Playwright takes it."""
    return {
        "name": cookie.name,
        "value": cookie.value,
        "domain": cookie.domain if cookie.host_only else f".{cookie.domain}",
        "path": cookie.path,
        "secure": cookie.secure,
        "httpOnly": cookie.http_only,
        "expires": -1 if cookie.ends is None else cookie.ends,
        "sameSite": "Lax",
    }


def from_browser(given: dict[str, Any]) -> Cookie:
    """As it is kept."""
    domain = str(given.get("domain", ""))
    ends = given.get("expires", -1)
    return Cookie(
        name=str(given.get("name", "")),
        value=str(given.get("value", "")),
        domain=domain.lstrip(".").lower(),
        host_only=not domain.startswith("."),
        path=str(given.get("path") or "/"),
        secure=bool(given.get("secure")),
        http_only=bool(given.get("httpOnly")),
        ends=None if not isinstance(ends, int | float) or ends < 0 else float(ends),
    )


def _fits(cookie: Cookie) -> bool:
    return 0 < len((cookie.name + cookie.value).encode()) <= MAX_COOKIE


def _storage(name: str) -> str:
    """Where a session's storage is kept; no session can have this name."""
    return f"{name}:storage"
