"""Operations that wait: for time, elements, texts, URLs, answers, states."""

import asyncio
from typing import Any

from msgspec import Raw

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.steps.reading import with_bodies
from scrapeyard.engines.browser.inside.steps.selectors import read_pattern
from scrapeyard.engines.browser.inside.steps.step import Step
from scrapeyard.engines.browser.port import Done

_LOOK_EVERY = 0.1
_COUNT = """(elements, [state, attributes, properties]) => elements.filter(e => {
    if (state === 'visible' || state === 'hidden') {
        const box = e.getBoundingClientRect();
        const seen = box.width > 0 && box.height > 0 && getComputedStyle(e).visibility !== 'hidden';
        if (seen !== (state === 'visible')) return false;
    }
    const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);
    return Object.entries(attributes).every(([name, value]) => e.getAttribute(name) === value)
        && Object.entries(properties).every(([name, value]) => same(e[name], value));
}).length"""
_HAS_TEXT = """text => {
    const flat = words => words.replace(/\\s+/g, ' ');
    return !!document.body && flat(document.body.innerText).includes(flat(text).trim());
}"""


async def wait(_: Step, operation: do.Wait) -> Any:
    await asyncio.sleep(operation.seconds)


async def wait_for(step: Step, operation: do.WaitFor) -> Any:
    if operation.count is None and not operation.attributes and not operation.properties:
        await (await step.element(operation.selector)).wait_for(state=operation.state, timeout=step.left_ms)
        return
    wanted = 1 if operation.count is None else operation.count
    given = [operation.state, operation.attributes, operation.properties]

    async def look() -> int:
        return int(await (await step.elements(operation.selector)).evaluate_all(_COUNT, given))

    while not _fits(await step.read(look), operation.compare, wanted):  # noqa: ASYNC110 - a page sends no event
        await asyncio.sleep(_LOOK_EVERY)


def _fits(found: int, compare: str, wanted: int) -> bool:
    return {"==": found == wanted, ">=": found >= wanted, "<=": found <= wanted}[compare]


async def wait_for_text(step: Step, operation: do.WaitForText) -> Any:
    """In the named frame, or in any frame of the page."""
    while True:
        frames = [await step.frame()] if operation.frame else step.page.frames
        for frame in frames:
            try:
                if await frame.evaluate(_HAS_TEXT, operation.text):
                    return
            except step.context.driver.error:
                if step.tab.is_gone:
                    raise
        await asyncio.sleep(_LOOK_EVERY)


async def wait_for_url(step: Step, operation: do.WaitForUrl) -> Any:
    frame = await step.frame()
    pattern = read_pattern(operation.pattern)
    await frame.wait_for_url(lambda url: pattern.fullmatch(url) is not None, timeout=step.left_ms, wait_until="commit")
    return frame.url


async def wait_for_response(step: Step, operation: do.WaitForResponse) -> Any:
    found = await step.context.responses.wait(read_pattern(operation.pattern), since=step.tab.acted_at)
    done = await with_bodies(step, [found], seconds=step.seconds)
    return Done(Raw(bytes(done.value)[1:-1]), done.raw)


async def wait_for_load(step: Step, operation: do.WaitForLoad) -> Any:
    if operation.state != "commit":
        await (await step.frame()).wait_for_load_state(operation.state, timeout=step.left_ms)


async def wait_for_function(step: Step, operation: do.WaitForFunction) -> Any:
    async def look() -> Any:
        return await step.evaluate(operation.expression, operation.arg)

    while not await step.read(look):  # noqa: ASYNC110 - a page sends no event
        await asyncio.sleep(_LOOK_EVERY)
