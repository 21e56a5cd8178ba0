"""`ctx.browser`: every method of the page as the step that the worker reads, awaited and plain."""

import asyncio
import inspect
import json
from typing import Any, ClassVar, get_args

import msgspec
import pytest

from scrapeyard.engines.browser import operations as steps
from scrapeyard.engines.browser.port import ContextOptions, Evidence
from scrapeyard.sandbox.handles.frames import BrowserFrame, KeepArtifact, browser_call, parse
from scrapeyard_sdk import BasePlaywrightScraper, BrowserError, Context, FetchError, SyncContext
from scrapeyard_sdk.browser.calls import BrowserOptions
from scrapeyard_sdk.browser.elements import MAX_UPLOAD
from scrapeyard_sdk.browser.page import BrowserPage, SyncBrowserPage
from scrapeyard_sdk.child.explain import explain
from scrapeyard_sdk.context import LogRoom
from scrapeyard_sdk.wire import Decoder, encode

START = {"seconds": 60, "run_id": "run_1", "attempt": 1, "input": {}, "config": {}, "fetches": 5}
Given = tuple[Any, bytes]


class Worker:
    """The worker's end of a channel: reads each frame as the real one does, and answers what the test says."""

    def __init__(self, value: Any = None, raw: bytes = b"") -> None:
        self.value = value
        self.raw = raw
        self.fault: dict[str, Any] | None = None
        self.options: list[ContextOptions] = []
        self.steps: list[Given] = []
        self.closed: list[int] = []
        self.artifacts: dict[str, bytes] = {}
        self._decoder = Decoder(parse)
        self._answer: Any = None

    def ask(self, head: dict[str, Any], raw: bytes = b"") -> int:
        ((frame, raw),) = self._decoder.feed(encode({**head, "n": 1}, raw))
        self._answer = self._serve(frame, raw)
        return 1

    def wait_for(self, _: int) -> Any:
        return self._answer

    async def request(self, head: dict[str, Any], raw: bytes = b"") -> Any:
        await asyncio.sleep(0)
        return self.wait_for(self.ask(head, raw))

    def _serve(self, frame: Any, raw: bytes) -> Any:
        if isinstance(frame, KeepArtifact):
            self.artifacts[frame.name] = raw
            return {"t": "kept"}, b""
        assert isinstance(frame, BrowserFrame)
        given = browser_call(frame, raw)
        if self.fault is not None and frame.act != "close":
            return {"t": "page_error", **self.fault}, b""
        if isinstance(given, ContextOptions):
            self.options.append(given)
            return {"t": "browser", "b": 7}, b""
        assert frame.b == 7
        if given is None:
            self.closed.append(frame.b)
            return {"t": "browser"}, b""
        self.steps.append((given, raw[frame.size :]))
        value = json.dumps(self.value).encode()
        return {"t": "browser", "size": len(value)}, value + self.raw


def awaited(worker: Any, **options: Any) -> BrowserPage:
    return Context(worker, START, LogRoom(worker, 0)).browser(**options)


def plain(worker: Any, **options: Any) -> SyncBrowserPage:
    return SyncContext(worker, START, LogRoom(worker, 0)).browser(**options)


OPENED = {"url": "http://a.test/", "status": 404, "headers": {"content-type": "text/html", "x-shop": "a"}}
ROW: dict[str, Any] = {"url": "http://a.test/api", "status": 200, "method": "POST", "type": "fetch", "headers": {}}
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any, Any]] = [
    ("go_back", (), {"wait_until": "commit"}, steps.Back(wait_until="commit"), None),
    ("go_forward", (), {}, steps.Forward(), None),
    ("reload", (), {"timeout": 5}, steps.Reload(timeout=5), None),
    (
        "click",
        ("a",),
        {"button": "right", "x": 1, "y": 2, "modifiers": ["Shift"], "force": True},
        steps.Click(selector="a", button="right", x=1, y=2, modifiers=("Shift",), force=True),
        None,
    ),
    ("dblclick", ("a",), {}, steps.Click(selector="a", count=2), None),
    ("hover", ("a",), {"x": 3}, steps.Hover(selector="a", x=3), None),
    ("fill", ("#q", "é"), {}, steps.Fill(selector="#q", text="é"), None),
    ("type", ("#q", "ab"), {"delay": 0.1}, steps.Type(selector="#q", text="ab", delay=0.1), None),
    ("press", ("#q", "Enter"), {}, steps.Press(selector="#q", key="Enter"), None),
    ("press_key", ("a",), {"move": "down"}, steps.Press(key="a", move="down"), None),
    ("select_option", ("s", "x"), {}, steps.Select(selector="s", values=("x",)), ["x"]),
    ("select_option", ("s", ["x", "y"]), {}, steps.Select(selector="s", values=("x", "y")), ["x", "y"]),
    ("check", ("c",), {}, steps.Check(selector="c"), None),
    ("uncheck", ("c",), {}, steps.Check(selector="c", checked=False), None),
    ("change", ("c", "true"), {}, steps.Change(selector="c", value="true"), None),
    ("scroll", (), {"to": "bottom", "rounds": 9}, steps.Scroll(to="bottom", rounds=9), 4),
    ("wait", (2,), {}, steps.Wait(seconds=2), None),
    (
        "wait_for_selector",
        ("li",),
        {"state": "attached", "count": 3, "compare": "==", "attributes": {"a": "b"}, "properties": {"x": 1}},
        steps.WaitFor(
            selector="li", state="attached", count=3, compare="==", attributes={"a": "b"}, properties={"x": 1}
        ),
        None,
    ),
    ("wait_for_text", ("done",), {"timeout": 1}, steps.WaitForText(text="done", timeout=1), None),
    ("wait_for_url", ("**/end",), {}, steps.WaitForUrl(pattern="**/end"), "http://a.test/end"),
    ("wait_for_load_state", ("networkidle",), {}, steps.WaitForLoad(state="networkidle"), None),
    ("wait_for_function", ("n => n", 1), {}, steps.WaitForFunction(expression="n => n", arg=1), None),
    ("evaluate", ("n => n", {"a": [1]}), {}, steps.Evaluate(expression="n => n", arg={"a": [1]}), {"b": [2]}),
    ("query_all", ("a", "@href"), {"limit": 3}, steps.Read(selector="a", what="@href", limit=3), ["/x"]),
    (
        "extract",
        ("li", {"n": "::text"}),
        {},
        steps.Extract(selector="li", fields={"n": "::text"}),
        [{"n": "a"}, {"n": None}],
    ),
    ("cookies", ("http://a.test/",), {}, steps.Cookies(urls=("http://a.test/",)), [{"name": "a"}]),
    ("add_cookies", ([{"name": "a"}],), {}, steps.SetCookies(cookies=({"name": "a"},)), None),
    ("clear_cookies", (), {}, steps.ClearCookies(), None),
    ("frames", (), {}, steps.Frames(), [{"name": "", "url": "u", "path": ["0"]}]),
    ("dialogs", (), {"accept": True, "text": "x"}, steps.Dialogs(accept=True, text="x"), [{"type": "alert"}]),
    ("set_viewport_size", (800, 600), {"mobile": True}, steps.Viewport(width=800, height=600, mobile=True), None),
    ("set_network", (), {"offline": True}, steps.Network(offline=True), None),
    ("close", (), {}, steps.CloseTab(), None),
]
"""Method, arguments, the step, and what it returns."""


@pytest.mark.parametrize(("name", "args", "named", "step", "returned"), CASES)
async def test_each_method_is_a_step(name: str, args: Any, named: Any, step: Any, returned: Any) -> None:
    worker, other = Worker(returned), Worker(returned)
    async with awaited(worker) as page:
        assert await getattr(page, name)(*args, **named) == returned
    with plain(other) as same:
        assert getattr(same, name)(*args, **named) == returned
    assert worker.steps == other.steps == [(step, b"")]
    assert worker.closed == other.closed == [7]


BYTES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    (
        "screenshot",
        ("h1",),
        {"format": "jpeg", "quality": 5},
        steps.Screenshot(selector="h1", format="jpeg", quality=5),
    ),
    ("pdf", (), {"landscape": True}, steps.Pdf(landscape=True)),
]


@pytest.mark.parametrize(("name", "args", "named", "step"), BYTES)
async def test_pictures_are_bytes_and_artifacts(name: str, args: Any, named: Any, step: Any) -> None:
    worker, other = Worker(None, b"\0picture"), Worker(None, b"\0picture")
    async with awaited(worker) as page:
        assert await getattr(page, name)(*args, **named, save_as="a.png") == b"\0picture"
    with plain(other) as same:
        assert getattr(same, name)(*args, **named) == b"\0picture"
    assert worker.steps == other.steps == [(step, b"")]
    assert (worker.artifacts, other.artifacts) == ({"a.png": b"\0picture"}, {})


async def test_every_step_has_a_method() -> None:
    used = {type(case[3]) for case in CASES} | {type(case[3]) for case in BYTES}
    other = {steps.Goto, steps.Content, steps.Upload, steps.Download, steps.Responses, steps.WaitForResponse}
    assert used | other | {steps.Tabs, steps.NewTab, steps.WaitForTab} == set(get_args(steps.AnyOperation))


def test_the_options_are_those_of_a_context() -> None:
    named = {field.name for kind in (ContextOptions, Evidence) for field in msgspec.structs.fields(kind)}
    assert set(BrowserOptions.__annotations__) == named - {"evidence"}
    worker = Worker()
    with plain(worker, device="iPhone 15", block=["image"], headers={"a": "b"}, har=True, timeout=5):
        pass
    assert worker.options == [
        ContextOptions(device="iPhone 15", block=("image",), headers={"a": "b"}, timeout=5, evidence=Evidence(har=True))
    ]
    with pytest.raises(TypeError, match="browser\\(\\) has no option colour"):
        plain(worker, colour="red")


async def test_a_page_is_opened_and_read_as_one_that_was_fetched() -> None:
    worker = Worker(OPENED)
    async with awaited(worker) as page:
        answer = await page.goto("http://a.test/", wait_until="networkidle")
        assert (answer.url, answer.status, answer.ok) == ("http://a.test/", 404, False)
        assert worker.steps.pop()[0] == steps.Goto(url="http://a.test/", wait_until="networkidle")
        worker.value = {"url": "http://a.test/#end", "status": 404, "type": "text/html"}
        worker.raw = "<p class=a>é</p><a href=/b>b</a>".encode()
        assert "é" in await page.content()
        read = await page.page()
        assert (read.url, read.status, read.text(".a"), read.links()) == (
            "http://a.test/#end", 404, "é", ["http://a.test/b"],
        )  # fmt: skip
        assert read.headers["X-Shop"] == "a"
        worker.value = {"url": "http://a.test/", "status": 200, "type": "text/html"}
        moved = await page.page()
    assert (moved.status, dict(moved.headers)) == (200, {"content-type": "text/html"}), "another document is there now"


async def test_answers_that_a_page_got() -> None:
    worker = Worker(
        [{**ROW, "size": 9}, {**ROW, "size": 0, "missing": True}, {**ROW, "size": 2}], b'{"a": 1}\n\xc3\xa9'
    )
    async with awaited(worker) as page:
        first, lost, last = await page.responses("*/api/*", limit=3)
        worker.value, worker.raw = ROW, b"[]"
        assert (await page.wait_for_response("**")).json() == []
    assert worker.steps[0][0] == steps.Responses(pattern="*/api/*", limit=3)
    assert (first.json(), first.method, first.type, last.text, last.body) == (
        {"a": 1},
        "POST",
        "fetch",
        "é",
        b"\xc3\xa9",
    )
    assert not lost.has_body
    with pytest.raises(BrowserError, match="is not here"):
        lost.json()


async def test_files_go_up_and_come_down() -> None:
    worker = Worker({"name": "a.csv", "url": "", "size": 3}, b"a,b")
    async with awaited(worker) as page:
        await page.set_input_files("#f", [b"one", ("b.txt", "two", "text/plain")])
        assert await page.download("a.csv", save_as="b.csv") == ("a.csv", b"a,b")
        with pytest.raises(ValueError, match="takes 16777216 bytes"):
            await page.set_input_files("#f", bytes(MAX_UPLOAD + 1))
    files = (
        steps.FilePart(name="file", size=3),
        steps.FilePart(name="b.txt", size=3, content_type="text/plain"),
    )
    assert worker.steps[0] == (steps.Upload(selector="#f", files=files), b"onetwo")
    assert worker.steps[1][0] == steps.Download(selector="a.csv")
    assert worker.artifacts == {"b.csv": b"a,b"}


async def test_frames_and_tabs_are_pages() -> None:
    worker = Worker(2)
    async with awaited(worker) as page:
        tab = await page.new_tab()
        await tab.frame("iframe", 0).click("a")
        assert worker.steps.pop()[0] == steps.Click(selector="a", tab=2, frame=("iframe", "0"))
        assert isinstance(await page.wait_for_tab(timeout=3), BrowserPage)
        worker.value = [{"tab": 0, "url": "", "title": ""}, {"tab": 2, "url": "", "title": ""}]
        await (await page.tabs())[1].click("b")
        assert worker.steps.pop()[0] == steps.Click(selector="b", tab=2)
    with plain(Worker(1)) as same:
        assert isinstance(same.new_tab().frame("x"), SyncBrowserPage)
        assert isinstance(same.wait_for_tab(), SyncBrowserPage)


async def test_short_reads() -> None:
    worker = Worker(["x"])
    async with awaited(worker) as page:
        assert [await page.text("p"), await page.get_attribute("a", "href"), await page.query("b", "html")] == ["x"] * 3
        assert await page.is_visible("c")
        worker.value = []
        assert await page.query("b") is None
        assert await page.count("li") == 0
    assert [step.what for step, _ in worker.steps] == ["text", "@href", "html", "visible", "text", "tag"]


async def test_a_failed_step_raises_and_ends_the_run_with_its_reason() -> None:
    worker = Worker()
    page = awaited(worker)
    with pytest.raises(BrowserError, match="not open"):
        await page.click("a")
    async with page:
        worker.fault = {"reason": "browser_timeout", "message": "no `a` within 30 s", "site_status": None}
        with pytest.raises(BrowserError, match="no `a`") as caught:
            await page.click("a")
        with pytest.raises(BrowserError, match="open already"):
            await page.__aenter__()
    assert isinstance(caught.value, FetchError)
    assert explain(caught.value)["reason"] == "browser_timeout"
    with pytest.raises(BrowserError, match="not open"):
        await page.frame("x").click("a")
    with pytest.raises(TypeError, match="JSON"), plain(Worker()) as same:
        same.evaluate("a", object())


async def test_pages_that_are_opened_count_as_fetches() -> None:
    async with awaited(Worker(OPENED)) as page:
        for _ in range(4):
            await page.goto("http://a.test/")
        await page.reload()
        await page.click("a")
        with pytest.raises(FetchError, match=r"limits\.fetches") as caught:
            await page.goto("http://a.test/")
    assert caught.value.reason == "fetch_limit"


async def test_a_class_has_options_of_its_own() -> None:
    class Shop(BasePlaywrightScraper):
        browser_options: ClassVar[BrowserOptions] = {"device": "iPhone 15", "timeout": 5}

    worker, scraper = Worker(), Shop()
    scraper.ctx = Context(worker, START, LogRoom(worker, 0))  # type: ignore[arg-type]
    async with scraper.browser(timeout=9):
        pass
    assert worker.options == [ContextOptions(device="iPhone 15", timeout=9)]


def test_methods_have_help() -> None:
    for kind in (BrowserPage, SyncBrowserPage):
        for name, method in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                assert inspect.getdoc(method), name
    assert str(inspect.signature(plain(Worker()).goto)).startswith("(url: str, *, wait_until:")
