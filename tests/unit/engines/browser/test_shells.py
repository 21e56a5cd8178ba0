"""A page that its scripts fill: recognised, opened in a browser, and learnt."""

import time

import pytest

from scrapeyard.engines.blocks import adds_content, recognise_shell
from scrapeyard.engines.escalation.memory import MemoryWays
from scrapeyard.engines.escalation.stage import Ways
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.model import FetchPolicy
from scrapeyard.settings import EscalationSettings

SHELL = b"""<!doctype html><html><head><title>Shop</title><script type="module" src="/assets/index.js"></script></head>
<body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>"""
FULL = (
    b"<html><body><script src=a.js></script><div id=root>" + b"<p>A lamp for 12 euros, and a chair.</p>" * 9 + b"</div>"
)


def page(body: bytes, *, status: int = 200, strategy: str = "http", kind: str = "text/html") -> FetchResponse:
    return FetchResponse(
        url="https://shop.test/",
        status=status,
        headers=(("content-type", kind),),
        body=body,
        encoding="utf-8",
        elapsed_ms=1,
        strategy=strategy,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "body",
    [
        SHELL,
        b"<script src=/a.js></script><div id='app'></div>",
        b"<script src=/a.js></script><app-root></app-root>",
        b'<script src=/a.js></script><div id="__nuxt"><!-- --></div>',
        b"<div id=app></div><script>fetch('/goods.json').then(fill)</script>",
        b"<title>Shop</title><body><my-shop></my-shop><script src=/a.js></script>",
        b"<body><script src=/a.js></script><noscript><p>This site needs <b>JavaScript</b>.</p></noscript>",
    ],
)
def test_an_empty_page_with_scripts_is_a_shell(body: bytes) -> None:
    found = recognise_shell(page(body))
    assert found is not None
    assert (found.kind, found.certain, found.worth_trying) == ("shell", False, True)


@pytest.mark.parametrize(
    "response",
    [
        page(FULL),
        page(b"<html><body>Nothing here.</body></html>"),
        page(b"<div id=root></div>"),
        page(b'<div id=root></div><script type="application/ld+json">{}</script>'),
        page(b"<script>track()</script><p>Sold out, sorry.</p>"),
        page(SHELL, status=404),
        page(SHELL, kind="application/json"),
        page(b"<script src=a.js></script><div id=root></div>" + b"<p>words to read</p>" * 20),
        page(b""),
    ],
    ids=["full", "plain", "no script", "data", "few words", "not found", "json", "words beside", "empty"],
)
def test_other_pages_are_none(response: FetchResponse) -> None:
    assert recognise_shell(response) is None


def test_more_words_are_more_content() -> None:
    assert adds_content(page(SHELL), page(FULL))
    assert not adds_content(page(SHELL), page(SHELL))


class Engines:
    """A site, as plain HTTP and as a browser see it."""

    def __init__(self, plain: bytes, browser: bytes) -> None:
        self.bodies = {"http": plain, "browser": browser}
        self.asked: list[str] = []

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        del context
        self.asked.append(way.engine)
        return page(self.bodies[way.engine], strategy=way.engine)


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def ways(engines: Engines, clock: Clock) -> Ways:
    memory = MemoryWays(86_400, clock=clock)
    settings = EscalationSettings(profiles=("chrome",))
    return Ways(engines, settings, memory=memory, pools=ProxyPools(), profile="chrome", browser=True, clock=clock)


async def get(fetch: Ways, caller: Caller | None = None, **request: object) -> FetchResponse:
    given = FetchRequest(url="https://shop.test/", **request)  # type: ignore[arg-type]
    return await fetch(FetchContext.of(given, caller or Caller(), Sites()))


async def test_a_shell_leads_to_the_browser_which_is_remembered_and_left_again() -> None:
    engines, clock = Engines(SHELL, FULL), Clock()
    fetch = ways(engines, clock)
    found = await get(fetch)
    assert (found.body, found.strategy, found.way) == (FULL, "browser", "browser")
    assert found.tried[0]["reason"] == "the page is empty until its scripts run"
    await get(fetch)
    assert engines.asked == ["http", "browser", "browser"]
    clock.now += 12 * 3600
    engines.bodies["http"] = FULL
    assert (await get(fetch)).strategy == "http"


async def test_a_browser_that_sees_no_more_is_given_up() -> None:
    engines, clock = Engines(SHELL, SHELL), Clock()
    fetch = ways(engines, clock)
    for _ in range(5):
        assert (await get(fetch)).strategy == "http"
    assert engines.asked.count("browser") == 3, "three times in vain, then not for an hour"


@pytest.mark.parametrize(
    ("caller", "request_"),
    [
        (Caller(policy=FetchPolicy(escalate=False)), {}),
        (Caller(), {"engine": "http"}),
        (Caller(), {"method": "POST", "body": b"x"}),
    ],
)
async def test_no_browser_where_it_may_not(caller: Caller, request_: dict[str, object]) -> None:
    engines = Engines(SHELL, FULL)
    assert (await get(ways(engines, Clock()), caller, **request_)).strategy == "http"
    assert engines.asked == ["http"]


async def test_who_asks_for_the_browser_gets_it_at_once() -> None:
    engines = Engines(SHELL, FULL)
    assert (await get(ways(engines, Clock()), engine="browser")).strategy == "browser"
    assert engines.asked == ["browser"]
