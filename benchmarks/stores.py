"""Jobs on each store beside PostgreSQL, in one run: items a second that are added, and that are run and recorded.

The stores take short turns, so that a slow moment of the machine falls on all. One process adds, hands out and records;
the servers are processes of their own. DynamoDB is an emulator here, written in Python: its share of the processor is
not Amazon's, so the processor time of this process is told beside the rates.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import uvloop
from msgspec import Raw, Struct

from benchmarks.quantiles import median
from benchmarks.report import Options, Report, Table, figure, spread
from scrapeyard.model import ExitReason, Usage, new_id
from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, Job, JobStatus, NewItem
from scrapeyard.settings import LogSettings
from scrapeyard.store.ports.jobs import ITEM_BLOCK
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import configure
from scrapeyard.wiring.backends import store_at

PARTS = ("stores",)
_ITEMS = 2_000
_BATCH = 50
_WORKERS = 4
_BESIDE = "PostgreSQL"
Say = Callable[[str], None]


class Turn(Struct, frozen=True, kw_only=True):
    """One short turn on one store."""

    added: float
    """Items a second."""
    recorded: float
    """Items a second: cut, taken and recorded in batches of 50 by four workers."""
    added_ms: float
    """Processor time of this process for 1,000 items."""
    recorded_ms: float


def run(options: Options, say: Say) -> Report:
    """All stores, in turns."""
    from tests.services.dynamo import DynamoServer
    from tests.services.postgres import PostgresServer

    configure(LogSettings(level="error"))
    with (
        PostgresServer() as postgres,
        DynamoServer() as dynamo,
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        urls = {
            _BESIDE: postgres.url,
            "SQLite": f"sqlite:///{Path(folder) / 'bench.db'}",
            "DynamoDB (emulator)": dynamo.url,
        }
        stores = {name: store_at(url) for name, url in urls.items()}
        return _report(runner.run(_measure(stores, options.rounds, say)))


async def _measure(stores: Mapping[str, Store], rounds: int, say: Say) -> dict[str, list[Turn]]:
    turns: dict[str, list[Turn]] = {name: [] for name in stores}
    async with contextlib.AsyncExitStack() as stack:
        for store in stores.values():
            await store.start()
            stack.push_async_callback(store.stop)
        for number in range(rounds + 1):
            say(f"round {number} of {rounds}")
            for name, store in sorted(stores.items(), reverse=bool(number % 2)):
                turn = await _turn(store)
                if number:  # the first one warms up
                    turns[name].append(turn)
    return turns


async def _turn(store: Store) -> Turn:
    now = time.time()
    job = Job(id=new_id("job"), status=JobStatus.CREATING, scraper="a/b", pinned="a/b@1.0.0", created_at=now)
    await store.jobs.create(job)
    began, spent = time.perf_counter(), time.process_time()
    for block, first in enumerate(range(0, _ITEMS, ITEM_BLOCK)):
        await store.items.add(job.id, [_item(number) for number in range(first, first + ITEM_BLOCK)], block, now)
    added, added_cpu = time.perf_counter() - began, time.process_time() - spent
    await store.jobs.end_reading(job.id, 0, "", now)
    began, spent = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_work(store, job.id, f"worker-{number}") for number in range(_WORKERS)))
    recorded, recorded_cpu = time.perf_counter() - began, time.process_time() - spent
    ended = await store.jobs.get(job.id)
    assert ended is not None
    assert ended.counts.success == _ITEMS
    await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, now)
    await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, now)
    await store.jobs.delete(job.id)
    each = 1_000_000 / _ITEMS
    return Turn(
        added=_ITEMS / added,
        recorded=_ITEMS / recorded,
        added_ms=added_cpu * each,
        recorded_ms=recorded_cpu * each,
    )


async def _work(store: Store, job_id: str, worker: str) -> None:
    while True:
        now = time.time()
        batch = await store.batches.cut(Batch(id=new_id("batch"), job_id=job_id, left=_BATCH, queued_at=now), now)
        if batch is None:
            return
        taken = await store.batches.take(batch.id, worker, now, now + 60)
        assert taken is not None
        await store.batches.record(batch.id, worker, 0, [_outcome(item, now) for item in taken[2]], now)


def _item(number: int) -> NewItem:
    return NewItem(key=f"item-{number}", input=Raw(b'{"url": "http://shop.example/%d"}' % number))


def _outcome(item: BatchItem, now: float) -> ItemOutcome:
    return ItemOutcome(
        seq=item.seq,
        attempt=item.attempt,
        exit_reason=ExitReason.SUCCEEDED,
        result=Raw(b'{"title": "Kettle", "price": 19.99}'),
        result_bytes=35,
        site="shop.example",
        usage=Usage(wall_ms=12.5, requests=1, bytes_received=1000, bytes_by_class={"direct": 1000}),
        started_at=now,
        finished_at=now,
    )


def _report(turns: dict[str, list[Turn]]) -> Report:
    fields = Turn.__struct_fields__
    rows = [
        (name, *(spread([getattr(turn, field) for turn in found]) for field in fields)) for name, found in turns.items()
    ]
    for name, found in turns.items():
        if name != _BESIDE:
            pairs = list(zip(found, turns[_BESIDE], strict=True))
            parts = (
                median([getattr(here, field) / getattr(other, field) for here, other in pairs]) for field in fields
            )
            rows.append((f"{name} / {_BESIDE}", *(figure(part, "x") for part in parts)))
    table = Table(
        title="Items of a job on each store",
        columns=("store", "added/s", "recorded/s", "adding, ms per 1,000", "recording, ms per 1,000"),
        rows=tuple(rows),
        note="Milliseconds are processor time of the process that adds and records. Ratios are medians.",
    )
    return Report(bench="stores", tables=(table,), numbers=dict(turns))
