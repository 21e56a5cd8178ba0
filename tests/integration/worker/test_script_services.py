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
SLOW = """
import time
def run(ctx, go: bool = False):
    if go: return ctx.state.set("go", "on")
    ctx.progress(3, 10, "pages")
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and ctx.state.get("go") != "on": time.sleep(0.05)
    ctx.progress(10, 10)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Yard]:
    folder: Path = tmp_path_factory.mktemp("services")
    async with yard(folder, {"counts": (COUNTS, {}), "slow": (SLOW, {"wall_seconds": PATIENCE})}) as made:
        yield made


async def test_runs_count_together_without_losing_one(stand: Yard) -> None:
    told = await asyncio.gather(*(stand.run("attack/counts") for _ in range(6)))
    assert sorted(each["result"] for each in told) == [1, 2, 3, 4, 5, 6]
    value = (await stand.client.get("/api/scrapers/attack/counts/state/count")).json()
    assert value["value"] == 6
    await stand.client.delete("/api/scrapers/attack/counts/state")
    assert (await stand.run("attack/counts"))["result"] == 1


async def test_progress_is_in_the_document_while_it_runs_and_after(stand: Yard) -> None:
    call = {"scraper": "attack/slow", "input": {}, "wait": 0}
    here = (await stand.client.post("/api/scrape", json=call)).json()["links"]["self"]

    async def shown() -> Any:
        return (await stand.client.get(here)).json()["progress"]

    async with asyncio.timeout(PATIENCE):
        while await shown() is None:
            continue
    assert await shown() == {"done": 3, "total": 10, "message": "pages"}
    await stand.run("attack/slow", go=True)
    ended = (await stand.client.get(here, params={"wait": PATIENCE})).json()
    assert (ended["status"], ended["progress"]["done"]) == ("succeeded", 10)
