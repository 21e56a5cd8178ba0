"""Operations that act on elements: mouse, keys, forms, files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.json import encode

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.steps.failures import step_failed, too_large
from scrapeyard.engines.browser.inside.steps.navigating import check_url
from scrapeyard.engines.browser.inside.steps.step import Step
from scrapeyard.engines.browser.port import Done

if TYPE_CHECKING:
    from patchright.async_api import Download, Locator

_LOOK_EVERY = 0.1
_GROWS_WITHIN = 2.0
"""Seconds in which a page that is scrolled to its end must grow."""
_KIND = """e => e.isContentEditable ? 'editable' : e.tagName === 'SELECT' ? 'select'
    : e.tagName === 'TEXTAREA' ? 'text' : e.tagName !== 'INPUT' ? ''
    : ['checkbox', 'radio'].includes(e.type) ? 'check'
    : e.type === 'file' ? 'file' : ['button', 'submit', 'reset', 'image'].includes(e.type) ? '' : 'text'"""
_BOX = "e => [e.offsetWidth || 0, e.offsetHeight || 0, e.clientLeft || 0, e.clientTop || 0]"
_NO = frozenset({"", "false", "off", "0", "no", "unchecked"})


async def click(step: Step, operation: do.Click) -> Any:
    element = await step.element(operation.selector)
    if operation.button == "back" or operation.button == "forward":  # noqa: PLR1714  mypy narrows by this
        await _click_aside(step, operation, element)
        return
    await element.click(
        button=operation.button,
        click_count=operation.count,
        position=await _position(step, element, operation.x, operation.y),
        modifiers=list(operation.modifiers) or None,
        delay=operation.delay * 1000,
        force=operation.force,
        timeout=step.left_ms,
    )


async def _click_aside(step: Step, operation: do.Click, element: "Locator") -> None:
    """The buttons on the side of a mouse, which the driver does not know."""
    position = await _position(step, element, operation.x, operation.y)
    await element.hover(position=position, force=operation.force, timeout=step.left_ms)
    box = await element.bounding_box(timeout=step.left_ms)
    if box is None:
        raise step_failed(f"click {operation.selector!r}: it is not visible")
    x = box["width"] / 2 if operation.x is None else operation.x
    y = box["height"] / 2 if operation.y is None else operation.y
    session = await step.context.devtools(step.tab, "click")
    pressed = {"x": box["x"] + x, "y": box["y"] + y, "button": operation.button}
    pressed |= {"clickCount": operation.count, "buttons": 8 if operation.button == "back" else 16}
    await session.send("Input.dispatchMouseEvent", {"type": "mousePressed", **pressed})
    await asyncio.sleep(operation.delay)
    await session.send("Input.dispatchMouseEvent", {"type": "mouseReleased", **pressed, "buttons": 0})


async def hover(step: Step, operation: do.Hover) -> Any:
    element = await step.element(operation.selector)
    await element.hover(position=await _position(step, element, operation.x, operation.y), timeout=step.left_ms)


async def _position(step: Step, element: "Locator", x: float | None, y: float | None) -> Any:
    """From the element's corner; its middle where only one is given. The driver counts from within the border."""
    if x is None and y is None:
        return None
    width, height, left, top = await element.evaluate(_BOX, timeout=step.left_ms)
    return {"x": (width / 2 if x is None else x) - left, "y": (height / 2 if y is None else y) - top}


async def fill(step: Step, operation: do.Fill) -> Any:
    await (await step.element(operation.selector)).fill(operation.text, timeout=step.left_ms)


async def type_text(step: Step, operation: do.Type) -> Any:
    element = await step.element(operation.selector)
    await element.press_sequentially(operation.text, delay=operation.delay * 1000, timeout=step.left_ms)


async def press(step: Step, operation: do.Press) -> Any:
    if operation.selector:
        await (await step.element(operation.selector)).focus(timeout=step.left_ms)
    keyboard = step.page.keyboard
    await {"press": keyboard.press, "down": keyboard.down, "up": keyboard.up}[operation.move](operation.key)


async def select(step: Step, operation: do.Select) -> Any:
    element = await step.element(operation.selector)
    return await element.select_option(list(operation.values), timeout=step.left_ms)


async def check(step: Step, operation: do.Check) -> Any:
    await (await step.element(operation.selector)).set_checked(operation.checked, timeout=step.left_ms)


async def change(step: Step, operation: do.Change) -> Any:
    element = await step.element(operation.selector)
    match await element.evaluate(_KIND, timeout=step.left_ms):
        case "select":
            await element.select_option(operation.value, timeout=step.left_ms)
        case "check":
            await element.set_checked(operation.value.lower() not in _NO, timeout=step.left_ms)
        case "text" | "editable":
            await element.fill(operation.value, timeout=step.left_ms)
        case "file":
            raise step_failed(f"change {operation.selector!r}: it takes files; use upload")
        case _:
            raise step_failed(f"change {operation.selector!r}: it has no value to change")


async def upload(step: Step, operation: do.Upload) -> Any:
    if sum(part.size for part in operation.files) != len(step.raw):
        raise step_failed("upload: the sizes of the files do not add up to what was sent")
    files: list[Any] = []
    at = 0
    for part in operation.files:
        data = step.raw[at : at + part.size]
        files.append({"name": part.name, "mimeType": part.content_type, "buffer": data})
        at += part.size
    element = await step.element(operation.selector)
    if await element.evaluate(_KIND, timeout=step.left_ms) == "file":
        await element.set_input_files(files, timeout=step.left_ms)
        return
    async with step.page.expect_file_chooser(timeout=step.left_ms) as waiting:
        await element.click(timeout=step.left_ms)
    await (await waiting.value).set_files(files, timeout=step.left_ms)


async def download(step: Step, operation: do.Download) -> Any:
    if bool(operation.selector) == bool(operation.url):
        raise step_failed("download: give a selector to click, or a URL")
    async with _wanted_download(step) as waiting:
        if operation.selector:
            await (await step.element(operation.selector)).click(timeout=step.left_ms)
        else:
            check_url(operation.url)
            await _open_download(step, operation.url)
        found: Download = await waiting
    try:
        return await _take(found, min(operation.max_bytes, step.context.max_bytes))
    finally:
        await found.delete()


@asynccontextmanager
async def _wanted_download(step: Step) -> "AsyncIterator[asyncio.Future[Download]]":
    wanted = step.context.want_download()
    try:
        yield wanted
    finally:
        wanted.cancel()


async def _open_download(step: Step, url: str) -> None:
    """The driver says that a URL which downloads does not open."""
    try:
        await (await step.frame()).goto(url, timeout=step.left_ms, wait_until="commit")
    except step.context.driver.error as error:
        if "Download is starting" not in str(error) and "ERR_ABORTED" not in str(error):
            raise


async def _take(found: "Download", max_bytes: int) -> Done:
    finished = asyncio.ensure_future(found.path())
    place = _place(found)
    try:
        while not finished.done():
            await asyncio.wait((finished,), timeout=_LOOK_EVERY)
            if place is not None and await asyncio.to_thread(_size, place) > max_bytes:
                await found.cancel()
                raise too_large("the download", max_bytes)
        path = await finished
    finally:
        finished.cancel()
    if await asyncio.to_thread(_size, Path(path)) > max_bytes:
        raise too_large("the download", max_bytes)
    data = await asyncio.to_thread(Path(path).read_bytes)
    told = {"name": found.suggested_filename, "url": found.url, "size": len(data)}
    return Done(Raw(encode(told)), data)


def _place(found: "Download") -> Path | None:
    """Where it grows. The driver's public way tells only when all of it is there, which may be more than fits."""
    try:
        return Path(found._impl_obj._artifact._initializer["absolutePath"])
    except (AttributeError, KeyError):
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


_SCROLL = """async (given, ...more) => {
    const [x, y, absolute, to] = more.length ? more[0] : given;
    const target = more.length ? given : document.scrollingElement || document.documentElement;
    const drawn = () => Promise.race([new Promise(f => setTimeout(f, 200)),
        new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))]);
    await drawn();
    if (to === 'again') {
        target.scrollBy({top: -target.clientHeight, behavior: 'instant'});
        await drawn();
    }
    if (to) target.scrollTo({top: to === 'top' ? 0 : target.scrollHeight, behavior: 'instant'});
    else if (absolute) target.scrollTo({left: x, top: y, behavior: 'instant'});
    else target.scrollBy({left: x, top: y, behavior: 'instant'});
    await drawn();
}"""
"""Waits until the page has drawn itself: it may watch what is in sight, and hears of it only then."""
_HEIGHT = "(e => (e.scrollHeight ? e : document.scrollingElement || document.documentElement).scrollHeight)"


async def scroll(step: Step, operation: do.Scroll) -> Any:
    moves = operation.x or operation.y or operation.absolute or operation.to
    if operation.selector and not moves:
        await (await step.element(operation.selector)).scroll_into_view_if_needed(timeout=step.left_ms)
        return None
    if not operation.to:
        await _scroll_once(step, operation, "")
        return None
    for grown in range(operation.rounds):
        height = await _in_target(step, operation, _HEIGHT)
        await _scroll_once(step, operation, operation.to)
        if operation.to == "top" or not await _grows(step, operation, height):
            return grown
    return operation.rounds


async def _grows(step: Step, operation: do.Scroll, height: float) -> bool:
    """Whether it does within a while. One that does not is left and reached once more, as people do."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    tried_again = False
    while loop.time() - began < _GROWS_WITHIN:
        if await _in_target(step, operation, _HEIGHT) > height:
            return True
        if not tried_again and loop.time() - began > _GROWS_WITHIN / 2:
            tried_again = True
            await _scroll_once(step, operation, "again")
        await asyncio.sleep(_LOOK_EVERY)
    return False


async def _scroll_once(step: Step, operation: do.Scroll, to: str) -> None:
    await _in_target(step, operation, _SCROLL, [operation.x, operation.y, operation.absolute, to])


async def _in_target(step: Step, operation: do.Scroll, expression: str, arg: Any = None) -> Any:
    """In the element, or in the page."""
    if operation.selector:
        element = await step.element(operation.selector)
        return await element.evaluate(expression, arg, timeout=step.left_ms)
    return await (await step.frame()).evaluate(expression, arg if arg is not None else {})
