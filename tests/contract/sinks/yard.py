"""A job in a store, workers that end its items by hand, and deliveries to sinks that note what they were given."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import SinkUnavailable
from scrapeyard.model import ExitReason, RunError, new_id
from scrapeyard.model.export import ITEMS_SINK, SinkDelivery
from scrapeyard.model.job import BatchItem, ItemOutcome, Job, JobStatus
from scrapeyard.results.masking import Masking
from scrapeyard.results.sinks.delivery import SinkDeliveries
from scrapeyard.results.sinks.port import RefusedRecord, Repeats, ResultSink, SinkBatch
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_batch, a_job, new_items
from tests.services.job_yard import Clock


class Shelf:
    """A ResultSink that keeps every batch in memory, and fails when it is told to."""

    repeats: Repeats = "same_id"

    def __init__(self, name: str = "one") -> None:
        self.name = name
        self.batches: list[SinkBatch] = []
        self.fails: Exception | None = None
        self.refuses: frozenset[str] = frozenset()
        self.asked = 0

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def check(self) -> str:
        return "a shelf"

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        self.batches.append(batch)
        return [RefusedRecord(item_key=key, why="no room") for key in sorted(self.refuses) if key in keys(batch)]

    def seen(self) -> Counter[str]:
        """How often each item came."""
        return Counter(key for batch in self.batches for key in keys(batch))

    def newest(self) -> dict[str, Any]:
        """The data of each item as it came last."""
        return {each.item_key: msgspec.json.decode(each.data) for batch in self.batches for each in batch.records}


def keys(batch: SinkBatch) -> list[str]:
    """Its items."""
    return [record.item_key for record in batch.records]


AWAY = SinkUnavailable("nobody answers")


class SinkYard:
    """A store, a clock, and sinks."""

    def __init__(self, store: Store, blobs: Blobs, *sinks: ResultSink, **settings: Any) -> None:
        self.store = store
        self.blobs = blobs
        self.clock = Clock()
        self.sinks = {sink.name: sink for sink in sinks}
        self.target = settings.pop("target", {})
        self.options = settings
        self.duty = self.dispatcher()

    def dispatcher(self, store: Any = None, masking: Masking | None = None) -> SinkDeliveries:
        """The duty of another process."""
        one = {
            "url": "sqlite:///not-used.db",
            "batch_records": 10,
            "batch_seconds": 5,
            **self.target,
        }
        targets = [{"name": name, **one} for name in self.sinks if name != ITEMS_SINK]
        settings = Settings.model_validate({"sinks": {"targets": targets, "concurrency": 2, **self.options}})
        return SinkDeliveries(
            settings.sinks,
            self.sinks,
            store or self.store,
            self.blobs,
            self.clock,
            masking=masking,
            spread=lambda: 0.0,
        )

    async def job(self, items: int = 0, sinks: Sequence[str] = ("one",), **given: Any) -> Job:
        """A job that runs."""
        job = a_job(sinks=tuple(sinks), created_at=self.clock(), **given)
        assert await self.store.jobs.create(job)
        for block, first in enumerate(range(0, items, 1000)):
            new = new_items(min(1000, items - first), first)
            await self.store.items.add(job.id, new, block, self.clock())
        await self.store.jobs.end_reading(job.id, 0, "", self.clock())
        return job

    async def work(
        self, job: Job, most: int = 10**9, *, hold: Sequence[int] = (), ends: "Ends | None" = None
    ) -> list[tuple[str, BatchItem]]:
        """End items at this moment; not those to hold, which stay out and are returned."""
        held = []
        while most > 0:
            cut = await self.store.batches.cut(a_batch(job, min(500, most), id=new_id("batch")), self.clock())
            if cut is None:
                break
            taken = await self.store.batches.take(cut.id, "w1", self.clock(), self.clock() + 1e6)
            assert taken is not None
            ready = [self.ended(item, ends) for item in taken[2] if item.seq not in hold]
            held += [(cut.id, item) for item in taken[2] if item.seq in hold]
            assert await self.store.batches.record(cut.id, "w1", 0, ready, self.clock()) is not None
            most -= len(taken[2])
        return held

    async def release(self, held: Sequence[tuple[str, BatchItem]]) -> None:
        """End what was held."""
        for part, (batch_id, item) in enumerate(held, 1):
            assert await self.store.batches.record(batch_id, "w1", part, [self.ended(item)], self.clock()) is not None

    def ended(self, item: BatchItem, ends: "Ends | None" = None) -> ItemOutcome:
        """Well, or as `ends` says."""
        now = self.clock()
        data = msgspec.json.encode({"n": item.seq, "at": now})
        plain: dict[str, Any] = {"exit_reason": ExitReason.SUCCEEDED, "result": Raw(data), "result_bytes": len(data)}
        plain |= {} if ends is None else ends(item)
        return ItemOutcome(seq=item.seq, attempt=item.attempt, started_at=now, finished_at=now, **plain)

    async def finish(self, job: Job) -> None:
        """Its files are written."""
        assert await self.store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, self.clock())
        assert await self.store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, self.clock())

    async def round(self, seconds: float = 0.0, duty: SinkDeliveries | None = None) -> None:
        """Time passes, and the duty has a round."""
        self.clock.now += seconds
        await (duty or self.duty).run_once()
        await (duty or self.duty).idle()

    async def rounds(self, count: int = 12, seconds: float = 5.0) -> None:
        """Several, which are enough for a job of a few batches."""
        for _ in range(count):
            await self.round(seconds)

    async def delivery(self, job: Job, sink: str = "one") -> SinkDelivery:
        """How it stands."""
        return next(each for each in await self.store.sinks.of_jobs([job.id]) if each.sink == sink)


Ends = Callable[[BatchItem], dict[str, Any]]


def badly(_: BatchItem) -> dict[str, Any]:
    """The site is down."""
    return {"exit_reason": ExitReason.FETCH_STATUS, "result": None, "result_bytes": 0, "error": RunError(message="503")}
