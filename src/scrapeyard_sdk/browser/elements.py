"""What a script does with the elements of a page or a frame: clicks and keys, waits, and reading.

Selectors are as Playwright reads them: CSS, `text=Next`, `xpath=//a`, `role=button[name="Buy"]`. Times are seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from scrapeyard_sdk.browser.calls import BrowserCalls, both
from scrapeyard_sdk.fetch import File, file_parts

MAX_UPLOAD = 16 * 1024 * 1024
"""Bytes of all files of one `set_input_files`."""
Button = Literal["left", "right", "middle"]
Modifiers = Sequence[Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]]
State = Literal["visible", "hidden", "attached", "detached"]


class ElementCalls(BrowserCalls):
    """Methods of pages and frames. Each raises BrowserError: `browser_step` if it cannot be done, `browser_timeout`."""

    @both
    async def click(
        self,
        selector: str,
        *,
        button: Button = "left",
        count: int = 1,
        x: float | None = None,
        y: float | None = None,
        modifiers: Modifiers = (),
        delay: float = 0,
        force: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Click an element when it is visible and still. `x` and `y`: from its upper left corner, in pixels. `delay`:
        seconds between press and release. `force`: without waiting until it can be clicked."""
        await self._do(
            "click",
            selector=selector,
            button=button,
            count=count,
            x=x,
            y=y,
            modifiers=list(modifiers),
            delay=delay,
            force=force,
            timeout=timeout,
        )

    @both
    async def dblclick(self, selector: str, *, timeout: float | None = None) -> None:
        """Click an element twice."""
        await self._do("click", selector=selector, count=2, timeout=timeout)

    @both
    async def hover(
        self, selector: str, *, x: float | None = None, y: float | None = None, timeout: float | None = None
    ) -> None:
        """Move the mouse over an element."""
        await self._do("hover", selector=selector, x=x, y=y, timeout=timeout)

    @both
    async def fill(self, selector: str, text: str, *, timeout: float | None = None) -> None:
        """Set the text of an input at once."""
        await self._do("fill", selector=selector, text=text, timeout=timeout)

    @both
    async def type(self, selector: str, text: str, *, delay: float = 0, timeout: float | None = None) -> None:
        """Type a text key by key into an element, `delay` seconds between two keys."""
        await self._do("type", selector=selector, text=text, delay=delay, timeout=timeout)

    @both
    async def press(self, selector: str, key: str, *, timeout: float | None = None) -> None:
        """Press a key or a combination (`Enter`, `Control+A`) in an element."""
        await self._do("press", selector=selector, key=key, timeout=timeout)

    @both
    async def press_key(self, key: str, *, move: Literal["press", "down", "up"] = "press") -> None:
        """Press a key where the focus is; `down` and `up` are only that half of it."""
        await self._do("press", key=key, move=move)

    @both
    async def select_option(
        self, selector: str, values: str | Sequence[str], *, timeout: float | None = None
    ) -> list[str]:
        """Choose options of a `select` by value or label. Returns the values chosen."""
        chosen = [values] if isinstance(values, str) else list(values)
        found: list[str] = (await self._do("select", selector=selector, values=chosen, timeout=timeout))[0]
        return found

    @both
    async def check(self, selector: str, *, timeout: float | None = None) -> None:
        """Set a checkbox or a radio button."""
        await self._do("check", selector=selector, timeout=timeout)

    @both
    async def uncheck(self, selector: str, *, timeout: float | None = None) -> None:
        """Clear a checkbox."""
        await self._do("check", selector=selector, checked=False, timeout=timeout)

    @both
    async def change(self, selector: str, value: str, *, timeout: float | None = None) -> None:
        """Set whatever kind of control it is: an input, a select, a checkbox (`true`), an editable element."""
        await self._do("change", selector=selector, value=value, timeout=timeout)

    @both
    async def set_input_files(self, selector: str, files: "File | list[File]", *, timeout: float | None = None) -> None:
        """Choose files for a file input: bytes, (name, bytes), (name, bytes, content type), or a list of them."""
        given = files if isinstance(files, list) else [files]
        parts, contents = [], []
        for file in given:
            name, content, kind = file_parts(file, "file")
            parts.append({"name": name, "size": len(content), "content_type": kind})
            contents.append(content)
        raw = b"".join(contents)
        if len(raw) > MAX_UPLOAD:
            raise ValueError(f"set_input_files() takes {MAX_UPLOAD} bytes at once, not {len(raw)}")
        await self._do("upload", raw, selector=selector, files=parts, timeout=timeout)

    @both
    async def scroll(
        self,
        selector: str = "",
        *,
        x: float = 0,
        y: float = 0,
        absolute: bool = False,
        to: Literal["", "top", "bottom"] = "",
        rounds: int = 1,
        timeout: float | None = None,
    ) -> int:
        """Scroll an element into view, or by `x` and `y` pixels, or `to` an end of the page. With `rounds`: so many
        times at most, until the page grows no longer. Returns how often it grew."""
        fields = {"x": x, "y": y, "absolute": absolute, "to": to, "rounds": rounds}
        value, _ = await self._do("scroll", selector=selector, timeout=timeout, **fields)
        return int(value or 0)

    @both
    async def wait_for_selector(
        self,
        selector: str,
        *,
        state: State = "visible",
        count: int | None = None,
        compare: Literal["==", ">=", "<="] = ">=",
        attributes: Mapping[str, str] | None = None,
        properties: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Wait for an element, or until so many are there; one that has these attributes and properties."""
        await self._do(
            "wait_for",
            selector=selector,
            state=state,
            count=count,
            compare=compare,
            attributes=dict(attributes or {}),
            properties=dict(properties or {}),
            timeout=timeout,
        )

    @both
    async def wait_for_text(self, text: str, *, timeout: float | None = None) -> None:
        """Wait until a text is seen anywhere."""
        await self._do("wait_for_text", text=text, timeout=timeout)

    @both
    async def wait_for_function(self, expression: str, arg: Any = None, *, timeout: float | None = None) -> None:
        """Wait until a JavaScript expression is true."""
        await self._do("wait_for_function", expression=expression, arg=arg, timeout=timeout)

    @both
    async def wait(self, seconds: float) -> None:
        """Wait so many seconds. Prefer to wait for what you need."""
        await self._do("wait", seconds=seconds)

    @both
    async def evaluate(self, expression: str, arg: Any = None, *, timeout: float | None = None) -> Any:
        """Run a JavaScript expression or function, with `arg`. Returns its value, as JSON has it."""
        return (await self._do("evaluate", expression=expression, arg=arg, timeout=timeout))[0]

    @both
    async def content(self) -> str:
        """The HTML as it is now."""
        return (await self._do("content"))[1].decode("utf-8", "replace")

    @both
    async def text(self, selector: str = "body") -> str | None:
        """The text of the first match, as it is seen; None if there is none."""
        found: str | None = await self._first(selector, "text")
        return found

    @both
    async def get_attribute(self, selector: str, name: str) -> str | None:
        """An attribute of the first match; None if there is none."""
        found: str | None = await self._first(selector, f"@{name}")
        return found

    @both
    async def is_visible(self, selector: str) -> bool:
        """Whether the first match is there and can be seen."""
        return bool(await self._first(selector, "visible"))

    @both
    async def count(self, selector: str) -> int:
        """How many elements match."""
        return len((await self._do("read", selector=selector, what="tag", limit=100_000))[0])

    @both
    async def query(self, selector: str, what: str = "text") -> Any:
        """A value of the first match, as in `query_all`; None if there is none."""
        return await self._first(selector, what)

    @both
    async def query_all(self, selector: str, what: str = "text", *, limit: int = 10_000) -> list[Any]:
        """A value of each match: `text` (as it is seen), `text_content`, `html`, `inner_html`, `value`, `checked`,
        `visible`, `box`, `tag`, or `@name` for an attribute."""
        found: list[Any] = (await self._do("read", selector=selector, what=what, limit=limit))[0]
        return found

    @both
    async def extract(self, selector: str, fields: Mapping[str, str], *, limit: int = 10_000) -> list[dict[str, Any]]:
        """A record for each match. `fields`: name and CSS selector within the match, with `::text` or `::attr(name)`
        behind it; an empty one is the match itself. A field that is not there is None."""
        found: list[dict[str, Any]]
        found, _ = await self._do("extract", selector=selector, fields=dict(fields), limit=limit)
        return found

    async def _first(self, selector: str, what: str) -> Any:
        found, _ = await self._do("read", selector=selector, what=what, limit=1)
        return found[0] if found else None
