"""What runs and items leave and hold: bytes in PostgreSQL, its log of changes, memory of a slot. For `scrapeyard plan`.

Sizes do not depend on how busy a machine is. Two sizes of content are measured, so that what a row costs by itself is
told apart from what its content costs. Content is random, which no database compresses.
"""

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx

from benchmarks.report import Options, Report, Table, figure

if TYPE_CHECKING:
    from tests.programs import Cluster

PARTS = ("items", "runs", "slots")
_ITEMS = 20_000
_RUNS = 600
_SLOTS = 32
_CONTENT_BYTES = 1024
_SIZES = "SELECT pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"

Say = Callable[[str], None]


def run(options: Options, say: Say) -> Report:
    """Start a cluster for each part and measure what was asked for."""
    from tests.programs import Cluster

    rows: list[tuple[str, str]] = []
    for part in (part for part in PARTS if options.wants(part)):
        say(part)
        with Cluster(gateways=1, workers=1, environment={"SCRAPEYARD_WORKER__SLOTS": str(_SLOTS)}) as cluster:
            rows += _slot(cluster) if part == "slots" else _rows(cluster, part, options.pace)
    table = Table(title="What one leaves and holds", columns=("what", "measured"), rows=tuple(rows))
    return Report(bench="footprint", tables=(table,))


def _rows(cluster: "Cluster", part: str, pace: float) -> list[tuple[str, str]]:
    """Bytes of one without content, and how many more for each byte of content in and out."""
    count = max(100, int((_ITEMS if part == "items" else _RUNS) * pace))
    make = _job if part == "items" else _calls
    make(cluster, 100, 1)  # once unmeasured, so that what is made once is made
    bare, full = (_grown(cluster, make, count, size) for size in (1, _CONTENT_BYTES))
    found = []
    for index, what in enumerate(("in the database", "in its log of changes")):
        each = bare[index] / count
        more = (full[index] - bare[index]) / count / (2 * _CONTENT_BYTES)
        found += [
            (f"{part}: bytes of one {what}", figure(each)),
            (f"{part}: bytes {what} for a byte of content", figure(more)),
        ]
    return found


def _grown(cluster: "Cluster", make: Callable[[Any, int, int], None], count: int, size: int) -> tuple[int, int]:
    before = asyncio.run(_sizes(cluster.postgres.url))
    make(cluster, count, size)
    after = asyncio.run(_sizes(cluster.postgres.url))
    return after[0] - before[0], after[1] - before[1]


async def _sizes(url: str) -> tuple[int, int]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
        row = await connection.fetchrow(_SIZES)
        return int(row[0]), int(row[1])
    finally:
        await connection.close()


def _job(cluster: "Cluster", count: int, size: int) -> None:
    from tests.leaks import until

    rows = "".join(f"k{number},{secrets.token_hex(size // 2)}\n" for number in range(count))
    with cluster.client() as api:
        made = api.post(
            "/api/jobs",
            params={"scraper": "builtin/echo"},
            content=f"item_id,text\n{rows}",
            headers={"Content-Type": "text/csv"},
        )
        address = f"/api/jobs/{made.raise_for_status().json()['id']}"
        until(lambda: api.get(address).json()["status"] == "completed", "the job ends")
        counts = api.get(address).json()["counts"]
    if counts["success"] != count:
        raise RuntimeError(f"items failed: {counts}")


def _calls(cluster: "Cluster", count: int, size: int) -> None:
    with cluster.client() as api, ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda _: _call(api, "builtin/echo", {"text": secrets.token_hex(size // 2)}), range(count)))


def _call(api: httpx.Client, scraper: str, given: dict[str, Any]) -> None:
    answer = api.post("/api/scrape", json={"scraper": scraper, "input": given, "wait": 60})
    answer.raise_for_status()


def _slot(cluster: "Cluster") -> list[tuple[str, str]]:
    """Memory of a worker that rests, and of each child that runs a small script beside others."""
    worker = cluster.workers[0]
    rests = _pss_mb(worker.pid)
    with cluster.client() as api, ThreadPoolExecutor(_SLOTS) as callers:
        asked = [callers.submit(_call, api, "lab/nap", {"seconds": 20}) for _ in range(_SLOTS)]
        from tests.leaks import until

        until(lambda: len(worker.children()) >= _SLOTS * 3 // 4, "most slots are busy")  # a quarter is for `high`
        children = worker.children()
        busy = _pss_mb(worker.pid) + sum(_pss_mb(each.pid) for each in worker.tree())
        for call in asked:
            call.result()
    return [
        ("worker that rests, PSS MB", figure(rests)),
        ("each child with a small script, PSS MB", figure((busy - rests) / len(children))),
    ]


def _pss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
