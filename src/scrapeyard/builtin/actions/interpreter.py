"""Performs the steps of `builtin/actions` in a browser."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urljoin

import msgspec

from scrapeyard.builtin.actions import steps as to_do
from scrapeyard.builtin.actions.check import read_actions, walk
from scrapeyard.builtin.actions.variables import Variables, compare
from scrapeyard.builtin.browser_run import END_OUTPUT, STEPS_OUTPUT, BrowserRun
from scrapeyard.builtin.services import Services
from scrapeyard.builtin.struct_schemas import input_schema
from scrapeyard.engines.browser import operations as browser
from scrapeyard.engines.browser.inside.steps.selectors import read_pattern
from scrapeyard.engines.port import FetchRequest
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

MAX_DATA: Final = 10 * 1024 * 1024
"""Bytes of what is extracted, as JSON."""
ACTIONS_INPUT: dict[str, Any] = input_schema(to_do.ActionsInput, ("then", "else", "steps"))
ACTIONS_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "data": {"type": "object", "description": "What was extracted, by the names of the steps."},
        "steps": STEPS_OUTPUT,
        **END_OUTPUT,
    },
    "required": ["data", "steps", "performed", "url", "title"],
}
_SHOWS: Final = "(text) => !!document.body && document.body.innerText.includes(text)"
_OPERATIONS: Final[dict[type[to_do.ActionStep], type[browser.Operation]]] = {
    to_do.GotoStep: browser.Goto,
    to_do.BackStep: browser.Back,
    to_do.ForwardStep: browser.Forward,
    to_do.ReloadStep: browser.Reload,
    to_do.ClickStep: browser.Click,
    to_do.HoverStep: browser.Hover,
    to_do.FillStep: browser.Fill,
    to_do.TypeStep: browser.Type,
    to_do.PressStep: browser.Press,
    to_do.SelectStep: browser.Select,
    to_do.CheckStep: browser.Check,
    to_do.UncheckStep: browser.Check,
    to_do.ScrollStep: browser.Scroll,
    to_do.DialogsStep: browser.Dialogs,
}
"""Steps that are one operation with fields of the same names."""


async def run_actions(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    """`given` fits ACTIONS_INPUT. Raises InputInvalid before a browser is opened, and FetchFailed."""
    asked = read_actions(given)
    total = sum(1 for _ in walk(asked)) + bool(asked.url)
    async with services.open_browser(asked.browser) as perform:
        run = BrowserRun(services, perform, asked.screenshots, total)
        return await Interpreter(run, asked).run()


class Interpreter:
    """Performs the steps of one input in one context."""

    def __init__(self, run: BrowserRun, asked: to_do.ActionsInput) -> None:
        self._run = run
        self._asked = asked
        self._variables = Variables(asked.variables)
        self._data_bytes = 0
        self._ways: dict[type[to_do.ActionStep], Callable[[Any, str], Awaitable[None]]] = {
            to_do.GotoStep: self._goto,
            to_do.UncheckStep: self._uncheck,
            to_do.UploadStep: self._upload,
            to_do.DownloadStep: self._download,
            to_do.WaitForStep: self._wait_for,
            to_do.ExtractStep: self._extract,
            to_do.ScreenshotStep: self._screenshot,
            to_do.PdfStep: self._pdf,
            to_do.EvaluateStep: self._evaluate,
            to_do.SwitchTabStep: self._switch_tab,
            to_do.CloseTabStep: self._close_tab,
            to_do.SetStep: self._set,
            to_do.IfStep: self._if,
            to_do.WhileStep: self._while,
            to_do.ForEachStep: self._for_each,
            to_do.SolveCaptchaStep: self._solve_captcha,
        }

    async def run(self) -> dict[str, Any]:
        """What `builtin/actions` returns. Raises FetchFailed with what was done before."""
        data = self._variables.data
        try:
            if self._asked.url:
                await self._perform(to_do.GotoStep(url=self._asked.url), "url")
            await self._all(self._asked.steps, "steps")
        except FetchFailed as error:
            raise await self._run.explain(error, data) from None
        return {"data": data, **await self._run.end()}

    async def _all(self, steps: tuple[to_do.Step, ...], path: str) -> None:
        for at, step in enumerate(steps):
            await self._perform(step, f"{path}[{at}]")

    async def _perform(self, step: to_do.ActionStep, path: str) -> None:
        name = str(step.__struct_config__.tag)
        plain = not to_do.nested(step) and not isinstance(step, to_do.SetStep)
        async with self._run.step(path, name, optional=step.optional, shown=plain):
            await self._ways.get(type(step), self._same)(step, path)

    async def _same(self, step: to_do.ActionStep, _path: str) -> None:
        await self._run.perform(self._operation(step))

    def _operation(self, step: to_do.ActionStep, **changes: Any) -> browser.Operation:
        kind = _OPERATIONS[type(step)]
        fields = {name: self._filled(getattr(step, name)) for name in kind.__struct_fields__ if hasattr(step, name)}
        if isinstance(step, to_do.FillStep | to_do.TypeStep):
            self._run.hide(fields["text"])
        return kind(**{**fields, "tab": self._run.tab, **changes})

    def _filled(self, value: Any) -> Any:
        """A field of a step with its variables in place. What was a text stays one."""
        if isinstance(value, str):
            return self._variables.text(value)
        if isinstance(value, tuple):
            return tuple(self._filled(each) for each in value)
        if isinstance(value, dict):
            return {key: self._filled(each) for key, each in value.items()}
        return value

    def _at(self, step: to_do.ActionStep) -> dict[str, Any]:
        """Where an operation takes place, and how long it may take."""
        return {"tab": self._run.tab, "frame": self._filled(step.frame), "timeout": step.timeout}

    async def _goto(self, step: to_do.GotoStep, _path: str) -> None:
        url = self._variables.text(step.url)
        if "://" not in url and not url.startswith(("about:", "data:", "javascript:")):
            url = urljoin(await self._url(), url)
        await self._run.perform(self._operation(step, url=url))

    async def _uncheck(self, step: to_do.UncheckStep, _path: str) -> None:
        await self._run.perform(self._operation(step, checked=False))

    async def _upload(self, step: to_do.UploadStep, _path: str) -> None:
        parts, raw = [], b""
        for file in step.files:
            data = await self._bytes_of(file)
            raw += data
            if len(raw) > to_do.MAX_UPLOAD:
                raise FetchFailed(ExitReason.BROWSER_STEP, f"an upload may have {to_do.MAX_UPLOAD >> 20} MB")
            name = self._variables.text(file.name)
            parts.append(browser.FilePart(name=name, size=len(data), content_type=file.content_type))
        selector = self._variables.text(step.selector)
        await self._run.perform(browser.Upload(selector=selector, files=tuple(parts), **self._at(step)), raw)

    async def _bytes_of(self, file: to_do.UploadFile) -> bytes:
        if file.url:
            url = self._variables.text(file.url)
            page = await self._run.services.fetch(FetchRequest(url=url, max_bytes=to_do.MAX_UPLOAD))
            if not 200 <= page.status < 300:
                raise FetchFailed(ExitReason.FETCH_STATUS, f"{url[:200]} answered {page.status}")
            return page.body
        try:
            return base64.b64decode(self._variables.text(file.base64), validate=True)
        except (binascii.Error, ValueError):
            raise FetchFailed(ExitReason.BROWSER_STEP, f"{file.name}: its bytes are not base64") from None

    async def _download(self, step: to_do.DownloadStep, _path: str) -> None:
        asked: dict[str, Any] = {"selector": self._variables.text(step.selector), "url": self._variables.text(step.url)}
        done = await self._run.perform(browser.Download(**asked, **self._at(step)))
        found = msgspec.json.decode(done.value)
        name = self._variables.text(step.file) or str(found.get("name") or "download")
        found["artifact"] = await self._run.keep(name, "application/octet-stream", done.raw)
        if step.name:
            self._put(step.name, found)

    async def _wait_for(self, step: to_do.WaitForStep, _path: str) -> None:
        say, at = self._variables.text, self._at(step)
        if step.selector:
            wanted = browser.WaitFor(selector=say(step.selector), state=step.state, count=step.count, **at)
            await self._run.perform(wanted)
        elif step.text:
            await self._run.perform(browser.WaitForText(text=say(step.text), **at))
        elif step.url:
            await self._run.perform(browser.WaitForUrl(pattern=say(step.url), **at))
        elif step.response:
            done = await self._run.perform(browser.WaitForResponse(pattern=say(step.response), **at))
            if step.name:
                self._put(step.name, _body(done.raw))
        elif step.load:
            await self._run.perform(browser.WaitForLoad(state=step.load, **at))
        elif step.expression:
            await self._run.perform(browser.WaitForFunction(expression=say(step.expression), **at))
        else:
            await self._run.perform(browser.Wait(seconds=step.seconds or 0, **at))

    async def _extract(self, step: to_do.ExtractStep, _path: str) -> None:
        selector, at = self._variables.text(step.selector), self._at(step)
        await self._wait_until_whole(at)
        if step.required:
            await self._run.perform(browser.WaitFor(selector=selector, state="attached", **at))
        is_list = bool(step.fields) or step.many
        if step.fields:
            wanted: browser.Operation = browser.Extract(
                selector=selector, fields=self._filled(step.fields), limit=step.limit, **at
            )
        else:
            limit = step.limit if step.many else 1
            wanted = browser.Read(selector=selector, what=self._variables.text(step.what), limit=limit, **at)
        found = await self._run.value(wanted)
        value: Any = found if is_list else next(iter(found), None)
        if not step.append:
            self._put(step.name, value)
            return
        before = self._variables.data.get(step.name, [])
        if not isinstance(before, list):
            raise FetchFailed(ExitReason.BROWSER_STEP, f"{step.name} is not a list, so nothing can be appended to it")
        self._put(step.name, before + (value if is_list else [value]), added=value)

    async def _screenshot(self, step: to_do.ScreenshotStep, _path: str) -> None:
        selector = self._variables.text(step.selector)
        shot = browser.Screenshot(selector=selector, full_page=step.full_page, format=step.format, **self._at(step))
        data = (await self._run.perform(shot)).raw
        await self._run.keep(self._variables.text(step.file), f"image/{step.format}", data)

    async def _pdf(self, step: to_do.PdfStep, _path: str) -> None:
        paper: dict[str, Any] = {"format": step.format, "landscape": step.landscape, "background": step.background}
        data = (await self._run.perform(browser.Pdf(**paper, **self._at(step)))).raw
        await self._run.keep(self._variables.text(step.file), "application/pdf", data)

    async def _evaluate(self, step: to_do.EvaluateStep, _path: str) -> None:
        arg = self._variables.render(step.arg)
        expression = self._variables.text(step.expression)
        value = await self._run.value(browser.Evaluate(expression=expression, arg=arg, **self._at(step)))
        if step.name:
            self._put(step.name, value)

    async def _switch_tab(self, step: to_do.SwitchTabStep, _path: str) -> None:
        if step.tab is None:
            self._run.tab = await self._run.value(browser.WaitForTab(tab=self._run.tab, timeout=step.timeout))
            return
        tabs = await self._run.value(browser.Tabs())
        if all(each["tab"] != step.tab for each in tabs):
            raise FetchFailed(ExitReason.BROWSER_STEP, f"there is no tab {step.tab}; {len(tabs)} are open")
        self._run.tab = step.tab

    async def _close_tab(self, step: to_do.CloseTabStep, _path: str) -> None:
        await self._run.perform(browser.CloseTab(**self._at(step)))
        tabs = await self._run.value(browser.Tabs())
        self._run.tab = min((each["tab"] for each in tabs), default=0)

    async def _set(self, step: to_do.SetStep, _path: str) -> None:
        for name, value in step.variables.items():
            self._variables.set(name, self._variables.render(value))

    async def _if(self, step: to_do.IfStep, path: str) -> None:
        if await self._holds(step.condition, step):
            await self._all(step.then, f"{path}.then")
        else:
            await self._all(step.else_, f"{path}.else")

    async def _while(self, step: to_do.WhileStep, path: str) -> None:
        for _ in range(step.limit):
            if not await self._holds(step.condition, step):
                return
            await self._all(step.steps, f"{path}.steps")

    async def _for_each(self, step: to_do.ForEachStep, path: str) -> None:
        if step.selector:
            selector = self._variables.text(step.selector)
            await self._wait_until_whole(self._at(step))
            found = await self._run.value(
                browser.Read(selector=selector, what="tag", limit=step.limit, **self._at(step))
            )
            items: Any = [f"{selector} >> nth={at}" for at in range(len(found))]
        else:
            items = self._variables.render(step.items)
        if not isinstance(items, list):
            raise FetchFailed(ExitReason.BROWSER_STEP, "items is not a list")
        for at, item in enumerate(items[: step.limit]):
            self._variables.set(step.as_, item)
            self._variables.set(step.index, at)
            await self._all(step.steps, f"{path}.steps")

    async def _solve_captcha(self, step: to_do.SolveCaptchaStep, _path: str) -> None:
        services, at = self._run.services, self._at(step)
        if step.selector:
            picture = browser.Screenshot(selector=self._variables.text(step.selector), **at)
            answer = await services.solve_image((await self._run.perform(picture)).raw)
            await self._run.perform(browser.Fill(selector=self._variables.text(step.into), text=answer, **at))
        else:
            answer = await services.solve_widget(self._run.plain, self._run.tab, step.timeout)
        if step.name:
            self._put(step.name, answer)

    async def _holds(self, condition: to_do.Condition, step: to_do.ActionStep) -> bool:
        return (await self._is_true(condition, self._at(step))) != condition.not_

    async def _is_true(self, condition: to_do.Condition, at: dict[str, Any]) -> bool:
        say = self._variables.text
        if not condition.variable:
            await self._wait_until_whole(at)
        if condition.element:
            read = browser.Read(selector=say(condition.element), what="visible", limit=1000, **at)
            return any(await self._run.value(read))
        if condition.text:
            return bool(await self._run.value(browser.Evaluate(expression=_SHOWS, arg=say(condition.text), **at)))
        if condition.url:
            return read_pattern(say(condition.url)).fullmatch(await self._url()) is not None
        if condition.expression:
            return bool(await self._run.value(browser.Evaluate(expression=say(condition.expression), **at)))
        value = self._variables.get(condition.variable)
        return compare(value, condition.is_, self._variables.render(condition.value))

    async def _wait_until_whole(self, at: dict[str, Any]) -> None:
        """Until the page that a click has opened is here as a whole: half a list would be taken for all of it."""
        await self._run.perform(browser.WaitForLoad(state="domcontentloaded", **at))

    async def _url(self) -> str:
        tabs = await self._run.value(browser.Tabs())
        return next((str(each["url"]) for each in tabs if each["tab"] == self._run.tab), "")

    def _put(self, name: str, value: Any, *, added: Any = None) -> None:
        """Keep what was found. The size of everything that was ever kept counts, so that a loop ends."""
        self._data_bytes += len(msgspec.json.encode(value if added is None else added))
        if self._data_bytes > MAX_DATA:
            raise FetchFailed(ExitReason.OUTPUT_LIMIT, f"what is extracted may have {MAX_DATA >> 20} MB")
        self._variables.data[name] = value


def _body(raw: bytes) -> Any:
    """As JSON, if it is; otherwise as text."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw.decode("utf-8", "replace")
