"""What scripts ask of the platform besides pages: state between runs, progress, items for their job."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.leaks import PATIENCE
from tests.security.yard import Yard, yard

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
COUNTS = """
async def run(ctx):
    while True:
        before = await ctx.state.get("count", 0)
        if await ctx.state.update("count", before or None, before + 1): return before + 1
"""
COMPARES = """
async def run(ctx):
    await ctx.state.set("flag", {"b": 1, "a": True})
    return [
        await ctx.state.update("flag", {"a": 1, "b": 1}, "wrong"),
        await ctx.state.update("flag", {"a": True, "b": 1}, "right"),
        await ctx.state.get("flag"),
    ]
"""
SLOW = """
import time
def run(ctx, go: bool = False):
    if go: return ctx.state.set("go", "on")
    ctx.progress(3, 10, "pages")
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and ctx.state.get("go") != "on": time.sleep(0.05)
    ctx.progress(10, 10)
"""

WALKS = """
from scrapeyard_sdk import EnqueueError, Retry
async def run(ctx, url: str):
    number = int(url.rpartition("/")[2])
    if number < 8:
        for following in (2 * number, 2 * number + 1, number):
            await ctx.enqueue(f"HTTPS://x.example:443/{following}")
            await ctx.enqueue({"url": f"https://x.example/{following}"})
    try:
        await ctx.enqueue({"link": url})
    except EnqueueError as error:
        assert "no input of attack/walks" in str(error) or "belongs to none" in str(error)
    if number % 3 == 0 and ctx.attempt == 1: raise Retry("again", after=0)
    return number
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Yard]:
    folder: Path = tmp_path_factory.mktemp("services")
    async with yard(
        folder,
        {
            "counts": (COUNTS, {}),
            "compares": (COMPARES, {}),
            "slow": (SLOW, {"wall_seconds": PATIENCE}),
            "walks": (WALKS, {}),
        },
    ) as made:
        yield made


async def test_runs_count_together_without_losing_one(stand: Yard) -> None:
    told = await asyncio.gather(*(stand.run("attack/counts") for _ in range(6)))
    assert sorted(each["result"] for each in told) == [1, 2, 3, 4, 5, 6]
    value = (await stand.client.get("/api/scrapers/attack/counts/state/count")).json()
    assert value["value"] == 6
    await stand.client.delete("/api/scrapers/attack/counts/state")
    assert (await stand.run("attack/counts"))["result"] == 1


async def test_state_is_compared_by_value_and_true_is_not_one(stand: Yard) -> None:
    assert (await stand.run("attack/compares"))["result"] == [False, True, "right"]


async def test_progress_is_in_the_document_while_it_runs_and_after(stand: Yard) -> None:
    call = {"scraper": "attack/slow", "input": {}, "wait": 0}
    here = (await stand.client.post("/api/scrape", json=call)).json()["links"]["self"]

    async def shown() -> Any:
        return (await stand.client.get(here)).json()["progress"]

    async with asyncio.timeout(PATIENCE):
        while await shown() is None:
            await asyncio.sleep(0.02)
    assert await shown() == {"done": 3, "total": 10, "message": "pages"}
    await stand.run("attack/slow", go=True)
    ended = (await stand.client.get(here, params={"wait": PATIENCE})).json()
    assert (ended["status"], ended["progress"]["done"]) == ("succeeded", 10)


async def job_of(stand: Yard, scraper: str, items: list[Any], **policy: Any) -> tuple[dict[str, Any], list[Any]]:
    """A job to its end, and its items."""
    call = {"scraper": scraper, "items": items, "policy": policy}
    made = await stand.client.post("/api/jobs", json=call)
    assert made.status_code == 201, made.text
    here = f"/api/jobs/{made.json()['id']}"
    async with asyncio.timeout(PATIENCE):
        while (job := (await stand.client.get(here)).json())["status"] not in ("completed", "failed", "cancelled"):
            await asyncio.sleep(0.02)
    shown = (await stand.client.get(f"{here}/items", params={"limit": 100})).json()["items"]
    return job, shown


@pytest.mark.parametrize("isolation", ["run", "job"])
async def test_a_script_walks_a_tree_and_every_item_runs_once(stand: Yard, isolation: str) -> None:
    given = [{"url": "https://x.example/1"}]
    job, items = await job_of(stand, "attack/walks", given, isolation=isolation)
    assert job["counts"]["success"] == job["counts"]["total"] == 15
    assert sorted(item["result"] for item in items) == list(range(1, 16))
    assert {item["attempt"] for item in items} == {1, 2}
    by_depth = [item["depth"] for item in items]
    assert [by_depth.count(depth) for depth in (None, 1, 2, 3)] == [1, 2, 4, 8]


async def test_the_limits_of_a_job_end_the_walk(stand: Yard) -> None:
    given = [{"url": "https://x.example/1"}]
    job, _ = await job_of(stand, "attack/walks", given, max_depth=1)
    assert (job["counts"]["total"], "depth of more than 1" in str(job["warnings"])) == (3, True)
    job, _ = await job_of(stand, "attack/walks", given, max_items=6)
    assert (job["counts"]["total"], "limit of 6 items" in str(job["warnings"])) == (6, True)


async def test_outside_of_a_job_there_is_nothing_to_add_to(stand: Yard) -> None:
    told = await stand.run("attack/walks", url="https://x.example/1")
    assert (told["exit_reason"], "belongs to none" in told["detail"]) == ("script_error", True)
