"""A job on a cluster that is hurt at random, and the account of it."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from scrapeyard.wiring.backends import store_at
from tests.chaos.disturb import DISTURBANCES
from tests.job_calls import FINAL, STATES, Jobs, Watcher, adds_up
from tests.leaks import PATIENCE, until
from tests.programs import Cluster

WAYS = ("worker", "child", "parent", "zygote", "gateway", "dispatcher", "redis", "postgres", "redis-restart")
ON_AWS = (*(way for way in WAYS if way != "postgres"), "frozen-database")
"""Where the servers hold everything in memory: what a stop loses there, Amazon does not."""
EXPORTS = [{"type": "records", "format": "jsonl"}, {"type": "full", "format": "csv"}]
PATIENT = {"retries": 10, "backoff": {"kind": "linear", "first_seconds": 1}}


@dataclass(kw_only=True)
class Account:
    """What a job came to."""

    hurts: list[str] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)
    samples: int = 0
    seconds: float = 0.0
    again: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def summary(self, name: str) -> str:
        """One line."""
        return (
            f"{name}: {self.job.get('counts')} ends={dict(self.ends)} again={self.again} samples={self.samples} "
            f"hurts={dict(Counter(self.hurts))} {self.seconds:.0f} s, {len(self.faults)} faults"
        )


async def play(
    cluster: Cluster,
    *,
    items: int,
    seconds: float,
    seed: int,
    ways: Sequence[str] = WAYS,
    hurts: int,
    every: tuple[float, float],
    within: float,
) -> Account:
    """Run a job of `items` that take `seconds` each; hurt at most `hurts` times while it goes on; look at what it came
    to. With fewer hurts than ways, each way is used once."""
    chance, began = random.Random(seed), time.monotonic()
    account = Account()
    with cluster.client() as api:
        job_id = await asyncio.to_thread(create, Jobs(api), items, seconds)
    planned = list(ways[:hurts]) if hurts <= len(ways) else [chance.choice(ways) for _ in range(hurts)]
    with Watcher(lambda: cluster.urls, [job_id]).watching() as watcher:
        for way in planned:
            await asyncio.sleep(chance.uniform(*every))
            if await asyncio.to_thread(_ended, cluster, job_id):
                break
            account.hurts.append(way)
            await DISTURBANCES[way](cluster, chance)
        await asyncio.to_thread(cluster.wait_until_up)
        await asyncio.to_thread(settle_job, cluster, job_id, account, within)
    account.seconds = time.monotonic() - began
    account.samples, account.faults = watcher.samples, account.faults + watcher.faults
    await _recount(cluster, job_id, account)
    return account


def create(jobs: Jobs, items: int, seconds: float) -> str:
    """A job whose items take so long each. Workers and children that are lost must not use up an item's attempts:
    how often one is hit is luck."""
    rows = ({"item_id": f"k{n}", "n": n, "seconds": seconds, "url": f"http://shop.example/{n}"} for n in range(items))
    return jobs.upload(rows, "lab/count", policy={"isolation": "job", **PATIENT}, exports=EXPORTS)


def _ended(cluster: Cluster, job_id: str) -> bool:
    """Whether some gateway says so; what is away just now is asked later."""
    for url in cluster.urls:
        with contextlib.suppress(httpx.TransportError, httpx.TimeoutException):
            answer = httpx.get(f"{url}/api/jobs/{job_id}", timeout=PATIENCE, trust_env=False, verify=False)
            if answer.status_code == 200:
                return answer.json()["status"] in FINAL
    return False


def settle_job(cluster: Cluster, job_id: str, account: Account, within: float) -> None:
    """Wait for the job's end, and look at its items, manifest and exports."""
    with cluster.client() as api:
        jobs = Jobs(api)
        try:
            until(lambda: _ended(cluster, job_id), "the job ends", within)
        except AssertionError as fault:
            account.faults.append(f"not ended: {fault}")
            account.job = jobs.get(job_id)
            return
        account.job = jobs.get(job_id)
        _check_items(jobs, job_id, account)
        _check_files(jobs, job_id, account)


def _check_items(jobs: Jobs, job_id: str, account: Account) -> None:
    """Every item is listed once with one outcome, and the counts are the listing's."""
    items, counts = jobs.items(job_id), account.job["counts"]
    account.ends = Counter(item["exit_reason"] for item in items)
    account.again = sum(item["attempt"] > 1 for item in items)
    states = Counter(item["status"] for item in items)
    if account.job["status"] != "completed" or not adds_up(counts):
        account.faults.append(f"{account.job['status']}: {counts}")
    if [item["id"] for item in items] != [f"k{n}" for n in range(counts["total"])]:
        account.faults.append(f"{len(items)} items are listed, of {counts['total']}, or not in order")
    if {state: states[state] for state in STATES} != {state: counts[state] for state in STATES}:
        account.faults.append(f"counted {counts}, listed {states}")
    if strange := set(account.ends) - {"succeeded"}:
        account.faults.append(f"items ended as {strange}")
    account.faults += [
        f"{item['id']} has the result {item['result']}"
        for number, item in enumerate(items)
        if item["status"] == "success" and item["result"]["square"] != number * number
    ]


def _check_files(jobs: Jobs, job_id: str, account: Account) -> None:
    """Manifest and exports hold every item once."""
    total, succeeded = account.job["counts"]["total"], account.ends["succeeded"]
    if [entry["item_id"] for entry in jobs.manifested(job_id)] != [f"k{n}" for n in range(total)]:
        account.faults.append("the manifest does not hold every item once")
    files = jobs.exported(job_id)
    if Counter(row["url"] for row in files["csv"]) != Counter(f"http://shop.example/{n}" for n in range(total)):
        account.faults.append(f"the full export has {len(files['csv'])} rows, not every item once")
    found = Counter(row["n"] for row in files["jsonl"])
    if len(found) != succeeded or max(found.values()) > 1:
        account.faults.append(f"the records export has {len(files['jsonl'])} rows for {succeeded} successes")


async def _recount(cluster: Cluster, job_id: str, account: Account) -> None:
    """Counted from the rows, it is the same."""
    store = store_at(cluster.database.url)
    await store.start()
    try:
        job, rows = await store.jobs.get(job_id), await store.items.recount(job_id)
        if job is None or job.counts != rows:
            account.faults.append(f"counted {job and job.counts}, rows say {rows}")
    finally:
        await store.stop()
