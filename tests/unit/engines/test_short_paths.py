"""An ordinary fetch takes short cuts: a glance instead of a close look, the first route without an escalation, one
ticket for all requests of a site that is well. Each of them must come to what the long way comes to."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from scrapeyard.engines.blocks.answer import Answer
from scrapeyard.engines.blocks.recognise import _recognise, glance, recognise, recognise_any
from scrapeyard.engines.blocks.rules import ADDRESSES, HEADERS, MARKUP, TITLES
from scrapeyard.engines.blocks.shell import recognise_shell
from scrapeyard.engines.escalation.escalation import Escalation
from scrapeyard.engines.escalation.memory import MemoryWays
from scrapeyard.engines.escalation.stage import Ways
from scrapeyard.engines.headers import AnswerHeaders, has_any
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.politeness.memory import _OpenSite
from scrapeyard.engines.politeness.port import SiteLimits, SiteVerdict, Ticket
from scrapeyard.engines.politeness.verdicts import SiteReport
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.settings import EscalationSettings, ProxyPool
from tests.stages import context_of

LINK = '<li><a href="/lamps/oak">A lamp of oak and brass, with a long arm and a warm light</a></li>'
SITE = "shop.test"
NOW = 1_700_000_000.0


def needles(marks: Any) -> st.SearchStrategy[str]:
    return st.sampled_from([mark.needle for mark in marks])


TITLE = st.one_of(st.sampled_from(["", "Lamps | Shop", "A captcha for lamps", "LAMPS"]), needles(TITLES))
URL = st.one_of(
    st.just("https://shop.test/lamps"),
    needles(ADDRESSES).map(lambda needle: f"https://shop.test/{needle.strip('/')}?page=2"),
)
HEADER = st.one_of(
    st.just(("content-type", "text/html; charset=utf-8")),
    st.sampled_from(HEADERS).map(lambda mark: (mark.name, mark.needle or "1")),
)
ENCODING = st.sampled_from(["utf-8", "cp1252", "utf-16-le"])


@st.composite
def answers(draw: st.DrawFn) -> FetchResponse:
    """Pages and refusals, and what lies between them."""
    links, marks = draw(st.integers(0, 60)), draw(st.lists(needles(MARKUP), max_size=1))
    words = draw(st.sampled_from(["", "Too few words.", "Oak and brass. " * 200]))
    script = draw(st.sampled_from(["", "<script>start()</script>"]))
    head = f"<head><title>{draw(TITLE)}</title>{script}</head>"
    body = f"<html>{head}<body>{''.join(marks)}{LINK * links}{words}</body></html>"
    encoding = draw(ENCODING)
    return FetchResponse(
        url=draw(URL),
        status=draw(st.sampled_from([200, 200, 200, 403, 404, 429, 503])),
        headers=tuple(draw(st.lists(HEADER, max_size=3))),
        body=body.encode(encoding, "replace"),
        encoding=encoding,
        elapsed_ms=1.0,
    )


@given(answers())
def test_aglance_comes_to_what_a_close_look_comes_to(answer: FetchResponse) -> None:
    closely = _recognise(Answer(answer))
    assert recognise(answer) == closely
    assert recognise_any(answer) == (closely or (None if Answer(answer).has_links else recognise_shell(answer)))


def test_an_ordinary_page_needs_no_more_than_aglance() -> None:
    page = FetchResponse(
        url="https://shop.test/lamps",
        status=200,
        headers=(("content-type", "text/html"),),
        body=(LINK * 60).encode(),
        encoding="utf-8",
        elapsed_ms=1.0,
    )
    assert glance(page) is None
    assert glance(replace(page, status=403)) is not None


PATHS = st.text('abz09/.%2eE?#&=;|[]@:~ \\\t"<é', max_size=30)
HOSTS = st.sampled_from(["shop.test", "SHOP.test.", "shop.test:80", "127.0.0.1:8080", "[::1]", "[::1]:443", "1.2", ""])


@given(st.sampled_from(["http", "https", "HTTP", "ftp"]), HOSTS, PATHS)
def test_a_plain_url_is_read_as_any_other(scheme: str, host: str, path: str) -> None:
    """A blank before a URL changes nothing, but keeps it from the short way."""
    url = f"{scheme}://{host}{path}"
    assert outcome(lambda: parse_target(url)) == outcome(lambda: parse_target(f" {url}"))


def outcome(made: Callable[[], Any]) -> Any:
    try:
        return made()
    except FetchFailed as failure:
        return failure.reason


class Raw:
    """Headers as a client has them."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = [(name.encode(), value.encode("latin-1")) for name, value in pairs]

    def get(self, key: str) -> memoryview | None:
        return next(iter(self.get_all(key)), None)

    def get_all(self, key: str) -> list[memoryview]:
        return [memoryview(value) for name, value in self._pairs if name == key.encode()]

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[tuple[memoryview, memoryview]]:
        return iter([(memoryview(name), memoryview(value)) for name, value in self._pairs])


NAMES = st.sampled_from(["server", "set-cookie", "etag", "location"])


@given(st.lists(st.tuples(NAMES, st.text(st.characters(max_codepoint=255), max_size=8)), max_size=6), st.sets(NAMES))
def test_headers_that_are_read_late_are_the_same(pairs: list[tuple[str, str]], names: set[str]) -> None:
    late, early = AnswerHeaders(Raw(pairs)), tuple(pairs)
    assert has_any(late, names) == has_any(early, names)
    assert late.first("etag") == next((value for name, value in pairs if name == "etag"), None)
    assert (late, len(late), late[:2], dict(late)) == (early, len(early), early[:2], dict(early))
    assert hash(late) == hash(early)


LATENCY = st.none() | st.floats(0, 10)


@given(st.lists(LATENCY, max_size=100))
def test_good_answers_are_reported_together_as_if_one_by_one(latencies: list[float | None]) -> None:
    turn = Ticket(site=SITE, limits=SiteLimits(), ticket="1")
    one_by_one, together = SiteReport(), _OpenSite(turn)
    for latency in latencies:
        verdict = SiteVerdict(answer="ok", latency=latency)
        one_by_one.add(turn, verdict)
        together.add(verdict, NOW)
    assert asdict(together.take_report()) == asdict(one_by_one)
    assert asdict(together.take_report()) == asdict(SiteReport())


PAGE = FetchResponse(
    url=f"https://{SITE}/", status=200, headers=(), body=(LINK * 60).encode(), encoding="utf-8", elapsed_ms=1.0, way="x"
)
CERTAIN = replace(PAGE, status=403, headers=(("cf-mitigated", "challenge"),), body=b"<p>wait</p>")
DOUBTFUL = replace(PAGE, status=403, body=b"<p>no</p>")
LIMITED = replace(PAGE, status=429, body=b"")
FAILURES = [
    FetchFailed(reason, f"it was {reason.value}")
    for reason in (ExitReason.FETCH_PROXY, ExitReason.FETCH_BUDGET, ExitReason.FETCH_TIMEOUT, ExitReason.FETCH_DNS)
]
POOLS = (ProxyPool(name="racks", urls=("http://10.0.0.1:1",)),)


class Scripted:
    """A client with its answers written down, which tells what it was asked."""

    def __init__(self, script: list[FetchResponse | FetchFailed]) -> None:
        self._script = list(script)
        self.asked: list[tuple[Route, float | None]] = []

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        self.asked.append((way, context.request.timeout_seconds))
        answer = self._script.pop(0) if self._script else PAGE
        if isinstance(answer, FetchFailed):
            raise FetchFailed(answer.reason, answer.message)
        return answer


REQUESTS = st.builds(
    FetchRequest,
    url=st.just(f"https://{SITE}/"),
    method=st.sampled_from(["GET", "POST"]),
    engine=st.sampled_from(["auto", "http", "browser", "solver"]),
    profile=st.sampled_from(["", "firefox"]),
    proxy=st.sampled_from(["", "none", "racks"]),
    session=st.sampled_from(["", "me"]),
)
POLICIES = st.builds(
    FetchPolicy, proxy=st.sampled_from(["", "racks"]), escalate=st.sampled_from([None, False]), profile=st.just("")
)
SCRIPT = st.lists(st.sampled_from([PAGE, CERTAIN, DOUBTFUL, LIMITED, *FAILURES]), max_size=8)
LEARNT = st.lists(st.tuples(st.sampled_from(["chrome", "firefox", "chrome via racks"]), st.booleans()), max_size=4)


@given(REQUESTS, POLICIES, SCRIPT, LEARNT)
def test_the_first_route_alone_is_the_beginning_of_an_escalation(
    request: FetchRequest,
    policy: FetchPolicy,
    script: list[FetchResponse | FetchFailed],
    learnt: list[tuple[str, bool]],
) -> None:
    async def both() -> tuple[Any, Any]:
        return await told(request, policy, script, learnt, whole=False), await told(
            request, policy, script, learnt, whole=True
        )

    short, whole = asyncio.run(both())
    assert short == whole


async def told(
    request: FetchRequest,
    policy: FetchPolicy,
    script: list[FetchResponse | FetchFailed],
    learnt: list[tuple[str, bool]],
    *,
    whole: bool,
) -> Any:
    """What a fetch comes to: its answer or failure, what was asked for it, and what is remembered of the site."""
    client, memory = Scripted(script), MemoryWays(3600, clock=lambda: NOW)
    pools = ProxyPools(POOLS)
    ways = Ways(client, EscalationSettings(), memory=memory, pools=pools, profile="chrome", clock=lambda: NOW)
    for way, is_good in learnt:
        await memory.note(SITE, way, ok=is_good, cost=1.0)
    context = context_of(request, Caller(policy=policy))
    try:
        answer: Any = await (Escalation(ways._gear, context, 0.0).fetch() if whole else ways(context))
    except FetchFailed as failure:
        answer = (failure.reason, failure.message, failure.details)
    return answer, client.asked, await memory.recall(SITE)
