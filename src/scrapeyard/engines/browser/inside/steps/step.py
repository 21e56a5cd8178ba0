"""One operation on its way: the tab it is for, what came with it, and the time that is left."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from scrapeyard.engines.browser.inside.steps.deadline import forget, within
from scrapeyard.engines.browser.inside.steps.failures import step_failed
from scrapeyard.engines.browser.inside.steps.selectors import read_selector
from scrapeyard.engines.browser.operations import Operation

if TYPE_CHECKING:
    from patchright.async_api import Frame, Locator, Page

    from scrapeyard.engines.browser.inside.context import HeldContext, Tab

_MAX_WORDS = 200
_LOOK_EVERY = 0.1
_LEFT_SECONDS = 1.0
"""For an answer from a page that the frame has left: the driver may wait for one that never comes."""
_GONE_ELSEWHERE = ("Execution context was destroyed", "Cannot find context", "context with specified id")
T = TypeVar("T")


class Step:
    """What the functions that perform operations get."""

    def __init__(self, context: "HeldContext", tab: "Tab", operation: Operation, raw: bytes) -> None:
        self.context = context
        self.tab = tab
        self.raw = raw
        self._operation = operation
        self.seconds = context.seconds(operation)
        self._deadline = asyncio.get_running_loop().time() + self.seconds

    @property
    def page(self) -> "Page":
        """The tab's."""
        return self.tab.page

    @property
    def left_ms(self) -> float:
        """Milliseconds that are left; never 0, which the driver takes for no limit."""
        return max(1.0, (self._deadline - asyncio.get_running_loop().time()) * 1000)

    async def frame(self) -> "Frame":
        """The frame that the operation names. Raises FetchFailed where there is none."""
        frame = self.page.main_frame
        for place in self._operation.frame:
            frame = await self._child(frame, place)
        return frame

    async def element(self, selector: str) -> "Locator":
        """The first that matches."""
        return (await self.elements(selector)).first

    async def elements(self, selector: str) -> "Locator":
        """All that match."""
        return (await self.frame()).locator(self._selector(selector))

    async def read(self, look: Callable[[], Awaitable[T]]) -> T:
        """What `look` finds; again if the page goes elsewhere meanwhile. For what changes nothing."""
        while True:
            try:
                return await self._look(asyncio.ensure_future(look()))
            except TimeoutError:
                pass
            except self.context.driver.error as error:
                if self.tab.is_gone or not any(words in str(error) for words in _GONE_ELSEWHERE):
                    raise
            await asyncio.sleep(_LOOK_EVERY)

    async def _look(self, found: "asyncio.Future[T]") -> T:
        """Raises TimeoutError if the page goes elsewhere and no answer comes."""
        left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def note(_: "Frame") -> None:
            if not left.done():
                left.set_result(None)

        self.page.on("framenavigated", note)
        found.add_done_callback(forget)
        try:
            await asyncio.wait((found, left), return_when=asyncio.FIRST_COMPLETED)
            return await within(_LEFT_SECONDS, found)
        finally:
            self.page.remove_listener("framenavigated", note)
            found.cancel()

    async def evaluate(self, expression: str, arg: Any = None) -> Any:
        """In the frame, where the page's own variables are seen."""
        frame = await self.frame()
        return await frame.evaluate(expression, arg, **self.context.driver.in_page)

    def _selector(self, text: str) -> str:
        try:
            return read_selector(text)
        except ValueError as error:
            raise step_failed(f"{describe(self._operation)}: {error}") from None

    async def _child(self, frame: "Frame", place: str) -> "Frame":
        if place.isdecimal():
            children = children_of(frame)
            if int(place) < len(children):
                return children[int(place)]
            raise step_failed(f"there is no frame {place}: the page has {len(children)} there")
        element = await frame.wait_for_selector(self._selector(place), state="attached", timeout=self.left_ms)
        found = await element.content_frame() if element is not None else None
        if found is None:
            raise step_failed(f"{place!r} is no frame")
        return found


def children_of(frame: "Frame") -> "list[Frame]":
    """The frames that are there: the driver also tells of those that a navigation removed."""
    return [each for each in frame.child_frames if not each.is_detached()]


def describe(operation: Operation) -> str:
    """The operation in a few words, for messages: its name and what it is about."""
    name = type(operation).__struct_config__.tag
    about = next(
        (found for key in ("selector", "url", "pattern", "text", "key") if (found := getattr(operation, key, ""))), ""
    )
    words = str(about) if len(str(about)) <= _MAX_WORDS else f"{str(about)[:_MAX_WORDS]}…"
    return f"{name} {words!r}" if words else str(name)
