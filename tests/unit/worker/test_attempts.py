"""Runs and items take one path: what holds for an attempt at a run holds for one at an item."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.builtin.registry import Builtin
from scrapeyard.builtin.services import with_fetch
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import BlobsUnavailable, FetchFailed
from scrapeyard.model import Delivery, ExitReason, Outcome, RunWait, Scraper, ScraperRef
from scrapeyard.model.job import BatchItem, ItemOutcome, Job, JobPolicy, JobStatus
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.worker.attempts.environments import Prepared
from scrapeyard.worker.attempts.parts import AttemptParts, AttemptPlan
from scrapeyard.worker.attempts.retrying import RetryRules
from scrapeyard.worker.attempts.slots import ParkedRuns, SlotLease, share_out
from scrapeyard.worker.attempts.waiting import SiteWait
from scrapeyard.worker.batches.items import ItemAttempt
from scrapeyard.worker.live_events import LiveEvents
from scrapeyard.worker.runs import Executor

SCRAPER = Scraper(ref=ScraperRef(id="builtin/test", version="1.0.0"), folder=None)
PREPARED = Prepared(scraper=SCRAPER, config={}, hidden=(), environment=None, environment_ms=0.0)
NOW = 1_800_000_000.0
Fetching = Callable[[Caller], Awaitable[FetchResponse]]


class Engine:
    """Does with each fetch what the test says."""

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def fetch(self, _: FetchRequest, caller: Caller) -> FetchResponse:
        return await self._fetching(caller)


class FullBlobs(ObjectBlobs):
    """Stores nothing."""

    async def put(self, *_: Any, **__: Any) -> None:
        raise BlobsUnavailable("the disk is full", retry_after=7)


async def found(*_: Any) -> Prepared:
    return PREPARED


async def intact(_: Scraper) -> bool:
    return True


async def one_page(fetch: Any, given: dict[str, Any]) -> dict[str, Any]:
    if "url" in given:
        await fetch(FetchRequest(url=given["url"]))
    return {"text": "x" * given.get("size", 0)}


def parts_of(fetching: Fetching | None = None, blobs: ObjectBlobs | None = None) -> AttemptParts:
    unused: Any = None
    catalogue: Any = SimpleNamespace(resolve=lambda *_: SCRAPER, verify=intact)
    preparer: Any = SimpleNamespace(prepare=found)
    return AttemptParts(
        catalogue=catalogue,
        preparer=preparer,
        sandbox=unused,
        engine=Engine(fetching) if fetching else unused,
        blobs=blobs or unused,
        builtins={SCRAPER.ref.id: Builtin(scraper=SCRAPER, run=with_fetch(one_page))},
        checker=InputChecker(),
        state=unused,
    )


def seat() -> SlotLease:
    (share,) = share_out(1, 0)
    share.hold("run")
    return SlotLease("run", share, ParkedRuns())


async def run(parts: AttemptParts, given: bytes, attempt: int = 1, answer_in: float | None = None) -> Outcome:
    now = time.time()
    answer_by = None if answer_in is None else now + answer_in
    delivery = Delivery(
        run_id="run_1", scraper="builtin/test", input=Raw(given), attempt=attempt, created_at=now, queued_at=now,
        timeout_seconds=100, answer_by=answer_by,
    )  # fmt: skip
    return await Executor(parts, MemoryQueue(), "worker_1").execute(delivery, seat())


async def item(parts: AttemptParts, given: bytes, attempt: int = 1) -> ItemOutcome:
    job = Job(
        id="job_1", status=JobStatus.RUNNING, scraper="builtin/test", pinned="builtin/test@1.0.0",
        policy=JobPolicy(max_attempts=2), created_at=NOW,
    )  # fmt: skip
    plan = AttemptPlan(
        prepared=PREPARED,
        limits=replace(SCRAPER.limits, wall_seconds=100),
        caller=Caller(scraper=SCRAPER, job_id=job.id, policy=job.policy.fetching),
        retries=RetryRules(max_attempts=2, backoff=job.policy.backoff, awaited=False),
        site_wait=SiteWait(seat()),
    )
    one = BatchItem(seq=0, key="k0", input=Raw(given), attempt=attempt)
    return await ItemAttempt(parts, plan, Sites(()), job, one, is_first=True).run()


def retry_seconds(outcome: Outcome | ItemOutcome) -> float | None:
    """Until the next attempt; None if there is none."""
    if isinstance(outcome, Outcome):
        return outcome.retry_after
    return None if outcome.not_before is None else round(outcome.not_before - outcome.finished_at, 3)


both = pytest.mark.parametrize("attempting", [run, item])


@both
async def test_a_wait_beyond_its_time_is_not_begun_and_it_is_put_back(attempting: Any) -> None:
    seen = []

    async def late(caller: Caller) -> FetchResponse:
        try:
            await caller.pause(101)
        except FetchFailed as error:
            seen.append((error.reason, error.details["retry_after"]))
            raise
        raise AssertionError("it waited")

    outcome = await attempting(parts_of(late), b'{"url": "http://a.test/"}', 2)
    assert seen == [(ExitReason.FETCH_RATE_LIMITED, 101)]
    assert (outcome.exit_reason, outcome.postponed) == (ExitReason.FETCH_RATE_LIMITED, True)
    assert (outcome.attempt, retry_seconds(outcome)) == (2, 101)


@both
async def test_a_site_that_answers_429_costs_an_attempt(attempting: Any) -> None:
    async def refuse(_: Caller) -> FetchResponse:
        raise FetchFailed(ExitReason.FETCH_RATE_LIMITED, "slower", site_status=429, retry_after=30)

    first = await attempting(parts_of(refuse), b'{"url": "http://a.test/"}')
    assert (first.postponed, retry_seconds(first)) == (False, 30)
    last = await attempting(parts_of(refuse), b'{"url": "http://a.test/"}', 2)
    assert (last.postponed, retry_seconds(last)) == (False, None)


@both
async def test_a_result_that_cannot_be_saved_is_tried_again_later(attempting: Any, tmp_path: Path) -> None:
    parts = parts_of(blobs=FullBlobs.in_folder(tmp_path))
    outcome = await attempting(parts, b'{"size": 100000}')
    assert (outcome.exit_reason, outcome.result, outcome.result_bytes) == (ExitReason.INTERNAL_ERROR, None, 0)
    assert "the disk is full" in outcome.error.message
    assert retry_seconds(outcome) == 7
    assert retry_seconds(await attempting(parts, b'{"size": 100000}', 2)) is None


@both
async def test_a_large_result_is_saved_beside_the_outcome(attempting: Any, tmp_path: Path) -> None:
    outcome = await attempting(parts_of(blobs=ObjectBlobs.in_folder(tmp_path)), b'{"size": 100000}')
    assert (outcome.exit_reason, outcome.result) == (ExitReason.SUCCEEDED, None)
    assert (bool(outcome.result_key), outcome.result_bytes) == (True, 100_011)


@pytest.mark.parametrize(
    ("reason", "details", "seconds"),
    [
        (ExitReason.FETCH_SITE_DOWN, {"retry_after": 120.0}, 120),
        (ExitReason.FETCH_BUDGET, {"whose": "job", "budget": "requests", "used": 9, "allowed": 9}, 10),
        (ExitReason.FETCH_BUDGET, {"whose": "run", "budget": "requests", "used": 9, "allowed": 9}, None),
    ],
    ids=["site-down", "job-budget", "own-budget"],
)
async def test_an_item_that_asked_the_site_for_nothing_is_put_back(
    reason: ExitReason, details: dict[str, Any], seconds: float | None
) -> None:
    async def refuse(_: Caller) -> FetchResponse:
        raise FetchFailed(reason, "not now", **details)

    outcome = await item(parts_of(refuse), b'{"url": "http://a.test/"}', 2)
    assert (outcome.attempt, retry_seconds(outcome), outcome.postponed) == (2, seconds, seconds is not None)


def answering(*statuses: int, **headers: str) -> tuple[Fetching, list[int]]:
    left, given = list(statuses), []

    async def answer(_: Caller) -> FetchResponse:
        given.append(left.pop(0) if len(left) > 1 else left[0])
        named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return FetchResponse(
            url="http://a.test/", status=given[-1], headers=named, body=b"", encoding="utf-8", elapsed_ms=1.0
        )

    return answer, given


async def test_a_call_asks_again_for_a_page_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def pause(_: SiteWait, seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(SiteWait, "pause", pause)
    fetching, given = answering(503, 200, retry_after="3")
    outcome = await run(parts_of(fetching), b'{"url": "http://a.test/"}')
    assert (outcome.exit_reason, outcome.attempt, given, waited) == (ExitReason.SUCCEEDED, 1, [503, 200], [3.0])


async def test_a_call_that_waits_for_its_turn_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []

    answer, _ = answering(200)

    async def pause(_: SiteWait, __: float) -> None: ...

    async def wait(caller: Caller) -> FetchResponse:
        assert caller.on_wait is not None
        caller.on_wait("a.test", 0.2)
        await caller.pause(0.2)
        caller.on_wait("a.test", 4.2)
        await caller.pause(2.1)
        return await answer(caller)

    monkeypatch.setattr(SiteWait, "pause", pause)
    monkeypatch.setattr(LiveEvents, "add", lambda _, message: told.append(message))
    await run(parts_of(wait), b'{"url": "http://a.test/"}')
    assert [message for message in told if message["type"] == "waiting"] == [
        {
            "type": "waiting",
            "reason": "site_turn",
            "site": "a.test",
            "seconds": 4.2,
            "message": "the site's turn comes in 4 s",
        }
    ]


async def test_what_a_call_waits_for_is_written_down_until_it_goes_on() -> None:
    noted: asyncio.Queue[tuple[RunWait | None, float]] = asyncio.Queue()
    answer, _ = answering(200)

    async def note(_: str, __: int, ___: object, wait: RunWait | None) -> bool:
        noted.put_nowait((wait, time.time()))
        return True

    async def waits(caller: Caller) -> FetchResponse:
        assert caller.on_wait is not None
        for seconds in (600.0, 600.1, 600.0):  # the same wait, looked at again
            caller.on_wait("a.test", seconds)
        wait, at = await noted.get()
        assert wait is not None
        assert (wait.reason, wait.site, wait.message) == ("site_turn", "a.test", "the site's turn comes in 600 s")
        assert wait.until > at + 60
        assert noted.empty()
        return await answer(caller)

    async def twice(services: Any, given: dict[str, Any]) -> None:
        await one_page(services.fetch, given)
        assert (await noted.get())[0] is None

    runs: Any = SimpleNamespace(note_progress=note)
    builtins = {SCRAPER.ref.id: Builtin(scraper=SCRAPER, run=twice)}
    parts = replace(parts_of(waits), runs=runs, builtins=builtins)
    assert (await run(parts, b'{"url": "http://a.test/"}')).exit_reason is ExitReason.SUCCEEDED


@pytest.mark.parametrize(("answer_in", "asked"), [(2.0, 1), (30.0, 2), (None, 2)], ids=["short", "long", "nobody"])
async def test_a_call_gets_the_error_page_when_its_wait_allows_no_more(
    monkeypatch: pytest.MonkeyPatch, answer_in: float | None, asked: int
) -> None:
    async def pause(_: SiteWait, __: float) -> None:
        return None

    monkeypatch.setattr(SiteWait, "pause", pause)
    fetching, given = answering(500, retry_after="3")
    outcome = await run(parts_of(fetching), b'{"url": "http://a.test/"}', answer_in=answer_in)
    assert (outcome.exit_reason, len(given)) == (ExitReason.SUCCEEDED, asked)


async def test_a_call_takes_other_error_pages_at_once() -> None:
    for status in (400, 403, 404, 410):
        fetching, given = answering(status)
        outcome = await run(parts_of(fetching), b'{"url": "http://a.test/"}')
        assert (outcome.exit_reason, given) == (ExitReason.SUCCEEDED, [status])
