"""Budgets: what is counted is what was received, and nothing begins beyond a limit."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from structlog.testing import capture_logs

from scrapeyard.engines.budget.meters import Metered, Meters
from scrapeyard.engines.budget.stage import Budgeted, Budgets
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.ledger import Ledger, OwnLedgers, Spent
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Proxy, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import FetchFailed
from scrapeyard.model import BudgetLimits, ExitReason, FetchPolicy
from scrapeyard.settings import BudgetSettings
from scrapeyard.store.ports.operations import Meter
from scrapeyard.store.sql import SqlStore
from tests.services.sqlite import migrated
from tests.stages import context_of

MB = 2**20
REQUEST = FetchRequest(url="http://www.shop.example/")


class Answer(Struct, frozen=True, kw_only=True):
    """What the web does with one request."""

    size: int = 1000
    redirects: int = 0
    repeats: int = 0
    fails: str = ""
    proxy_class: str = ""
    turns: int = 0
    """Of the event loop, before it answers."""


class Web:
    """The innermost stage: answers as told, and knows what it sent."""

    def __init__(self) -> None:
        self.requests = 0
        self.sent = 0

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        request = context.request
        answer = Answer(**(request.headers.get("answer") or {}))  # type: ignore[arg-type]
        self.requests += 1
        for _ in range(answer.turns):
            await asyncio.sleep(0)
        self.requests += answer.repeats + (answer.redirects if not answer.fails else 0)
        self.sent += answer.size
        if answer.fails:
            raise FetchFailed(ExitReason(answer.fails), "as told", bytes_received=answer.size, repeats=answer.repeats)
        return FetchResponse(
            url=request.url,
            status=200,
            headers=(),
            body=b"",
            encoding="utf-8",
            elapsed_ms=1,
            bytes_received=answer.size,
            redirects=("x",) * answer.redirects,
            repeats=answer.repeats,
        )


def asking(answer: Answer) -> FetchRequest:
    told = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return FetchRequest(url=REQUEST.url, headers={"answer": told})  # type: ignore[dict-item]


def way_of(answer: Answer) -> Route:
    if not answer.proxy_class:
        return PLAIN
    return Route(proxy=Proxy(url="http://h:1", name="pool/h:1", proxy_class=answer.proxy_class))  # type: ignore[arg-type]


class Stand:
    """The stages around a web."""

    def __init__(self, jobs: Any = None, **given: Any) -> None:
        self.web = Web()
        self.budgets = Budgets(BudgetSettings(**given), jobs or OwnLedgers())
        self.written: list[Meter] = []
        self.meters = Meters(self)  # type: ignore[arg-type]
        self.metered = Metered(
            self.web, budgets=self.budgets, meters=self.meters, pools=ProxyPools(), clock=lambda: 0.0
        )

    async def put(self, meters: list[Meter]) -> None:
        self.written = meters

    async def fetch(self, caller: Caller, answer: Answer = Answer()) -> FetchResponse:  # noqa: B008  frozen
        async def inner(context: FetchContext) -> FetchResponse:
            return await self.metered(context, way_of(answer))

        return await Budgeted(inner, self.budgets)(context_of(asking(answer), caller))


def caller_of(warn: Any = None, **budget: Any) -> Caller:
    return Caller(run_id="run_1", policy=FetchPolicy(budget=BudgetLimits(**budget)), ledger=Ledger(warn))


_ANSWERS = st.builds(
    Answer,
    size=st.integers(0, 3 * MB),
    redirects=st.integers(0, 2),
    repeats=st.integers(0, 1),
    fails=st.sampled_from(["", "", "", "fetch_timeout", "fetch_too_large", "fetch_proxy"]),
    proxy_class=st.sampled_from(["", "datacenter", "residential", "unlocker"]),
    turns=st.integers(0, 5),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_ANSWERS, max_size=30), st.integers(1, 20), st.integers(0, 2**32))
def test_what_is_counted_is_what_was_received_in_whatever_order(answers: list[Answer], most: int, seed: int) -> None:
    async def main() -> None:
        stand, caller = Stand(), caller_of(requests=most, megabytes=8, residential_megabytes=2)
        tasks = []
        order = random.Random(seed)
        for answer in answers:
            tasks.append(asyncio.create_task(stand.fetch(caller, answer)))
            for _ in range(order.randrange(4)):
                await asyncio.sleep(0)
            if order.random() < 0.1:
                order.choice(tasks).cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [end for end in ends if isinstance(end, FetchFailed) and end.reason is ExitReason.FETCH_BUDGET]
        spent = caller.ledger.spent
        assert spent.bytes == stand.web.sent == sum(caller.ledger.bytes_by_class.values())
        assert spent.requests == stand.web.requests
        assert spent.requests - sum(answer.redirects + answer.repeats for answer in answers) <= most
        residential = sum(caller.ledger.bytes_by_class.get(name, 0) for name in ("residential", "unlocker"))
        assert spent.residential_bytes == residential
        await stand.meters.flush()
        assert sum(row.bytes for row in stand.written) == stand.web.sent
        assert sum(row.requests for row in stand.written) == stand.web.requests
        assert not refused or spent.requests >= most or spent.bytes >= 8 * MB or residential >= 2 * MB

    asyncio.run(main())


async def test_connections_that_go_on_are_stopped_by_bytes_and_not_by_requests() -> None:
    budgets = Budgets(BudgetSettings(), OwnLedgers())
    caller = caller_of(requests=1, megabytes=3, residential_megabytes=1)
    await budgets.begin(caller)
    await budgets.flow(caller, size=2 * MB)
    with pytest.raises(FetchFailed) as stopped:
        await budgets.flow(caller, "residential", size=MB)
    assert stopped.value.details["budget"] == "megabytes"
    of_job = Caller(job_id="job_1", job_budget=BudgetLimits(requests=1, megabytes=3))
    await budgets.begin(of_job)
    await budgets.flow(of_job, size=2 * MB)
    other = Caller(job_id="job_1", job_budget=of_job.job_budget)
    with pytest.raises(FetchFailed) as shared:
        await budgets.flow(other, size=MB)
    assert shared.value.details["whose"] == "job"
    assert (caller.ledger.spent.bytes, other.ledger.spent.bytes) == (3 * MB, MB)


async def test_the_request_beyond_the_limit_does_not_begin() -> None:
    stand, caller = Stand(), caller_of(requests=3)
    for _ in range(3):
        await stand.fetch(caller)
    with pytest.raises(FetchFailed, match=r"budget of 3 requests is used up; raise policy\.budget\.requests") as failed:
        await stand.fetch(caller)
    assert (failed.value.reason, failed.value.reason.retryable) == (ExitReason.FETCH_BUDGET, False)
    assert (stand.web.requests, caller.ledger.spent.requests) == (3, 3)


async def test_an_answer_that_goes_beyond_is_delivered_and_counted() -> None:
    stand, caller = Stand(), caller_of(megabytes=1)
    response = await stand.fetch(caller, Answer(size=5 * MB))
    assert response.bytes_received == caller.ledger.spent.bytes == 5 * MB
    with pytest.raises(FetchFailed, match="budget of 1 megabytes"):
        await stand.fetch(caller)


async def test_of_many_at_once_no_more_begin_than_may() -> None:
    stand, caller = Stand(), caller_of(requests=10)
    ends = await asyncio.gather(*(stand.fetch(caller, Answer(turns=3)) for _ in range(50)), return_exceptions=True)
    assert sum(isinstance(end, FetchFailed) for end in ends) == 40
    assert stand.web.requests == 10


@pytest.mark.parametrize(("operator", "asked", "holds"), [(5, 3, 3), (3, 5, 3), (0, 5, 5), (3, None, 3)])
async def test_the_smaller_of_the_operators_and_the_policys_holds(operator: int, asked: int | None, holds: int) -> None:
    stand, caller = Stand(requests=operator), caller_of(requests=asked)
    ends = await asyncio.gather(*(stand.fetch(caller) for _ in range(9)), return_exceptions=True)
    assert sum(isinstance(end, FetchResponse) for end in ends) == holds


async def test_without_limits_nothing_is_refused_and_everything_counted() -> None:
    stand, caller = Stand(), caller_of()
    for _ in range(20):
        await stand.fetch(caller, Answer(size=MB))
    assert caller.ledger.spent == Spent(requests=20, bytes=20 * MB)


async def test_residential_bytes_bind_only_who_would_use_more() -> None:
    stand, caller = Stand(), caller_of(residential_megabytes=0)
    await stand.fetch(caller, Answer(proxy_class="datacenter"))
    with pytest.raises(FetchFailed, match="0 residential megabytes"):
        await stand.fetch(caller, Answer(proxy_class="unlocker"))
    await stand.fetch(caller)
    assert caller.ledger.bytes_by_class == {"datacenter": 1000, "direct": 1000}


async def test_seconds_add_up() -> None:
    stand, caller = Stand(), caller_of(seconds=10)
    moments = iter([0.0, 4.0, 10.0, 17.0])
    stand.metered._clock = lambda: next(moments)
    await stand.fetch(caller)
    await stand.fetch(caller)
    assert caller.ledger.spent.seconds == 11
    with pytest.raises(FetchFailed, match="10 seconds in fetches"):
        await stand.fetch(caller)


async def test_a_failed_request_costs_what_it_received() -> None:
    stand, caller = Stand(), caller_of()
    with pytest.raises(FetchFailed, match="as told"):
        await stand.fetch(caller, Answer(fails="fetch_too_large", size=777))
    assert caller.ledger.spent == Spent(requests=1, bytes=777)


async def test_the_author_and_the_log_are_warned_once_of_each_budget() -> None:
    lines: list[str] = []
    stand, caller = Stand(warn_share=0.5), caller_of(lines.append, requests=4, megabytes=100)
    with capture_logs() as logs:
        for _ in range(4):
            await stand.fetch(caller)
    assert lines == ["2 of the run's budget of 4 requests are used up"]
    (event,) = logs
    assert (event["event"], event["run"], event["budget"]) == ("budget.nearly_used", "run_1", "requests")


class TestJobs:
    def caller(self, **budget: Any) -> Caller:
        return Caller(run_id="run_1", job_id="job_1", job_budget=BudgetLimits(**budget))

    async def test_all_runs_of_a_job_share_its_budget(self) -> None:
        stand = Stand()
        ends = await asyncio.gather(
            *(stand.fetch(self.caller(requests=7), Answer(turns=2)) for _ in range(20)), return_exceptions=True
        )
        assert sum(isinstance(end, FetchResponse) for end in ends) == stand.web.requests == 7
        (refused, *_) = [end for end in ends if isinstance(end, FetchFailed)]
        assert "job's budget of 7 requests" in refused.message

    async def test_a_run_that_its_job_refuses_is_not_charged(self) -> None:
        stand, caller = Stand(), self.caller(requests=1)
        await stand.fetch(caller)
        later = self.caller(requests=1)
        with pytest.raises(FetchFailed):
            await stand.fetch(later)
        with pytest.raises(FetchFailed):
            await stand.budgets.begin(later)
        assert later.ledger.spent == Spent()

    async def test_the_job_is_warned_of_once(self) -> None:
        stand = Stand()
        with capture_logs() as logs:
            for _ in range(10):
                await stand.fetch(self.caller(requests=10))
        assert [(line["whose"], line["used"]) for line in logs] == [("job", 8)]


async def test_meters_survive_a_store_that_is_away(tmp_path: Any) -> None:
    store = SqlStore(migrated(tmp_path / "meters.db"))
    meters = Meters(store.meters, clock=lambda: 1_769_817_600.0)
    meters.count(site="shop.example", size=10)
    with capture_logs() as logs:
        await meters.flush()
        await meters.flush()
    assert [line["event"] for line in logs] == ["meters.not_written"]
    await store.start()
    try:
        meters.count(site="shop.example", size=5, failures=1)
        await meters.flush()
        await meters.flush()
        (use,) = await store.meters.use(["site", "day"], "2026-01-01")
        assert (use.day, use.requests, use.failures, use.bytes) == ("2026-01-31", 2, 1, 15)
    finally:
        await store.stop()


async def test_meters_hold_a_bounded_number_and_lose_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.engines.budget.meters.MOST", 10)
    store = SqlStore(migrated(tmp_path / "meters.db"))
    meters = Meters(store.meters)
    for n in range(100):
        meters.count(site=f"s{n}.example", size=1)
    assert len(meters._rows) <= 21
    await store.start()
    try:
        await meters.flush()
        assert not meters._rows
        for n in range(100):
            meters.count(site=f"s{n % 3}.example", size=1)
        await meters.flush()
        (use,) = await store.meters.use([], "2026-01-01")
        assert (use.requests, use.bytes) == (200, 200)
    finally:
        await store.stop()
