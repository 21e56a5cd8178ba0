"""A job of a million items that has ended, delivered to a table and to Parquet files: records a second, and memory.

The memory of the delivering process is compared with that for a job of a hundredth of the size: it must not grow with
the job. With a pace below 1 (`--quick`) the job has 50,000 items.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Raw

from benchmarks.processes import ROOT, clean_environment
from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard.model import ExitReason
from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, Job, JobStatus, NewItem
from scrapeyard.store.sql import SqlStore

PARTS = ("sql", "parquet")
_URLS: Final = {"sql": "sqlite:///{folder}/warehouse.db", "parquet": "file://{folder}/lake"}
_ITEMS: Final = 1_000_000
_QUICK: Final = 50_000
_MORE_MB: Final = 60.0
_NOW: Final = 1_800_000_000.0
_DATA: Final = Raw(json.dumps({"title": "Kettle " * 8, "price": 12.5, "tags": ["a", "b", "c"] * 5}).encode())

Say = Callable[[str], None]


def run(options: Options, say: Say) -> Report:
    """Deliver a small job and a large one to each kind of sink."""
    items = _ITEMS if options.pace >= 1 else _QUICK
    told: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as name:
        folder = Path(name)
        for size in (items // 100, items):
            say(f"a job of {size:,} items that have ended")
            asyncio.run(_fill(folder / f"{size}.db", size))
        for part in (part for part in PARTS if options.wants(part)):
            small, large = (_delivered(folder, part, size, say) for size in (items // 100, items))
            told[part] = small, large
    return Report(bench="sinks", tables=(_table(told),), goals=tuple(_goals(told)))


def _delivered(folder: Path, part: str, size: int, say: Say) -> dict[str, Any]:
    say(f"{part}: {size:,} items")
    place = folder / f"{part}-{size}"
    place.mkdir()
    for file in folder.glob(f"{size}.db*"):
        shutil.copy(file, place)
    command = [sys.executable, "-m", "benchmarks.peers.sink_delivery", str(place / f"{size}.db")]
    url = _URLS[part].format(folder=place)
    done = subprocess.run(
        [*command, url], cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=True
    )
    shutil.rmtree(place)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if found["records"] != size:
        raise RuntimeError(f"{part}: {found['records']} of {size} records were delivered")
    return found


async def _fill(database: Path, size: int) -> None:
    store = SqlStore(f"sqlite:///{database}", temporary=True)
    await store.start()
    job = Job(id="job_1", status=JobStatus.CREATING, scraper="a/b", pinned="a/b@1.0.0", created_at=_NOW, reading=True)
    await store.jobs.create(job)
    for block, first in enumerate(range(0, size, 1000)):
        new = [NewItem(key=f"item-{n}", input=Raw(b'{"n":%d}' % n)) for n in range(first, min(size, first + 1000))]
        await store.items.add(job.id, new, block, _NOW)
    await store.jobs.end_reading(job.id, 0, "", _NOW)
    for number in range(size):
        cut = await store.batches.cut(Batch(id=f"b{number}", job_id=job.id, left=1000, queued_at=_NOW), _NOW)
        if cut is None:
            break
        taken = await store.batches.take(cut.id, "w1", _NOW, _NOW + 1000)
        if taken is not None:
            await store.batches.record(cut.id, "w1", 0, [_ended(item) for item in taken[2]], _NOW)
    await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, _NOW)
    await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, _NOW)
    await store.stop()


def _ended(item: BatchItem) -> ItemOutcome:
    return ItemOutcome(
        seq=item.seq,
        attempt=1,
        exit_reason=ExitReason.SUCCEEDED,
        result=_DATA,
        result_bytes=len(bytes(_DATA)),
        started_at=_NOW,
        finished_at=_NOW,
    )


def _table(told: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> Table:
    rows = tuple(
        (
            part,
            f"{large['records']:,}",
            figure(large["records"] / large["seconds"]),
            figure(1e6 * large["cpu_seconds"] / large["records"]),
            figure(small["peak_mb"]),
            figure(large["peak_mb"]),
        )
        for part, (small, large) in told.items()
    )
    columns = ("sink", "records", "records/s", "processor µs a record", "MB, a hundredth", "MB, all")
    note = "Of the delivering process; Parquet files are made by one that ends with each file."
    return Table(title="A job that has ended, to a sink", columns=columns, rows=rows, note=note)


def _goals(told: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> list[Goal]:
    return [
        Goal(
            name=f"{part}: memory of a job a hundred times as large",
            measured=large["peak_mb"] - small["peak_mb"],
            bound=_MORE_MB,
            at_least=False,
            unit="MB more",
        )
        for part, (small, large) in told.items()
    ]
