"""Operations that read: JavaScript, HTML, elements, records, pictures, answers."""

from typing import Any

from msgspec import Raw
from msgspec.json import encode

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.steps.failures import step_failed, too_large
from scrapeyard.engines.browser.inside.steps.responses import KeptResponse
from scrapeyard.engines.browser.inside.steps.selectors import read_pattern
from scrapeyard.engines.browser.inside.steps.step import Step
from scrapeyard.engines.browser.port import Done

_MAX_BODIES = 64 * 1024 * 1024
_BODY_SECONDS = 5.0
"""For each body of an answer that came before; one that is still under way is as good as missing."""
_HTML = """max => {
    const kind = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + '\\n' : '';
    const html = document.documentElement ? document.documentElement.outerHTML : '';
    const status = performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0;
    const told = {url: location.href, status: status, type: document.contentType};
    return html.length > max ? null : [told, kind + html];
}"""
_READ = """(elements, [what, limit]) => elements.slice(0, limit).map(e => {
    if (what.startsWith('@')) return e.getAttribute(what.slice(1));
    if (what.startsWith('.')) return what.slice(1).split('.').reduce((value, name) => value?.[name] ?? null, e);
    switch (what) {
        case 'text': return (e.innerText ?? e.textContent ?? '').trim();
        case 'text_content': return e.textContent;
        case 'html': return e.outerHTML;
        case 'inner_html': return e.innerHTML;
        case 'value': return e.value ?? null;
        case 'checked': return e.checked ?? null;
        case 'tag': return e.tagName.toLowerCase();
        case 'visible': {
            const box = e.getBoundingClientRect();
            return box.width > 0 && box.height > 0 && getComputedStyle(e).visibility !== 'hidden';
        }
        case 'box': {
            const box = e.getBoundingClientRect();
            return {x: box.x, y: box.y, width: box.width, height: box.height};
        }
    }
})"""
_KINDS = frozenset({"text", "text_content", "html", "inner_html", "value", "checked", "tag", "visible", "box"})
_EXTRACT = """(elements, [fields, limit]) => elements.slice(0, limit).map(element => {
    const record = {};
    for (const [name, text] of fields) {
        const attribute = text.match(/::attr\\(([^)]*)\\)\\s*$/);
        const selector = text.replace(/::(text|attr\\([^)]*\\))\\s*$/, '').trim();
        const found = selector ? element.querySelector(selector) : element;
        record[name] = !found ? null : attribute ? found.getAttribute(attribute[1].trim())
            : (found.innerText ?? found.textContent ?? '').trim();
    }
    return record;
})"""


async def evaluate(step: Step, operation: do.Evaluate) -> Any:
    return await step.evaluate(operation.expression, operation.arg)


async def content(step: Step, _: do.Content) -> Any:
    async def look() -> tuple[dict[str, Any], str] | None:
        found: tuple[dict[str, Any], str] | None = await (await step.frame()).evaluate(_HTML, step.context.max_bytes)
        return found

    found = await step.read(look)
    if found is None:
        raise too_large("the page's HTML", step.context.max_bytes)
    told, html = found
    return Done(Raw(encode(told)), html.encode("utf-8", "replace"))


async def read(step: Step, operation: do.Read) -> Any:
    if not operation.what.startswith(("@", ".")) and operation.what not in _KINDS:
        raise step_failed(f"read: {operation.what!r} is none of {', '.join(sorted(_KINDS))}, @name, .name")
    return await _from_all(step, operation.selector, _READ, [operation.what, operation.limit])


async def extract(step: Step, operation: do.Extract) -> Any:
    given = [list(operation.fields.items()), operation.limit]
    return await _from_all(step, operation.selector, _EXTRACT, given)


async def _from_all(step: Step, selector: str, expression: str, arg: Any) -> Any:
    async def look() -> Any:
        return await (await step.elements(selector)).evaluate_all(expression, arg)

    return await step.read(look)


async def screenshot(step: Step, operation: do.Screenshot) -> Any:
    quality = operation.quality if operation.format == "jpeg" else None
    if operation.selector:
        element = await step.element(operation.selector)
        return Done(raw=await element.screenshot(type=operation.format, quality=quality, timeout=step.left_ms))
    return Done(
        raw=await step.page.screenshot(
            type=operation.format, quality=quality, full_page=operation.full_page, timeout=step.left_ms
        )
    )


async def pdf(step: Step, operation: do.Pdf) -> Any:
    return Done(
        raw=await step.page.pdf(
            format=operation.format, landscape=operation.landscape, print_background=operation.background
        )
    )


async def responses(step: Step, operation: do.Responses) -> Any:
    found = step.context.responses.matching(read_pattern(operation.pattern), operation.limit)
    return await with_bodies(step, found, bodies=operation.bodies)


async def with_bodies(
    step: Step, found: list[KeptResponse], *, bodies: bool = True, seconds: float = _BODY_SECONDS
) -> Done:
    """What is told of them, and their bodies one after another."""
    most = min(_MAX_BODIES, step.context.max_bytes)
    told, pieces, used = [], [], 0
    for each in found:
        body = await each.read(step.context.driver.error, seconds) if bodies else b""
        missing = body is None or used + len(body) > most
        if body and not missing:
            pieces.append(body)
            used += len(body)
        size = 0 if missing or body is None else len(body)
        told.append({**each.tell(), "size": size, **({"missing": True} if missing else {})})
    return Done(Raw(encode(told)), b"".join(pieces))
