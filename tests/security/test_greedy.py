"""Scripts that take too much, all of them at once, through the whole platform."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from scrapeyard.sandbox.handles import session
from tests.security.greedy import GREEDY
from tests.security.yard import Yard, yard

pytestmark = [pytest.mark.security, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]
"""The first test has to wait for every attack."""
ATTACKS = {f"{name}-run": (greed.at_run, greed.run, greed.limits) for name, greed in GREEDY.items()}
ATTACKS |= {f"{name}-load": (greed.at_import, greed.load, greed.limits) for name, greed in GREEDY.items() if greed.load}
MEMORY_GROWTH_MB = 80


@pytest.fixture(scope="module", autouse=True)
def patient_with_deaths() -> Iterator[None]:
    """Why a child died is told by its parent, which may be slow; a child that stays is waited for as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_EXIT_PATIENCE", 20.0)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, dict[str, Any]]]:
    """Every attack once, a few at a time, with good runs in between; the platform is then searched for leavings."""
    folder = tmp_path_factory.mktemp("greedy")
    async with yard(folder, {name: (source, limits) for name, (source, _, limits) in ATTACKS.items()}) as stand:
        before = _resident_mb()
        gate = asyncio.Semaphore(4)

        async def attack(name: str) -> dict[str, Any]:
            async with gate:
                return await stand.run(f"attack/{name}")

        told = await asyncio.gather(*(attack(name) for name in ATTACKS), _good_runs(stand))
        await stand.check()
        found = dict(zip(ATTACKS, told, strict=False))
        found["memory"] = {"grown_mb": _resident_mb() - before}
    yield found


async def _good_runs(stand: Yard) -> dict[str, Any]:
    for _ in range(20):
        assert (await stand.run("attack/good"))["result"] == "good"
    return {}


def _resident_mb() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 / 1024 / 1024


@pytest.mark.parametrize("name", ATTACKS)
async def test_greed_ends_with_the_right_reason(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    _, expected, _ = ATTACKS[name]
    assert outcomes[name]["exit_reason"] in expected, outcomes[name]


async def test_the_worker_does_not_grow(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["memory"]["grown_mb"] < MEMORY_GROWTH_MB
