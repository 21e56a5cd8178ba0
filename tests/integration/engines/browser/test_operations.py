"""Every operation, in a real browser, with both drivers."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
import pytest_asyncio
from msgspec import json

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.host import ProcessHost
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from tests.services.browser import OpenPage, opened
from tests.services.static_site import StaticSite

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PageAt = Callable[..., str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(host: ProcessHost) -> AsyncIterator[OpenPage]:
    """One for all tests, each of which goes to a page of its own: a new one takes ten times as long as a test.

    What would change it for the others is tried on `own_page`.
    """
    async with opened(host) as page:
        yield page


@pytest_asyncio.fixture(loop_scope="module")
async def own_page(host: ProcessHost) -> AsyncIterator[OpenPage]:
    async with opened(host) as page:
        yield page


async def test_goto_tells_the_document(page: OpenPage, page_at: PageAt) -> None:
    url = page_at("goto.html", "<h1>Hello</h1>")
    found = await page.do(do.Goto(url=url))
    assert (found["url"], found["status"], "etag" in found["headers"]) == (url, 200, True)
    assert (await page.do(do.Goto(url=url + "?missing")))["status"] == 200
    assert (await page.do(do.Goto(url=url.replace("goto", "none"))))["status"] == 404
    assert (await page.do(do.Goto(url="about:blank")))["status"] == 0


async def test_history(page: OpenPage, page_at: PageAt) -> None:
    one, two = page_at("one.html", "1"), page_at("two.html", "2")
    await page.do(do.Goto(url=one))
    await page.do(do.Goto(url=two))
    assert (await page.do(do.Back()))["url"] == one
    assert (await page.do(do.Forward()))["url"] == two
    assert await page.do(do.Forward()) is None
    assert (await page.do(do.Reload()))["url"] == two


@pytest.mark.needs("layout")
async def test_clicks_and_forms(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("form.html", FORM)))
    await page.do(do.Fill(selector="#name", text="Ann"))
    await page.do(do.Type(selector="#more", text="xyz"))
    await page.do(do.Press(key="Backspace", selector="#more"))
    assert await page.do(do.Select(selector="#kind", values=("Second",))) == ["2"]
    await page.do(do.Check(selector="#yes"))
    await page.do(do.Click(selector="#go", x=3, y=4))
    assert await page.do(do.Evaluate(expression="window.sent")) == {
        "name": "Ann", "more": "xy", "kind": "2", "yes": True, "at": [3, 4],
    }  # fmt: skip


@pytest.mark.needs("layout")
async def test_change_sets_whatever_it_is(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("change.html", FORM)))
    for selector, value in (("#name", "Bob"), ("#kind", "2"), ("#yes", "true"), ("#free", "words")):
        await page.do(do.Change(selector=selector, value=value))
    assert await page.do(do.Read(selector="#name, #kind", what="value")) == ["Bob", "2"]
    assert await page.do(do.Read(selector="#yes", what="checked")) == [True]
    assert await page.do(do.Read(selector="#free")) == ["words"]
    await page.do(do.Change(selector="#yes", value="false"))
    assert await page.do(do.Read(selector="#yes", what="checked")) == [False]
    assert (await page.fails(do.Change(selector="h2", value="x"))).reason is ExitReason.BROWSER_STEP


@pytest.mark.parametrize(
    "selector",
    [
        "#go",
        "text=Send it",
        "text/Send it",
        "xpath=//button[1]",
        "//button[1]",
        "xpath///button[@id='go']",
        "role=button[name='Send it']",
        'aria/Send it[role="button"]',
        "aria/Send it",
        "pierce/#go",
        "body >> #go",
        "body >>> #go",
    ],
)
async def test_selectors(page: OpenPage, page_at: PageAt, selector: str) -> None:
    await page.do(do.Goto(url=page_at("selectors.html", FORM)))
    assert await page.do(do.Read(selector=selector, what="@id")) == ["go"]
    await page.do(do.Click(selector=selector))


async def test_open_shadow_roots_are_pierced(page: OpenPage, page_at: PageAt) -> None:
    html = """<x-a></x-a><script>document.querySelector('x-a').attachShadow({mode:'open'}).innerHTML =
        '<b id=in>deep</b>'</script>"""
    await page.do(do.Goto(url=page_at("shadow.html", html)))
    for selector in ("#in", "x-a >>> #in", "pierce/#in"):
        assert await page.do(do.Read(selector=selector)) == ["deep"]


async def test_reading(page: OpenPage, page_at: PageAt) -> None:
    html = "<p id=a class=x>One <i style='display:none'>hidden</i></p><p>Two</p><a href=/t>Three</a>"
    await page.do(do.Goto(url=page_at("read.html", html)))
    assert await page.do(do.Read(selector="p")) == ["One", "Two"]
    assert await page.do(do.Read(selector="p", limit=1, what="text_content")) == ["One hidden"]
    assert await page.do(do.Read(selector="p", what="@class")) == ["x", None]
    assert await page.do(do.Read(selector="a", what="html")) == ['<a href="/t">Three</a>']
    assert await page.do(do.Read(selector="i, a", what="visible")) == [False, True]
    assert (await page.do(do.Read(selector="a", what="box")))[0]["width"] > 0
    assert await page.do(do.Read(selector=".none")) == []
    assert (await page.fails(do.Read(selector="p", what="nothing"))).reason is ExitReason.BROWSER_STEP


async def test_extract(page: OpenPage, page_at: PageAt) -> None:
    html = "<li data-id=1><a href=/1>One</a><b>5</b></li><li data-id=2><a href=/2>Two</a></li>"
    await page.do(do.Goto(url=page_at("extract.html", html)))
    fields = {"name": "a", "link": "a::attr(href)", "price": "b::text", "id": "::attr(data-id)"}
    assert await page.do(do.Extract(selector="li", fields=fields)) == [
        {"name": "One", "link": "/1", "price": "5", "id": "1"},
        {"name": "Two", "link": "/2", "price": None, "id": "2"},
    ]


async def test_content_is_the_page_as_it_is_now(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("content.html", "<p>x</p><script>document.body.append('å later')</script>")))
    html = (await page.done(do.Content())).raw.decode()
    assert html.startswith("<!DOCTYPE html>")
    assert "å later" in html


async def test_evaluate_sees_the_page(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("evaluate.html", "<script>window.data = {a: [1, null, 'x']}</script>")))
    assert await page.do(do.Evaluate(expression="data")) == {"a": [1, None, "x"]}
    assert await page.do(do.Evaluate(expression="([a, b]) => a + b", arg=[2, 3])) == 5
    assert await page.do(do.Evaluate(expression="async () => (await fetch(location.href)).status")) == 200
    failure = await page.fails(do.Evaluate(expression="nothing.here"))
    assert failure.reason is ExitReason.BROWSER_STEP
    assert "nothing is not defined" in failure.message
    assert "\n" not in failure.message


async def test_waits(page: OpenPage, page_at: PageAt) -> None:
    html = """<ul></ul><script>setTimeout(() => {
        document.querySelector('ul').innerHTML = '<li>a<li class=x data-n=1>b<li>c'; history.pushState(0, '', '?done');
        window.ready = 1; fetch('?answer')}, 200)</script>"""
    await page.do(do.Goto(url=page_at("wait.html", html)))
    await page.do(do.WaitFor(selector="li"))
    await page.do(do.WaitFor(selector="li", count=3, compare="=="))
    await page.do(do.WaitFor(selector="li", attributes={"data-n": "1"}, properties={"className": "x"}))
    await page.do(do.WaitForText(text="b"))
    assert (await page.do(do.WaitForUrl(pattern="**/wait.html?done"))).endswith("?done")
    await page.do(do.WaitForFunction(expression="window.ready === 1"))
    answer = await page.done(do.WaitForResponse(pattern="*/wait.html?answer"))
    assert json.decode(answer.value)["status"] == 200
    assert b"history.pushState" in answer.raw
    await page.do(do.WaitForLoad(state="networkidle"))
    await page.do(do.Wait(seconds=0.01))


@pytest.mark.parametrize(
    "operation",
    [
        do.WaitFor(selector="#no", timeout=0.2),
        do.WaitFor(selector="p", count=9, timeout=0.2),
        do.WaitForText(text="nowhere", timeout=0.2),
        do.WaitForUrl(pattern="**/elsewhere", timeout=0.2),
        do.WaitForResponse(pattern="**/never", timeout=0.2),
        do.WaitForFunction(expression="false", timeout=0.2),
        do.WaitForTab(timeout=0.2),
        do.Click(selector="#no", timeout=0.2),
        do.Click(selector="#hidden", timeout=0.2),
    ],
    ids=lambda operation: type(operation).__name__,
)
async def test_what_does_not_come_times_out(page: OpenPage, page_at: PageAt, operation: do.Operation) -> None:
    await page.do(do.Goto(url=page_at("never.html", "<p>here<b id=hidden style='display:none'>x</b>")))
    failure = await page.fails(operation)
    assert failure.reason is ExitReason.BROWSER_TIMEOUT
    assert "not within 0.2 s" in failure.message
    assert "\n" not in failure.message


@pytest.mark.needs("files")
async def test_upload(page: OpenPage, page_at: PageAt) -> None:
    html = "<input type=file multiple id=f><button id=b onclick='f.click()'>choose</button>"
    await page.do(do.Goto(url=page_at("upload.html", html)))
    files = (do.FilePart(name="a.txt", size=3, content_type="text/plain"), do.FilePart(name="b", size=2))
    read = "async () => Promise.all([...f.files].map(async x => [x.name, x.type, await x.text()]))"
    for selector in ("#f", "#b"):
        await page.do(do.Upload(selector=selector, files=files), b"abcde")
        assert await page.do(do.Evaluate(expression=read)) == [
            ["a.txt", "text/plain", "abc"],
            ["b", "application/octet-stream", "de"],
        ]
    with pytest.raises(Exception, match="add up"):
        await page.do(do.Upload(selector="#f", files=files), b"abc")


@pytest.mark.needs("files")
async def test_download(page: OpenPage, page_at: PageAt, site: StaticSite) -> None:
    def attachment(handler: object, content: bytes) -> None:
        headers = {"Content-Disposition": "attachment; filename=list.csv", "Content-Type": "text/csv"}
        handler.answer(200, b"a,b\n" * 1000, headers)  # type: ignore[attr-defined]

    site.habits["/list"] = attachment
    await page.do(do.Goto(url=page_at("download.html", "<a href=/list id=get>get</a>")))
    for operation in (do.Download(selector="#get"), do.Download(url=site.url + "list")):
        done = await page.done(operation)
        assert json.decode(done.value) == {"name": "list.csv", "url": site.url + "list", "size": 4000}
        assert done.raw == b"a,b\n" * 1000
    assert (await page.fails(do.Download(selector="#get", max_bytes=100))).reason is ExitReason.FETCH_TOO_LARGE


@pytest.mark.needs("layout")
async def test_scroll_to_the_end_of_a_page_that_grows(page: OpenPage, page_at: PageAt) -> None:
    html = """<div id=list></div><p id=foot>end</p><script>let n = 0;
        const grow = () => { if (n++ < 4) list.insertAdjacentHTML('beforeend', '<div style="height:1500px">x</div>') };
        grow(); new IntersectionObserver(e => e[0].isIntersecting && grow()).observe(foot)</script>"""
    await page.do(do.Goto(url=page_at("scroll.html", html)))
    grown = await page.do(do.Scroll(to="bottom", rounds=20))
    assert (grown, len(await page.do(do.Read(selector="#list > div")))) == (3, 4)
    await page.do(do.Scroll(to="top"))
    await page.do(do.Scroll(y=300))
    await page.do(do.Scroll(y=100))
    assert await page.do(do.Evaluate(expression="scrollY")) == 400
    await page.do(do.Scroll(selector="#foot"))
    assert await page.do(do.Evaluate(expression="scrollY")) > 3000


@pytest.mark.needs("layout")
async def test_pictures(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("picture.html", "<div style='height:3000px'>x</div><b>small</b>")))
    window = (await page.done(do.Screenshot())).raw
    whole = (await page.done(do.Screenshot(full_page=True))).raw
    small = (await page.done(do.Screenshot(selector="b", format="jpeg", quality=50))).raw
    heights = [int.from_bytes(picture[20:24]) for picture in (window, whole)]
    assert heights[0] < 1500 < heights[1]
    assert small.startswith(b"\xff\xd8")
    assert (await page.done(do.Pdf())).raw.startswith(b"%PDF")


async def test_cookies(own_page: OpenPage, page_at: PageAt) -> None:
    url = page_at("cookies.html", "<script>document.cookie = 'a=1'</script>")
    await own_page.do(do.Goto(url=url))
    await own_page.do(do.SetCookies(cookies=({"name": "b", "value": "2", "url": url},)))
    assert {each["name"]: each["value"] for each in await own_page.do(do.Cookies())} == {"a": "1", "b": "2"}
    assert await own_page.do(do.Cookies(urls=("http://other.test/",))) == []
    await own_page.do(do.ClearCookies())
    assert await own_page.do(do.Cookies()) == []
    assert (await own_page.fails(do.SetCookies(cookies=({"x": 1},)))).reason is ExitReason.BROWSER_STEP


async def test_responses(own_page: OpenPage, page_at: PageAt) -> None:
    await own_page.do(do.Goto(url=page_at("answers.html", "<script>fetch('/goto.html'); fetch('/none')</script>")))
    await own_page.do(do.WaitForLoad(state="networkidle"))
    done = await own_page.done(do.Responses(pattern="*/answers.html"))
    [told] = json.decode(done.value)
    assert (told["status"], told["method"], told["type"], told["size"]) == (200, "GET", "document", len(done.raw))
    assert b"fetch" in done.raw
    assert {each["status"] for each in await own_page.do(do.Responses(pattern="*/none", bodies=False))} == {404}


@pytest.mark.needs("tabs")
async def test_tabs(own_page: OpenPage, page_at: PageAt) -> None:
    inner = page_at("inner.html", "<h1>in</h1>")
    await own_page.do(do.Goto(url=page_at("opener.html", f"<a href={inner} target=_blank>open</a>")))
    await own_page.do(do.Click(selector="a"))
    assert await own_page.do(do.WaitForTab()) == 1
    assert await own_page.do(do.Read(tab=1, selector="h1")) == ["in"]
    assert await own_page.do(do.NewTab()) == 2
    assert [each["tab"] for each in await own_page.do(do.Tabs())] == [0, 1, 2]
    await own_page.do(do.CloseTab(tab=1))
    assert [each["tab"] for each in await own_page.do(do.Tabs())] == [0, 2]
    assert (await own_page.fails(do.Content(tab=1))).reason is ExitReason.BROWSER_STEP
    assert (await own_page.fails(do.Content(tab=7))).reason is ExitReason.BROWSER_STEP


@pytest.mark.needs("frames")
async def test_frames(page: OpenPage, page_at: PageAt) -> None:
    page_at("leaf.html", "<button onclick='this.textContent=\"done\"'>leaf</button>")
    page_at("branch.html", "<iframe name=leaf src=leaf.html></iframe>")
    await page.do(do.Goto(url=page_at("tree.html", "<iframe id=branch src=branch.html></iframe>")))
    found = await page.do(do.Frames())
    assert [(each["name"], each["path"]) for each in found] == [("branch", ["0"]), ("leaf", ["0", "0"])]
    await page.do(do.Click(selector="button", frame=("#branch", "iframe")))
    assert await page.do(do.Read(selector="button", frame=("0", "0"))) == ["done"]
    assert "leaf" in (await page.done(do.Content(frame=("0",)))).raw.decode()
    assert (await page.fails(do.Content(frame=("5",)))).reason is ExitReason.BROWSER_STEP


@pytest.mark.needs("dialogs")
async def test_dialogs_never_block(own_page: OpenPage, page_at: PageAt) -> None:
    html = "<script>window.first = confirm('sure?'); window.said = prompt('name?')</script>"
    url = page_at("dialog.html", html)
    await own_page.do(do.Goto(url=url))
    assert await own_page.do(do.Evaluate(expression="[first, said]")) == [False, None]
    found = await own_page.do(do.Dialogs(accept=True, text="Ann"))
    assert found == [{"type": "confirm", "message": "sure?"}, {"type": "prompt", "message": "name?"}]
    await own_page.do(do.Goto(url=url))
    assert await own_page.do(do.Evaluate(expression="[first, said]")) == [True, "Ann"]


@pytest.mark.needs("looks")
async def test_viewport_and_network(own_page: OpenPage, page_at: PageAt) -> None:
    url = page_at("viewport.html", "x")
    await own_page.do(do.Goto(url=url))
    await own_page.do(do.Viewport(width=400, height=300))
    assert await own_page.do(do.Evaluate(expression="[innerWidth, innerHeight]")) == [400, 300]
    await own_page.do(do.Viewport(width=400, height=300, scale=2))
    assert await own_page.do(do.Evaluate(expression="devicePixelRatio")) == 2
    await own_page.do(do.Network(offline=True))
    not_cached = f"{url}?again"
    assert (await own_page.fails(do.Goto(url=not_cached))).reason is ExitReason.FETCH_CONNECT
    await own_page.do(do.Network())
    assert (await own_page.do(do.Goto(url=url)))["status"] == 200


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", ExitReason.FETCH_BAD_URL),
        ("chrome://version", ExitReason.FETCH_BAD_URL),
        ("javascript:alert(1)", ExitReason.FETCH_BAD_URL),
        ("view-source:http://a.test/", ExitReason.FETCH_BAD_URL),
        ("not a url", ExitReason.FETCH_BAD_URL),
        pytest.param("https://127.0.0.1:9/", ExitReason.FETCH_BAD_URL, marks=pytest.mark.needs("ports")),
        ("https://nowhere.invalid/", ExitReason.FETCH_CONNECT),
    ],
)
async def test_what_does_not_open_has_a_reason(page: OpenPage, url: str, reason: ExitReason) -> None:
    assert (await page.fails(do.Goto(url=url))).reason is reason


async def test_a_page_opens_at_once_after_one_that_did_not(page: OpenPage, page_at: PageAt) -> None:
    """The browser shows its error page a moment after it told the failure."""
    there = page_at("there.html", "<p>x")
    for _ in range(3):
        for _ in range(2):
            assert (await page.fails(do.Goto(url="https://nowhere.invalid/"))).reason is ExitReason.FETCH_CONNECT
        assert (await page.do(do.Goto(url=there)))["url"] == there


async def test_a_script_opens_no_file_of_this_machine(page: OpenPage, page_at: PageAt) -> None:
    for url in ("about:blank", page_at("files.html", "<p>x")):
        await page.do(do.Goto(url=url))
        with suppress(FetchFailed):
            await page.do(do.Evaluate(expression="{ location.href = 'file:///etc/passwd' }"))
        with suppress(FetchFailed):
            await page.do(do.WaitForUrl(pattern="file://**", timeout=0.5))
        assert b"root:" not in (await page.done(do.Content())).raw


async def test_reading_goes_on_while_the_page_moves(page: OpenPage, page_at: PageAt) -> None:
    last = page_at("moved.html", "<h1>there</h1>")
    await page.do(do.Goto(url=page_at("moves.html", f"<script>setTimeout(() => location = '{last}', 100)</script>")))
    await page.do(do.WaitFor(selector="h1", count=1, compare="=="))
    assert await page.do(do.Read(selector="h1")) == ["there"]


async def test_what_is_sent_is_bounded(page: OpenPage) -> None:
    with pytest.raises(FetchFailed) as caught:
        await page.done(do.Upload(selector="x", files=()), bytes(97 * 2**20))
    assert caught.value.reason is ExitReason.BROWSER_STEP
    assert await page.do(do.Evaluate(expression="1")) == 1


async def test_answers_are_bounded(host: ProcessHost, page_at: PageAt) -> None:
    url = page_at("large.html", "<p>x</p><script>document.body.append('x'.repeat(2e5))</script>")
    async with opened(host, max_bytes=100_000) as page:
        await page.do(do.Goto(url=url))
        for operation in (do.Content(), do.Evaluate(expression="'x'.repeat(2e5)"), do.Read(selector="body")):
            assert (await page.fails(operation)).reason is ExitReason.FETCH_TOO_LARGE
        assert await page.do(do.Evaluate(expression="1")) == 1


FORM = """<style>button { border: 2px solid }</style><h2>A form</h2><input id=name><input id=more>
<select id=kind><option value=1>First<option value=2>Second</select>
<input type=checkbox id=yes><div id=free contenteditable></div><button id=go>Send it</button><script>
go.onclick = e => window.sent = {
    name: document.querySelector('#name').value, more: more.value, kind: kind.value, yes: yes.checked,
    at: [e.offsetX + 2, e.offsetY + 2].map(Math.round)}</script>"""
