"""Jobs in a store, and a worker that does by hand what real ones do: takes batches and records what became of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.leader import Dispatcher
from scrapeyard.dispatch.upkeep.finishing import Finish
from scrapeyard.model import ExitReason, Priority, Usage, new_id
from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, Job, JobPolicy, JobStatus, NewItem
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.sql import SqlStore
from tests.integration.gateway_stand import worker
from tests.services.sqlite import migrated

START = 1_800_000_000.0
NOTHING = Usage()
TICK = 0.05


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def always_well(_: BatchItem) -> ExitReason:
    """Every item succeeds."""
    return ExitReason.SUCCEEDED


def always_badly(_: BatchItem) -> ExitReason:
    """The site is down."""
    return ExitReason.FETCH_CONNECT


@dataclass(kw_only=True)
class Writing:
    """Who writes the files of jobs: one that never ends, and one that notes which it wrote."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    written: list[str] = field(default_factory=list)

    async def stuck(self, _: Job) -> None:
        """Begins, and ends with its dispatcher."""
        self.began.set()
        await asyncio.Event().wait()

    async def finish(self, job: Job) -> None:
        """At once."""
        self.written.append(job.id)


@dataclass(kw_only=True)
class JobYard:
    """What a test of the dispatcher's jobs stands on."""

    clock: Clock
    queue: Queue
    store: SqlStore
    dispatcher: Dispatcher
    taken: list[Batch] = field(default_factory=list)
    """Every batch that the worker took."""

    async def job(self, items: int, *, owner: str = "", priority: Priority = Priority.NORMAL, **policy: Any) -> str:
        """A running job with so many items."""
        job_id = new_id("job")
        lane = policy.pop("lane", "default")
        job = Job(
            id=job_id, status=JobStatus.CREATING, scraper="shop/product", pinned="shop/product@1.0.0", owner=owner,
            priority=priority, lane=lane, created_at=self.clock(), policy=JobPolicy(**policy),
        )  # fmt: skip
        assert await self.store.jobs.create(job)
        for block, first in enumerate(range(0, items, 1000)):
            seqs = range(first, min(items, first + 1000))
            new = [NewItem(key=f"k{seq}", input=Raw(b'{"n":%d}' % seq)) for seq in seqs]
            assert await self.store.items.add(job_id, new, block, self.clock()) == len(seqs)
        await self.store.jobs.end_reading(job_id, 0, "", self.clock())
        return job_id

    async def got(self, job_id: str) -> Job:
        """As it stands."""
        job = await self.store.jobs.get(job_id)
        assert job is not None
        return job

    def leading(self, folder: Path, finish: Finish) -> Dispatcher:
        """A dispatcher beside the yard's own, which finishes jobs so."""
        blobs = ObjectBlobs.in_folder(folder / "blobs")
        return Dispatcher(Settings(), self.store, self.queue, blobs, self.clock, finish=finish)

    async def told(self, job_id: str, kind: str) -> list[dict[str, Any]]:
        """Its events of one kind."""
        events = await self.store.events.after(job_id, 0, 5000)
        return [msgspec.json.decode(event.data) for event in events if event.kind == kind]

    async def beat(self, slots: int = 8, **more: Any) -> None:
        """A worker is there."""
        await self.store.workers.beat(worker(slots=slots, seen_at=self.clock(), **more))

    async def take(self, count: int = 1000, worker_id: str = "w1", lane: str = "default") -> list[Batch]:
        """Take batches that wait, and leave them running."""
        found = await self.queue.take([lane], count, list(Priority), 0)
        batches = []
        for delivery in found:
            assert (delivery.priority, delivery.scraper) == (Priority.LOW, "shop/product@1.0.0")
            taken = await self.store.batches.take(delivery.run_id, worker_id, self.clock(), self.clock() + 15)
            if taken is not None:
                assert delivery.job_id == taken[0].job_id
                batches.append(taken[0])
        self.taken += batches
        return batches

    async def work(
        self,
        count: int = 1000,
        *,
        ends: Callable[[BatchItem], ExitReason] = always_well,
        seconds: float = 0.01,
        usage: Usage = NOTHING,
        lane: str = "default",
    ) -> int:
        """Take batches and record all of their items at once; how many items."""
        done = 0
        for delivery in await self.queue.take([lane], count, list(Priority), 0):
            now = self.clock()
            taken = await self.store.batches.take(delivery.run_id, "w1", now, now + 15)
            if taken is None:
                continue
            batch, _, items = taken
            self.taken.append(batch)
            outcomes = [outcome_of(item, ends(item), seconds, now, usage) for item in items]
            assert await self.store.batches.record(batch.id, "w1", 0, outcomes, now) is not None
            done += len(items)
        return done


def outcome_of(item: BatchItem, reason: ExitReason, seconds: float, now: float, usage: Usage) -> ItemOutcome:
    """A final one."""
    used = Usage(
        wall_ms=seconds * 1000, requests=usage.requests, bytes_received=usage.bytes_received,
        bytes_by_class=usage.bytes_by_class,
    )  # fmt: skip
    times = {"started_at": now, "finished_at": now + seconds}
    return ItemOutcome(seq=item.seq, attempt=item.attempt, exit_reason=reason, usage=used, **times)


@asynccontextmanager
async def job_yard(folder: Path, settings: Settings | None = None) -> AsyncIterator[JobYard]:
    """One on SQLite, with a queue in memory and a dispatcher that is worked by hand."""
    clock, queue, store = Clock(), MemoryQueue(), SqlStore(migrated(folder / "jobs.sqlite"))
    async with AsyncExitStack() as stack:
        for part in (store, queue):
            await part.start()
            stack.push_async_callback(part.stop)
        blobs = ObjectBlobs.in_folder(folder / "blobs")
        dispatcher = Dispatcher(settings or Settings(), store, queue, blobs, clock)
        stack.push_async_callback(dispatcher.stop)
        yield JobYard(clock=clock, queue=queue, store=store, dispatcher=dispatcher)


async def feed(yard: JobYard) -> None:
    """One round, a tick later."""
    yard.clock.now += TICK
    await yard.dispatcher.feeder.feed()


async def run_out(yard: JobYard, rounds: int = 1000, **how: Any) -> int:
    """Feed and work until nothing is left; how many items were done."""
    done = 0
    for _ in range(rounds):
        await feed(yard)
        now_done = await yard.work(**how)
        done += now_done
        if not now_done:
            break
    return done


async def settle(yard: JobYard) -> None:
    """Rounds of the duties until what they began has ended."""
    for _ in range(3):
        await yard.dispatcher.round()
        await yard.dispatcher.idle()
