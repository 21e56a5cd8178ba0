"""A scraper made of a recording: a script that performs its steps with `ctx.browser`, and a place for extraction."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from scrapeyard.authoring.template import check_new, write_new
from scrapeyard.builtin.replay import recording as recorded

_SCRIPT: Final = '''"""{{{{name}}}}: made of {title}."""

from typing import Any

from scrapeyard_sdk import {imports}

{helper}
async def run(ctx: Context{parameters}) -> dict[str, Any]:
    async with ctx.browser({options}) as page:
{steps}

        # Take data from the page here, for example:
        # rows = await page.extract(".product", {{"title": "h2", "price": ".price", "link": "a::attr(href)"}})
        return {{"url": await page.url(), "title": await page.title()}}
'''
_HELPER: Final = '''
async def target(page: Any, url: str) -> Any:
    """The tab or the frame that shows this URL, once there is one."""
    for _ in range(50):
        for tab in await page.tabs():
            if await tab.url() == url:
                return tab
        for frame in await page.frames():
            if frame["url"] == url:
                return page.frame(*frame["path"])
        await page.wait(0.1)
    raise Fail(f"no tab and no frame shows {url}")

'''
_MANIFEST: Final = """schema = 1
id = "{{{{id}}}}"
version = "0.1.0"
name = "{{{{name}}}}"
description = {description}
entry = "scraper.py:run"

# Hosts that the recording reaches. Add those that its pages need.
allowed_hosts = {hosts}

[output]
type = "object"
required = ["url"]
properties.url = {{ type = "string" }}

[limits]
wall_seconds = 120
cpu_seconds = 10
memory_mb = 256
"""
_BUTTONS: Final = {"auxiliary": "middle", "secondary": "right", "back": "back", "forward": "forward"}


def write_scraper(folder: Path, recording: recorded.Recording) -> list[Path]:
    """Write script and manifest into `folder`. Returns the files. Raises BadRequest if one is there, and OSError."""
    scraper_id = id_for(folder)
    script = _Script(recording)
    sources = {"scraper.py": script.text().encode(), "scraper.toml": script.manifest().encode()}
    check_new(folder, scraper_id, sources)
    return write_new(folder, scraper_id, sources)


def id_for(folder: Path) -> str:
    """`shop/order` for a folder of that name; `recorded/order` for one without a parent that can be part of an id."""
    parts = [re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in folder.parts[-2:]]
    site = parts[0] if len(parts) == 2 and parts[0] else "recorded"
    return f"{site}/{parts[-1] or 'flow'}"


class _Script:
    def __init__(self, recording: recorded.Recording) -> None:
        self._recording = recording
        self._secrets: list[str] = []
        self._targets = False
        steps = list(recording.steps)
        first = steps[0] if steps and isinstance(steps[0], recorded.SetViewport) else None
        self._window = first
        self._lines = list(self._all(steps[1:] if first else steps))

    def text(self) -> str:
        window = self._window
        options = f"width={round(window.width)}, height={round(window.height)}" if window else ""
        title = f"the recording {json.dumps(self._recording.title, ensure_ascii=False)}"
        return _SCRIPT.format(
            title=title.replace('"""', "'''"),
            imports="Context, Fail" if self._targets else "Context",
            helper=_HELPER if self._targets else "",
            parameters="".join(f", {name}: str" for name in self._secrets),
            options=options,
            steps="\n".join(f"        {line}" for line in self._lines),
        )

    def manifest(self) -> str:
        steps = self._recording.steps
        urls = [step.url for step in steps if isinstance(step, recorded.Navigate)]
        urls += [step.target for step in steps] + [event.url for step in steps for event in step.asserted_events]
        hosts = dict.fromkeys(host for url in urls if (host := urlsplit(url).hostname))
        description = json.dumps(f"Made of the recording {self._recording.title}"[:200], ensure_ascii=False)
        return _MANIFEST.format(hosts=json.dumps(list(hosts)), description=description)

    def _all(self, steps: list[recorded.AnyStep]) -> Iterator[str]:
        at = 0
        while at < len(steps):
            step, after = steps[at], steps[at + 1] if at + 1 < len(steps) else None
            if isinstance(step, recorded.KeyDown) and isinstance(after, recorded.KeyUp) and after.key == step.key:
                yield f"await {self._place(step)}.press_key({_literal(step.key)})"
                at += 1
            else:
                yield from self._lines_of(step)
            at += 1

    def _lines_of(self, step: recorded.AnyStep) -> Iterator[str]:
        if isinstance(step, recorded.CustomStep):
            yield f"# The recording has a step of an extension here: {' '.join(step.name.split())[:100]}"
            return
        if isinstance(step, recorded.ElementStep) and len(others := recorded.chains(step.selectors)[1:]):
            yield f"# or: {' '.join(others[0].split())[:100]}"
        yield f"await {self._place(step)}.{self._call(step)}"
        for event in step.asserted_events:
            if not isinstance(step, recorded.Navigate):
                where = self._place(step)
                yield (
                    f"await {where}.wait_for_url({_literal(event.url)})"
                    if event.url
                    else (f"await {where}.wait_for_load_state()")
                )

    def _place(self, step: recorded.RecordedStep) -> str:
        place = "page"
        if step.target not in ("", "main"):
            self._targets = True
            place = f"(await target(page, {_literal(step.target)}))"
        frame = step.frame if isinstance(step, recorded.FramedStep) else ()
        return f"{place}.frame({', '.join(map(str, frame))})" if frame else place

    def _call(self, step: recorded.AnyStep) -> str:
        match step:
            case recorded.Navigate():
                return _called("goto", step.url)
            case recorded.RecordedClick() | recorded.DoubleClick():
                count = 2 if isinstance(step, recorded.DoubleClick) else None
                return _called("click", _selector(step.selectors), button=_BUTTONS.get(step.button), count=count)
            case recorded.RecordedHover():
                return _called("hover", _selector(step.selectors))
            case recorded.RecordedChange():
                return f"change({_literal(_selector(step.selectors))}, {self._value(step)})"
            case recorded.RecordedScroll():
                selector = [_selector(step.selectors)] if step.selectors else []
                return _called("scroll", *selector, x=step.x, y=step.y, absolute=True)
            case recorded.KeyDown() | recorded.KeyUp():
                return _called("press_key", step.key, move="down" if isinstance(step, recorded.KeyDown) else "up")
            case recorded.SetViewport():
                return _called("set_viewport_size", round(step.width), round(step.height))
            case recorded.EmulateNetworkConditions():
                speed = {"download": step.download, "upload": step.upload, "latency": step.latency / 1000}
                return _called("set_network", **speed)
            case recorded.Close():
                return "close()"
            case recorded.WaitForExpression():
                return _called("wait_for_function", step.expression)
            case recorded.WaitForElement():
                return _wait_for(step)
        raise AssertionError(step)

    def _value(self, step: recorded.RecordedChange) -> str:
        """What is typed into a password becomes an input of the scraper."""
        if "password" not in " ".join(recorded.chains(step.selectors)).lower():
            return _literal(step.value)
        name = f"password_{len(self._secrets) + 1}" if self._secrets else "password"
        self._secrets.append(name)
        return name


def _wait_for(step: recorded.WaitForElement) -> str:
    selector = _selector(step.selectors)
    if not step.visible:
        return _called("wait_for_selector", selector, state="detached")
    count = None if (step.operator, step.count) == (">=", 1) else step.count
    compare = None if count is None else step.operator
    more = {"attributes": step.attributes or None, "properties": step.properties or None}
    return _called("wait_for_selector", selector, state="attached", count=count, compare=compare, **more)


def _selector(selectors: tuple[str | tuple[str, ...], ...]) -> str:
    return recorded.chains(selectors)[0]


def _called(name: str, /, *given: Any, **named: Any) -> str:
    words = [_literal(each) for each in given]
    words += [f"{key}={_literal(value)}" for key, value in named.items() if value is not None]
    return f"{name}({', '.join(words)})"


def _literal(value: Any) -> str:
    """As Python writes it, with double quotes where that is possible."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return repr(value)
