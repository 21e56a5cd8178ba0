"""Performs the steps of a recording in a browser, with the meaning that they have in @puppeteer/replay."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from scrapeyard.builtin.browser_run import END_OUTPUT, STEPS_OUTPUT, BrowserRun, Outcome
from scrapeyard.builtin.replay import recording as recorded
from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser import operations as browser
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

REPLAY_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "recording": {"type": "string", "description": "Title of the recording."},
        "steps": STEPS_OUTPUT,
        **END_OUTPUT,
    },
    "required": ["recording", "steps", "performed", "url", "title"],
}
_SECONDS: Final = 5.0
"""Of a step for which the recording says nothing."""
_LOOK_EVERY: Final = 0.1
_LOOK_SECONDS: Final = 10.0
_KEY_SECONDS: Final = 0.1
"""After a key, so that the page can move the focus."""
_CLEAR_SECONDS: Final = 3.0
"""In which a click on an element that was found waits for a clear way to a place of it."""
_BUTTONS: Final[dict[str, browser.Button]] = {
    "primary": "left",
    "auxiliary": "middle",
    "secondary": "right",
    "back": "back",
    "forward": "forward",
}
_DOCUMENT: Final = "[performance.timeOrigin, location.href]"
_IS_OTHER: Final = f"(before) => JSON.stringify({_DOCUMENT}) !== JSON.stringify(before)"


async def run_replay(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    """`given` fits REPLAY_INPUT. Raises InputInvalid before a browser is opened, and FetchFailed."""
    recording = recorded.read_recording(given)
    async with services.open_browser(recording.browser) as perform:
        run = BrowserRun(services, perform, recording.screenshots, len(recording.steps))
        return await _Player(run, recording).run()


class _Player:
    def __init__(self, run: BrowserRun, recording: recorded.Recording) -> None:
        self._run = run
        self._recording = recording
        self._misread = ""
        """Why an alternative could not be tried."""
        self._ways: dict[type[recorded.RecordedStep], Callable[[Any, StepPlace], Awaitable[None]]] = {
            recorded.SetViewport: self._set_viewport,
            recorded.EmulateNetworkConditions: self._emulate_network,
            recorded.Navigate: self._navigate,
            recorded.RecordedClick: self._click,
            recorded.DoubleClick: self._click,
            recorded.RecordedHover: self._hover,
            recorded.KeyDown: self._key,
            recorded.KeyUp: self._key,
            recorded.RecordedChange: self._change,
            recorded.RecordedScroll: self._scroll,
            recorded.Close: self._close,
            recorded.WaitForElement: self._wait_for_element,
            recorded.WaitForExpression: self._wait_for_expression,
        }

    async def run(self) -> dict[str, Any]:
        try:
            for at, step in enumerate(self._recording.steps):
                async with self._run.step(f"steps[{at}]", str(step.__struct_config__.tag)) as outcome:
                    await self._perform(step, outcome)
        except FetchFailed as error:
            raise await self._run.explain(error, {}) from None
        return {"recording": self._recording.title, **await self._run.end()}

    async def _perform(self, step: recorded.RecordedStep, outcome: Outcome) -> None:
        if isinstance(step, recorded.CustomStep):
            outcome["note"] = f"skipped: {step.name[:100]} is a step of an extension"
            return
        place = StepPlace(await self._find(step), step, self._timeout(step))
        self._run.tab = place.at["tab"]
        moves = bool(step.asserted_events) and not isinstance(step, recorded.Navigate | recorded.Close)
        before = await self._run.value(browser.Evaluate(expression=_DOCUMENT, **place.look)) if moves else None
        await self._ways[type(step)](step, place)
        if moves:
            await self._wait_for_page(before, step, place)
        if not isinstance(step, recorded.Close):
            await self._compare(step, place, outcome)

    def _timeout(self, step: recorded.RecordedStep) -> float:
        given = step.timeout or self._recording.timeout
        return given / 1000 if given else _SECONDS

    def _page_timeout(self, step: recorded.RecordedStep) -> float:
        """A page that loads has the browser's time, where the recording says nothing."""
        given = step.timeout or self._recording.timeout
        return given / 1000 if given else max(_SECONDS, self._recording.browser.timeout)

    async def _find(self, step: recorded.RecordedStep) -> tuple[int, tuple[str, ...]]:
        """The tab and the frame that the step is for."""
        inner = tuple(str(place) for place in step.frame) if isinstance(step, recorded.FramedStep) else ()
        if step.target in ("", "main"):
            return 0, inner
        async for _ in _until(self._timeout(step)):
            for tab, url, path in await self._targets():
                if url == step.target:
                    return tab, (*path, *inner)
        raise FetchFailed(ExitReason.BROWSER_TIMEOUT, f"no tab and no frame shows {step.target[:500]}")

    async def _targets(self) -> list[tuple[int, str, tuple[str, ...]]]:
        found: list[tuple[int, str, tuple[str, ...]]] = []
        tabs = await self._run.value(browser.Tabs())
        found += [(each["tab"], each["url"], ()) for each in tabs]
        for each in tabs:
            frames = await self._run.value(browser.Frames(tab=each["tab"]))
            found += [(each["tab"], frame["url"], tuple(frame["path"])) for frame in frames]
        return found

    async def _wait_for_page(self, before: Any, step: recorded.RecordedStep, place: "StepPlace") -> None:
        at = {**place.at, "timeout": self._page_timeout(step)}
        try:
            await self._run.perform(browser.WaitForFunction(expression=_IS_OTHER, arg=before, **at))
        except FetchFailed as error:
            if error.reason is not ExitReason.BROWSER_TIMEOUT:
                raise
            message = f"no other page was opened within {at['timeout']:g} s, as the recording has it"
            raise FetchFailed(error.reason, message) from None
        await self._run.perform(browser.WaitForLoad(**at))

    async def _compare(self, step: recorded.RecordedStep, place: "StepPlace", outcome: Outcome) -> None:
        """Tell, or fail, if the page is another than the recorded one."""
        if not step.asserted_events:
            return
        wanted = step.asserted_events[-1]
        url, title = await self._run.value(browser.Evaluate(expression="[location.href, document.title]", **place.look))
        other = [
            f"the {name} is {found!r}, recorded was {was!r}"
            for name, found, was in (("URL", url, wanted.url), ("title", title, wanted.title))
            if was and found != was
        ]
        if other and self._recording.strict:
            raise FetchFailed(ExitReason.BROWSER_STEP, "; ".join(other)[:1000])
        if other:
            outcome["note"] = "; ".join(other)[:1000]

    async def _set_viewport(self, step: recorded.SetViewport, place: "StepPlace") -> None:
        window = browser.Viewport(
            width=round(step.width),
            height=round(step.height),
            scale=step.device_scale_factor or 1,
            mobile=step.is_mobile,
            touch=step.has_touch,
            **place.tab,
        )
        await self._run.perform(window)

    async def _emulate_network(self, step: recorded.EmulateNetworkConditions, place: "StepPlace") -> None:
        speed = max(step.download, -1), max(step.upload, -1)
        wanted = browser.Network(download=speed[0], upload=speed[1], latency=step.latency / 1000, **place.tab)
        await self._run.perform(wanted)

    async def _navigate(self, step: recorded.Navigate, place: "StepPlace") -> None:
        await self._run.perform(browser.Goto(url=step.url, **{**place.at, "timeout": self._page_timeout(step)}))

    async def _click(self, step: recorded.RecordedClick | recorded.DoubleClick, place: "StepPlace") -> None:
        selector = await self._choose(step, place)
        x, y = await self._offsets(step, selector, place)
        how: dict[str, Any] = {"selector": selector, "button": _BUTTONS[step.button]}
        how |= {"count": 2} if isinstance(step, recorded.DoubleClick) else {"delay": step.duration / 1000}
        recorded_place: dict[str, Any] = {"x": x, "y": y}
        # A recorded place may lie beside a round element; then its middle does. What covers both lets clicks through.
        for there in (recorded_place, {}) if x is not None else ({},):
            try:
                await self._run.perform(browser.Click(**how, **there, **{**place.at, "timeout": _CLEAR_SECONDS}))
            except FetchFailed as error:
                if error.reason is not ExitReason.BROWSER_TIMEOUT:
                    raise
            else:
                return
        await self._run.perform(
            browser.Click(**how, **recorded_place, force=True, **{**place.at, "timeout": _CLEAR_SECONDS})
        )

    async def _offsets(
        self, step: recorded.RecordedClick | recorded.DoubleClick, selector: str, place: "StepPlace"
    ) -> tuple[float | None, float | None]:
        """The recorded place within the element; its middle, if the element is smaller than it was."""
        if step.offset_x is None or step.offset_y is None:
            return None, None
        boxes = await self._run.value(browser.Read(selector=selector, what="box", limit=1, **place.look))
        box = boxes[0] if boxes else {"width": 0, "height": 0}
        inside = 0 <= step.offset_x <= box["width"] and 0 <= step.offset_y <= box["height"]
        return (step.offset_x, step.offset_y) if inside else (None, None)

    async def _hover(self, step: recorded.RecordedHover, place: "StepPlace") -> None:
        selector = await self._choose(step, place)
        await self._run.perform(browser.Hover(selector=selector, **place.at))

    async def _key(self, step: recorded.KeyDown | recorded.KeyUp, place: "StepPlace") -> None:
        move: Any = "down" if isinstance(step, recorded.KeyDown) else "up"
        await self._run.perform(browser.Press(key=step.key, move=move, **place.tab))
        await self._run.perform(browser.Wait(seconds=_KEY_SECONDS, **place.tab))

    async def _change(self, step: recorded.RecordedChange, place: "StepPlace") -> None:
        self._run.hide(step.value)
        selector = await self._choose(step, place)
        await self._run.perform(browser.Change(selector=selector, value=step.value, **place.at))

    async def _scroll(self, step: recorded.RecordedScroll, place: "StepPlace") -> None:
        selector = await self._choose(step, place) if step.selectors else ""
        await self._run.perform(browser.Scroll(selector=selector, x=step.x, y=step.y, absolute=True, **place.at))

    async def _close(self, step: recorded.Close, place: "StepPlace") -> None:  # noqa: ARG002  the place says which
        if place.at["frame"]:
            return
        await self._run.perform(browser.CloseTab(**place.tab))
        self._run.tab = 0

    async def _wait_for_expression(self, step: recorded.WaitForExpression, place: "StepPlace") -> None:
        await self._run.perform(browser.WaitForFunction(expression=step.expression, **place.at))

    async def _wait_for_element(self, step: recorded.WaitForElement, place: "StepPlace") -> None:
        async for _ in _until(place.left):
            if await self._is_there(step, place) == step.visible:
                return
        which = recorded.chains(step.selectors)[0]
        message = f"{which[:500]}: not {step.operator} {step.count} within {self._timeout(step):g} s"
        raise FetchFailed(ExitReason.BROWSER_TIMEOUT, message)

    async def _is_there(self, step: recorded.WaitForElement, place: "StepPlace") -> bool:
        selector, found = "", 0
        for selector in recorded.chains(step.selectors):
            found = len(await self._run.value(browser.Read(selector=selector, what="tag", **place.look)))
            if found:
                break
        if not {"==": found == step.count, ">=": found >= step.count, "<=": found <= step.count}[step.operator]:
            return False
        wanted = [(f"@{name}", value) for name, value in step.attributes.items()]
        wanted += [(f".{path}", value) for path, value in _leaves(step.properties)]
        for what, value in wanted:
            values = await self._run.value(browser.Read(selector=selector, what=what, **place.look))
            if any(each != value for each in values):
                return False
        return True

    async def _choose(self, step: recorded.ElementStep | recorded.RecordedScroll, place: "StepPlace") -> str:
        """The alternative that matches first; one that is visible, if there is one."""
        alternatives = recorded.chains(step.selectors)
        present = ""
        self._misread = ""
        async for _ in _until(place.left):
            for selector in alternatives:
                found = await self._seen(selector, place)
                if any(found[:1]):
                    return selector
                present = present or (selector if found else "")
        if present:
            return present
        why = f"; {self._misread}" if self._misread else ""
        raise FetchFailed(ExitReason.BROWSER_TIMEOUT, f"no element for {' or '.join(alternatives)[:800]}{why}")

    async def _seen(self, selector: str, place: "StepPlace") -> list[bool]:
        """Whether each match is visible. A selector that the browser does not understand matches nothing."""
        try:
            found: list[bool] = await self._run.value(
                browser.Read(selector=selector, what="visible", limit=1, **place.look)
            )
        except FetchFailed as error:
            if error.reason is not ExitReason.BROWSER_STEP:
                raise
            self._misread = error.message
            return []
        return found


class StepPlace:
    """Where a step takes place, and until when."""

    def __init__(self, found: tuple[int, tuple[str, ...]], step: recorded.RecordedStep, seconds: float) -> None:
        self.step = step
        self.tab: dict[str, Any] = {"tab": found[0]}
        self._frame = found[1]
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left; at least a little, so that what is there already is found."""
        return max(0.2, self._until - time.monotonic())

    @property
    def at(self) -> dict[str, Any]:
        """For an operation."""
        return {**self.tab, "frame": self._frame, "timeout": self.left}

    @property
    def look(self) -> dict[str, Any]:
        """For an operation that waits for nothing: on a busy machine it may take longer than the step has."""
        return {**self.at, "timeout": _LOOK_SECONDS}


async def _until(seconds: float) -> Any:
    """Rounds of looking, until the time is over; always one."""
    end = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() >= end:
            return
        await asyncio.sleep(_LOOK_EVERY)


def _leaves(properties: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with the path of its property, such as `style.color`."""
    for name, value in properties.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
