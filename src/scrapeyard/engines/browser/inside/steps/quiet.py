"""Waiting until the scripts of a page have what they asked for."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from patchright.async_api import Page, Request

_KINDS: Final = frozenset({"document", "script", "xhr", "fetch"})
"""Requests whose answers change what there is to read."""
_MOST_SECONDS: Final = 5.0
"""A page that never stops asking is read as it is then."""


class ScriptRequests:
    """The requests of a page's own document that are under way, from `with` on."""

    def __init__(self, page: "Page", driver_error: type[Exception]) -> None:
        self._page = page
        self._driver_error = driver_error
        self._open: set[Request] = set()
        self._changed = asyncio.Event()

    def __enter__(self) -> Self:
        self._page.on("request", self._begin)
        self._page.on("requestfinished", self._end)
        self._page.on("requestfailed", self._end)
        return self

    def __exit__(self, *_: object) -> None:
        self._page.remove_listener("request", self._begin)
        self._page.remove_listener("requestfinished", self._end)
        self._page.remove_listener("requestfailed", self._end)

    async def ended(self, quiet: float, most: float) -> None:
        """Wait until there have been none for `quiet` seconds; 5 seconds at most, or `most` if that is less."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(most, _MOST_SECONDS)):
                while self._open or await self._changes_within(quiet):
                    if self._open:
                        await self._change()

    async def _changes_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._change()
                return True
        return False

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _begin(self, request: "Request") -> None:
        with suppress(self._driver_error):  # a service worker's has no frame
            if request.resource_type in _KINDS and request.frame == self._page.main_frame:
                self._open.add(request)
                self._changed.set()

    def _end(self, request: "Request") -> None:
        self._open.discard(request)
        self._changed.set()
