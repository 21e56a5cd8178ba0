"""Runs that a worker claims while the database is slow. Whatever happens meanwhile, none waits for its lease to end."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from scrapeyard.model import Run, RunStatus, new_id
from scrapeyard.queues.deliveries import deliver
from scrapeyard.worker.loop import Worker
from tests.leaks import PATIENCE
from tests.services.batch_yard import ECHO, BatchYard, batch_yard, soon

ENDLESS = "import threading\n\n\ndef run(ctx):\n    threading.Event().wait()\n"


class SlowClaim:
    """The store's `claim`, held before the database does it or before it answers. As in the real one, the database
    goes on when its caller is cancelled."""

    def __init__(self, claim: Any) -> None:
        self.asked, self.done = asyncio.Event(), asyncio.Event()
        self.may_begin, self.may_answer = asyncio.Event(), asyncio.Event()
        self._claim = claim

    async def __call__(self, *given: Any) -> bool:
        return await asyncio.shield(asyncio.create_task(self._work(*given)))

    async def _work(self, *given: Any) -> bool:
        self.asked.set()
        await self.may_begin.wait()
        claimed = bool(await self._claim(*given))
        self.done.set()
        await self.may_answer.wait()
        return claimed


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[BatchYard]:
    settings = {"slots": 1, "heartbeat_seconds": 0.05, "lease_seconds": 600, "drain_seconds": 0}
    async with batch_yard(tmp_path, {"lab/endless": ENDLESS}, worker=settings, browser={"enabled": False}) as yard:
        yield yard


@pytest.fixture
async def claim(yard: BatchYard, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowClaim]:
    claim = SlowClaim(yard.store.runs.claim)
    monkeypatch.setattr(yard.store.runs, "claim", claim)
    yield claim
    claim.may_begin.set()
    claim.may_answer.set()


async def delivered_again(yard: BatchYard, claim: SlowClaim, scraper: str = ECHO) -> str:
    """A run at its second attempt, which the worker begins to claim."""
    run = Run(
        id=new_id("run"), status=RunStatus.QUEUED, scraper=scraper, input=Raw(b"{}"), attempt=2, max_attempts=2,
        created_at=time.time(), queued_at=time.time(),
    )  # fmt: skip
    await yard.store.runs.add([run])
    await the_worker(yard)._queue.publish([deliver(run, redelivered=True)])
    await asyncio.wait_for(claim.asked.wait(), PATIENCE)
    return run.id


def the_worker(yard: BatchYard) -> Worker:
    assert yard.platform.worker is not None
    return yard.platform.worker


async def whole_beat(yard: BatchYard) -> None:
    """Wait for a heartbeat that began after this call, and for its end."""

    async def seen() -> float:
        (worker,) = await yard.store.workers.alive(0)
        return worker.seen_at

    for _ in range(3):
        before = await seen()
        await soon(seen, lambda now, before=before: now > before)


async def ended(yard: BatchYard, run_id: str) -> Run:
    async def look() -> Run:
        run = await yard.store.runs.get(run_id)
        assert run is not None
        return run

    run: Run = await soon(look, lambda run: run.status.is_final)
    return run


async def test_a_heartbeat_does_not_stop_a_run_that_is_being_claimed(yard: BatchYard, claim: SlowClaim) -> None:
    run_id = await delivered_again(yard, claim)
    await whole_beat(yard)
    claim.may_begin.set()
    claim.may_answer.set()
    run = await ended(yard, run_id)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 2)


async def test_a_worker_that_stops_gives_back_what_it_is_claiming(yard: BatchYard, claim: SlowClaim) -> None:
    run_id = await delivered_again(yard, claim, "lab/endless@1.0.0")
    stopping = asyncio.create_task(the_worker(yard).stop())
    await asyncio.wait((stopping,), timeout=0.5)  # time to go wrong; a right one waits for the claim, however long
    claim.may_begin.set()
    claim.may_answer.set()
    await asyncio.wait_for(asyncio.gather(stopping, claim.done.wait()), PATIENCE)
    run = await yard.store.runs.get(run_id)
    assert run is not None
    assert (run.status, run.attempt, run.worker_id) == (RunStatus.QUEUED, 2, "")


async def test_a_run_that_is_cancelled_while_it_is_claimed_ends_at_once(yard: BatchYard, claim: SlowClaim) -> None:
    run_id = await delivered_again(yard, claim)
    claim.may_begin.set()
    await asyncio.wait_for(claim.done.wait(), PATIENCE)
    marked = await yard.store.runs.cancel(run_id, time.time())
    assert marked is not None
    assert marked.status is RunStatus.RUNNING
    the_worker(yard)._cancel_run(run_id)
    claim.may_answer.set()
    assert (await ended(yard, run_id)).status is RunStatus.CANCELLED
