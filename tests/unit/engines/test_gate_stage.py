"""A fetch waits for its site's turn, goes, and tells the gate what became of it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteState
from scrapeyard.engines.politeness.stage import RateLimited
from scrapeyard.engines.politeness.verdicts import of_failure, of_response, retry_after
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import SiteSettings
from scrapeyard.store.sql import SqlStore
from tests.stages import context_of

URL = "http://www.shop.example/p/1"


def response(status: int = 200, elapsed_ms: float = 10, way: str = "", **headers: str) -> FetchResponse:
    said = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return FetchResponse(
        url=URL, status=status, headers=said, body=b"", encoding="utf-8", elapsed_ms=elapsed_ms, way=way
    )


class Line:
    """A gate whose clock moves when a caller pauses."""

    def __init__(self, inner: Fetch, **settings: Any) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.gate = MemoryGate(lambda: self.now)
        store = SqlStore("sqlite:///unused.db")
        self.policies = SitePolicies(SiteSettings(**settings), store.sites, MemoryQueue())
        self.fetch = RateLimited(inner, self.gate, self.policies)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def get(self, url: str = URL, **request: Any) -> FetchResponse:
        return await self.fetch(context_of(FetchRequest(url=url, **request), Caller(pause=self.pause)))

    async def state(self) -> SiteState:
        return (await self.gate.states(["shop.example"]))["shop.example"]


def answering(*answers: FetchResponse | FetchFailed) -> Fetch:
    """The first answers in turn, then the last again and again."""
    left = list(answers)

    async def fetch(context: FetchContext) -> FetchResponse:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, FetchFailed):
            raise answer
        return answer

    return fetch


async def test_without_limits_nothing_waits() -> None:
    line = Line(answering(response()))
    assert (await line.get()).status == 200
    assert line.pauses == []
    assert (await line.state()).success_share == 1.0


async def test_hosts_of_one_site_share_its_rate() -> None:
    line = Line(answering(response()), rate=2)
    for host in ("www", "img", "www"):
        await line.get(f"http://{host}.shop.example/")
    await line.get("http://other.example/")
    assert line.pauses == pytest.approx([0.5, 0.5])


async def test_a_long_wait_is_taken_in_steps_so_that_a_new_limit_is_noticed() -> None:
    line = Line(answering(response()), rate=0.1)
    await line.get()
    await line.get()
    assert sum(line.pauses) == pytest.approx(10)
    assert len(line.pauses) > 3
    assert max(line.pauses) <= 5


async def test_a_turn_that_comes_too_late_is_refused_at_once() -> None:
    line = Line(answering(response()), rate=0.1, wait_seconds=5)
    await line.get()
    with pytest.raises(FetchFailed, match=r"shop\.example comes in 10\.0 s") as caught:
        await line.get()
    assert caught.value.reason is ExitReason.FETCH_RATE_LIMITED
    assert caught.value.details["retry_after"] == pytest.approx(10)
    assert line.pauses == []
    assert (await line.state()).waiting == 0


async def test_a_run_that_cannot_wait_gives_its_place_back() -> None:
    line = Line(answering(response()), rate=0.1)

    async def refuse(seconds: float) -> None:
        raise FetchFailed(ExitReason.FETCH_RATE_LIMITED, "the run is over by then", retry_after=seconds)

    await line.get()
    with pytest.raises(FetchFailed) as caught:
        await line.fetch(context_of(FetchRequest(url=URL), Caller(pause=refuse)))
    assert caught.value.details["retry_after"] == pytest.approx(10), "all of the wait, not its first step"
    assert (await line.state()).waiting == 0


async def test_one_who_is_cancelled_while_waiting_gives_its_place_back() -> None:
    line = Line(answering(response()), rate=0.1)
    await line.get()
    waits = asyncio.Event()

    async def wait(seconds: float) -> None:
        waits.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(line.fetch(context_of(FetchRequest(url=URL), Caller(pause=wait))))
    await waits.wait()
    assert (await line.state()).waiting == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await line.state()).waiting == 0


async def test_a_cancelled_fetch_gives_its_seat_back() -> None:
    began = asyncio.Event()

    async def hang(context: FetchContext) -> FetchResponse:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    line = Line(hang, concurrency=1)
    task = asyncio.create_task(line.get())
    await began.wait()
    assert (await line.state()).in_flight == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    found = await line.state()
    assert (found.in_flight, found.recent) == (0, 0)


async def test_a_site_that_fails_is_left_alone() -> None:
    failure = FetchFailed(ExitReason.FETCH_CONNECT, "cannot connect")
    line = Line(answering(failure, failure, response()), breaker_failures=2, breaker_seconds=60)
    for _ in range(2):
        with pytest.raises(FetchFailed, match="cannot connect"):
            await line.get()
    with pytest.raises(FetchFailed, match="left alone") as caught:
        await line.get()
    assert caught.value.reason is ExitReason.FETCH_SITE_DOWN
    assert caught.value.details["retry_after"] == pytest.approx(60)
    line.now += 61
    assert (await line.get()).status == 200
    assert (await line.state()).breaker == "closed"


async def test_a_url_that_cannot_be_read_is_no_site() -> None:
    line = Line(answering(response()))
    with pytest.raises(FetchFailed, match="not a whole URL"):
        await line.get("shop.example")
    assert list(await line.gate.known()) == []


@pytest.mark.parametrize(
    ("answer", "means"),
    [
        (response(200), ("ok", False)),
        (response(404), ("ok", False)),
        (response(403), ("ok", False)),
        (response(500), ("failed", True)),
        (response(502), ("failed", True)),
        (response(429), ("throttled", False)),
        (response(503), ("throttled", True)),
    ],
)
def test_what_a_status_says_of_the_site(answer: FetchResponse, means: tuple[str, bool]) -> None:
    verdict = of_response(answer)
    assert (verdict.answer, verdict.is_failure) == means


@pytest.mark.parametrize(
    ("reason", "means"),
    [
        (ExitReason.FETCH_CONNECT, "failed"),
        (ExitReason.FETCH_TLS, "failed"),
        (ExitReason.FETCH_TIMEOUT, "failed"),
        (ExitReason.FETCH_PROTOCOL, "failed"),
        (ExitReason.FETCH_DNS, "unknown"),
        (ExitReason.FETCH_PROXY, "unknown"),
        (ExitReason.FETCH_BUDGET, "unknown"),
        (ExitReason.FETCH_PRIVATE_ADDRESS, "unknown"),
        (ExitReason.FETCH_BLOCKED, "ok"),
        (ExitReason.FETCH_RATE_LIMITED, "throttled"),
    ],
)
def test_what_a_failure_says_of_the_site(reason: ExitReason, means: str) -> None:
    assert of_failure(FetchRequest(url=URL), FetchPolicy(), FetchFailed(reason, "")).answer == means


def test_a_script_in_a_hurry_says_nothing_of_the_site() -> None:
    failure = FetchFailed(ExitReason.FETCH_TIMEOUT, "")
    assert of_failure(FetchRequest(url=URL, timeout_seconds=0.1), FetchPolicy(), failure).answer == "unknown"
    assert of_failure(FetchRequest(url=URL, timeout_seconds=20), FetchPolicy(), failure).answer == "failed"


def test_a_policy_in_a_hurry_says_nothing_of_the_site() -> None:
    silent, unconnected = (FetchFailed(ExitReason.FETCH_TIMEOUT, "", stage=stage) for stage in ("", "connecting"))
    request = FetchRequest(url=URL)
    assert of_failure(request, FetchPolicy(request_seconds=1), silent).answer == "unknown"
    assert of_failure(request, FetchPolicy(connect_seconds=1), unconnected).answer == "unknown"
    assert of_failure(request, FetchPolicy(connect_seconds=1), silent).answer == "failed"
    patient = FetchRequest(url=URL, timeout_seconds=20)
    assert of_failure(patient, FetchPolicy(request_seconds=1), silent).answer == "failed"


def test_our_own_queue_says_nothing_of_the_site() -> None:
    failure = FetchFailed(ExitReason.FETCH_TIMEOUT, "", stage="waiting for a free connection")
    assert of_failure(FetchRequest(url=URL), FetchPolicy(), failure).answer == "unknown"


def test_a_solver_says_nothing_of_the_latency() -> None:
    assert of_response(response(elapsed_ms=250)).latency == 0.25
    assert of_response(response(elapsed_ms=9000, way="solver")).latency is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("1.5", 1),
        ("99999999", 3600),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 60),
        ("Sun, 06 Nov 1994 08:40:00 GMT", 0),
        ("-5", 0),
        ("soon", 0),
        ("", 0),
        ("٣", 0),
        ("Fri, 99 Xyz 9999 99:99:99 GMT", 0),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str, seconds: float) -> None:
    assert retry_after(text, now=784111717) == seconds


async def test_the_stage_costs_little() -> None:
    line = Line(answering(response()))
    await line.get()
    loop = asyncio.get_running_loop()

    async def best(call: Callable[[], Any]) -> float:
        times = []
        for _ in range(5):
            began = loop.time()
            for _ in range(500):
                await call()
            times.append((loop.time() - began) / 500)
        return min(times)

    bare = answering(response())
    context = context_of(FetchRequest(url=URL))
    added = await best(lambda: line.fetch(context)) - await best(lambda: bare(context))
    assert added < 200e-6, "aims at 50 µs; the bound leaves room for a busy machine"
