"""Reads a list that a button makes longer: presses it in a browser, again and again, and reads what is there then.

A press that adds records to those on the page leaves one list, which is read anew as a whole; a press that replaces
them begins another batch. Either way the records come in the order of the page.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser.operations import Click, Evaluate, Read, WaitFor
from scrapeyard.engines.browser.pages import Visit, context_options
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard_sdk.extract.lists.groups import MAX_NODES, MAX_RECORDS
from scrapeyard_sdk.extract.lists.more_button import says_more

MAX_SECONDS: Final = 180.0
"""From the opening of the page to the last press."""
_ANSWER_SECONDS: Final = 10.0
"""For the records of one press to come."""
_SEEN_SECONDS: Final = 2.0
"""For the button to come back."""
_CLICK_SECONDS: Final = 10.0
_SAME_SHARE: Final = 0.9
"""Of the records before a press, those that are there after it: more than that, and the list has grown."""
_SETTLED: Final = """([quiet, most]) => new Promise(done => {
    const began = performance.now();
    let last = began;
    const watch = new MutationObserver(() => { last = performance.now(); });
    watch.observe(document, {subtree: true, childList: true, characterData: true});
    const look = () => {
        const now = performance.now();
        if (now - last < quiet && now - began < most) return void setTimeout(look, 50);
        watch.disconnect();
        done([document.getElementsByTagName('*').length, (document.body?.textContent ?? '').length]);
    };
    look();
})"""
"""Waits until the page has not changed for a moment; its elements and characters."""
_SETTLE_MS: Final = (250, 2000)
_SENDING: Final = frozenset({"submit", "image", "reset"})

ReadList = Callable[[FetchResponse], Awaitable[dict[str, Any]]]
"""The parts `records` and `next_page` of a page."""


class Presses:
    """The presses of one run. After `run`, `batches` are the pages of the list, as `ReadList` gives them."""

    _visit: Visit

    def __init__(self, read: ReadList, selector: str | None, *, pages: int, limit: int) -> None:
        """`selector`: of the button; None: the one that is found."""
        self._read = read
        self._given = selector
        self._pages = pages
        self._limit = limit
        self._ends = time.perf_counter() + MAX_SECONDS
        self._list: dict[str, Any] = {}
        self._starts: list[int] = []
        self._before: list[dict[str, Any]] = []
        self._seen: set[bytes] = set()
        self._shape: Any = None
        self.count = 0
        self.url = ""
        self.warnings: list[str] = []

    async def run(self, services: Services, request: FetchRequest) -> tuple[FetchResponse, str]:
        """The page as it was first, and why it stopped. Raises FetchFailed if the page cannot be opened, or for a
        given button that cannot be pressed."""
        async with services.open_browser(context_options(request)) as perform:
            self._visit = Visit(request, perform, self._ends)
            return await self._press_all()

    async def _press_all(self) -> tuple[FetchResponse, str]:
        first = await self._visit.open()
        self.url = first.url
        self._take(await self._read(first))
        stopped = ""
        while not stopped:
            try:
                stopped = await self._go_on()
            except FetchFailed as error:
                if self._given and not self.count:
                    raise
                self.warnings.append(f"the button that loads more, after {self.count} presses: {error.message}")
                stopped = "failed"
        self.warnings += self._list.get("warnings", ())
        return first, stopped

    async def _go_on(self) -> str:
        """Press once more; why that is the end, or empty."""
        button = self._given or self._listed().get("more_button")
        if button is None or not await self._is_pressable(button):
            if self._given and not self.count:
                self.warnings.append(f"nothing that is seen, and may be pressed, matches `more`: {self._given}")
            return "button_gone" if self.count else "end"
        if reached := self._reached():
            return reached
        return "" if await self._press(button) else "no_new_records"

    @property
    def batches(self) -> list[dict[str, Any]]:
        """What each press brought, the first page first."""
        ends = [*self._starts[1:], len(self._records())]
        return [*self._before, *(self._part(start, end) for start, end in zip(self._starts, ends, strict=True))]

    def _part(self, start: int, end: int) -> dict[str, Any]:
        columns = self._listed().get("columns", {})
        return {"records": {"records": self._records()[start:end], "columns": columns}}

    def _reached(self) -> str:
        """The limit that allows no further press; empty: none."""
        if self.count + 1 >= self._pages:
            return "pages"
        if len(self._seen) >= self._limit or len(self._records()) >= MAX_RECORDS or self._elements() >= MAX_NODES:
            return "limit"
        return "seconds" if time.perf_counter() >= self._ends else ""

    def _elements(self) -> int:
        return int(self._shape[0]) if self._shape else 0

    async def _is_pressable(self, button: str) -> bool:
        """Whether it is seen and in use. Raises FetchFailed (`browser_step`) for one that sends a form."""
        try:
            await self._visit.do(WaitFor(selector=button), _SEEN_SECONDS)
        except FetchFailed as error:
            if error.reason is ExitReason.BROWSER_TIMEOUT:
                return False
            raise
        if await self._of(button, ".disabled") or await self._of(button, "@aria-disabled") == "true":
            return False
        if await self._of(button, ".form.tagName") and await self._of(button, ".type") in _SENDING:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"{button} sends a form: only a button that does not is pressed")
        if self._given:
            return True
        said = await self._of(button, "text") or await self._of(button, "@aria-label")
        return isinstance(said, str) and says_more(said)  # the page may have changed since it was read

    async def _of(self, button: str, what: str) -> Any:
        found = msgspec.json.decode((await self._visit.do(Read(selector=button, what=what, limit=1))).value)
        return found[0] if found else None

    async def _press(self, button: str) -> bool:
        """Whether new records came."""
        if self._shape is None:
            self._shape = await self._settled()
        await self._visit.do(Click(selector=button), _CLICK_SECONDS)
        self.count += 1
        ends = time.perf_counter() + _ANSWER_SECONDS
        while time.perf_counter() < ends:
            shape = await self._settled()
            if shape != self._shape:
                self._shape = shape
                if await self._has_more():
                    return True
        return await self._has_more()

    async def _settled(self) -> Any:
        done = await self._visit.do(Evaluate(expression=_SETTLED, arg=list(_SETTLE_MS)), _CLICK_SECONDS)
        return msgspec.json.decode(done.value)

    async def _has_more(self) -> bool:
        response = await self._visit.read()
        if urlsplit(response.url).hostname != urlsplit(self.url).hostname:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"it led to another site, {response.url[:200]}")
        return self._take(await self._read(response))

    def _take(self, page: dict[str, Any]) -> bool:
        """Keep the records of the page as it is now; whether there are new ones."""
        records = (page.get("records") or {}).get("records", [])
        signs = [_sign(record) for record in records]
        before = [_sign(record) for record in self._records()]
        if self._starts and self._seen.issuperset(signs):
            return False
        now = set(signs)
        if len(signs) > len(before) and sum(sign in now for sign in before) >= _SAME_SHARE * len(before):
            self._starts.append(len(before))
        else:
            self._before = self.batches if self._starts else []
            self._starts = [0]
        self._list = page
        self._seen |= now
        return True

    def _listed(self) -> dict[str, Any]:
        return self._list.get("records") or {}

    def _records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._listed().get("records", [])
        return found


def _sign(record: dict[str, Any]) -> bytes:
    """What tells a record from others, and stays the same where the rest of it changes: its title, link and image."""
    named = [record.get(name) for name in ("title", "url", "image")]
    return msgspec.json.encode(named if any(named) else record)
