"""Live views: pictures of pages in a browser, sent to whoever watches their run, and made only while somebody does."""

import asyncio
import time
from contextlib import aclosing, suppress

from scrapeyard.background import Background
from scrapeyard.engines.browser.port import BrowserContext
from scrapeyard.errors import BadRequest, FetchFailed, Unavailable
from scrapeyard.queues.messages import live
from scrapeyard.queues.port import Queue

LIVE_SECONDS = 6.0
"""How long one `Watch` holds; whoever watches repeats it."""


class _View:
    """One page that can be watched."""

    def __init__(self, page: BrowserContext) -> None:
        self.page = page
        self.last = b""
        """The newest picture, for whoever comes later: a page that does not change makes no new one."""
        self.sending: asyncio.Task[None] | None = None


class LiveViews:
    """The pages of one worker that can be watched, by run."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._views: dict[str, list[_View]] = {}
        self._until: dict[str, float] = {}
        self._background = Background()

    def add(self, run_id: str, page: BrowserContext) -> None:
        """It can be watched from now on."""
        self._views.setdefault(run_id, []).append(_View(page))
        if self._until.get(run_id, 0) > time.monotonic():
            self.watch(run_id)

    async def remove(self, run_id: str, page: BrowserContext) -> None:
        """It is about to close."""
        views = self._views.get(run_id, [])
        for view in [each for each in views if each.page is page]:
            views.remove(view)
            await _end(view)
        if not views:
            self._views.pop(run_id, None)
            self._until.pop(run_id, None)

    def watch(self, run_id: str) -> None:
        """Somebody watches this run for a few seconds more. Nothing happens if it is another worker's."""
        views = self._views.get(run_id)
        if not views:
            return
        self._until[run_id] = time.monotonic() + LIVE_SECONDS
        asyncio.get_running_loop().call_later(LIVE_SECONDS + 0.1, self._look_away, run_id)
        for view in views:
            if view.sending is None:
                view.sending = asyncio.create_task(self._send_all(run_id, view), name=f"live {run_id}")
            elif view.last:
                self._background.spawn(self._send(run_id, view.last), name="live view")

    def _look_away(self, run_id: str) -> None:
        """Make no more pictures once nobody watches."""
        if self._until.get(run_id, 0) <= time.monotonic():
            for view in self._views.get(run_id, ()):
                if view.sending is not None:
                    view.sending.cancel()

    async def _send_all(self, run_id: str, view: _View) -> None:
        try:
            async with aclosing(view.page.watch()) as pictures:
                async for picture in pictures:
                    view.last = picture
                    await self._send(run_id, picture)
        except FetchFailed:
            return
        finally:
            view.sending, view.last = None, b""

    async def _send(self, run_id: str, picture: bytes) -> None:
        with suppress(Unavailable, BadRequest):
            await self._queue.send(live(run_id), picture)


async def _end(view: _View) -> None:
    if view.sending is not None:
        view.sending.cancel()
        await asyncio.wait((view.sending,))
