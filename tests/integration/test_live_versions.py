"""A team pushes while calls run: no call fails, the new version answers soon, and a dead repository stops none."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Struct

from tests.leaks import PATIENCE
from tests.programs import Embedded
from tests.services.git_repository import GitRepository

PER_SECOND = 50
LEAST = 200
AFTER = 50
"""Calls in all, and calls that begin after the new version is known."""
SCRIPT = "async def run(ctx, n: int):\n    return n\n"


class Answer(Struct, frozen=True, kw_only=True):
    """One call."""

    status: int
    version: str
    began: float
    ended: float


@pytest.fixture
def team(tmp_path: Path) -> GitRepository:
    repository = GitRepository(tmp_path)
    repository.scraper("live/echo", "1.0.0", SCRIPT)
    repository.commit()
    return repository


@pytest.fixture
def yard(team: GitRepository, nothing_left: None) -> Iterator[Embedded]:
    rare = {"SCRAPEYARD_REPOSITORY__POLL_SECONDS": "600", "SCRAPEYARD_REPOSITORY__REFRESH_SECONDS": "600"}
    where = {"SCRIPT_REPOSITORY_TYPE": "git", "SCRIPT_REPOSITORY_URL": team.url}
    with Embedded({**rare, **where}) as yard:
        yield yard


async def test_a_push_while_calls_run_is_live_within_two_seconds(yard: Embedded, team: GitRepository) -> None:
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=yard.urls[0], timeout=PATIENCE, trust_env=False, limits=limits) as api:
        warm = await _call(api, 0)
        assert (warm.status, warm.version) == (200, "1.0.0")
        live = asyncio.Event()
        calls = asyncio.create_task(_calls(api, live))
        team.scraper("live/echo", "1.1.0", SCRIPT + "# newer\n")
        await asyncio.to_thread(team.commit)
        asked = time.monotonic()
        assert (await api.post("/api/scrapers/refresh")).status_code == 200
        refreshed = time.monotonic()
        live.set()
        answers = await calls
        pinned = await _call(api, 0, "live/echo@1.0.0")
    assert {answer.status for answer in answers} == {200}
    assert {answer.version for answer in answers} == {"1.0.0", "1.1.0"}
    first = min(answer.ended for answer in answers if answer.version == "1.1.0")
    slowest = max(answer.ended - answer.began for answer in answers)
    assert first - asked < 2 + 2 * slowest, "a machine that is too busy for its calls may take longer"
    assert {answer.version for answer in answers if answer.began > refreshed} == {"1.1.0"}
    assert pinned.version == "1.0.0"


async def test_a_repository_that_dies_stops_nothing(yard: Embedded, team: GitRepository) -> None:
    async with httpx.AsyncClient(base_url=yard.urls[0], timeout=PATIENCE, trust_env=False) as api:
        shutil.move(team.bare, team.bare.with_name("gone"))
        await api.post("/api/scrapers/refresh")
        assert (await _call(api, 1)).status == 200
        listed = (await api.get("/api/scrapers")).json()
        assert [source["stale"] != "" for source in listed["sources"] if source["kind"] == "git"] == [True]
    yard.programs[0].stop()
    again = yard.add()
    yard.ready(again)
    async with httpx.AsyncClient(base_url=yard.urls[0], timeout=PATIENCE, trust_env=False) as api:
        assert (await _call(api, 2)).version == "1.0.0"


async def _calls(api: httpx.AsyncClient, live: asyncio.Event) -> list[Answer]:
    """Fifty begin in each second, whether or not those before have ended."""
    began = time.monotonic()
    calls: list[asyncio.Task[Answer]] = []
    after = 0
    while len(calls) < LEAST or after < AFTER:
        await asyncio.sleep(began + len(calls) / PER_SECOND - time.monotonic())
        after += live.is_set()
        calls.append(asyncio.create_task(_call(api, len(calls))))
    return await asyncio.gather(*calls)


async def _call(api: httpx.AsyncClient, number: int, scraper: str = "live/echo") -> Answer:
    began = time.monotonic()
    response = await api.post("/api/scrape", json={"scraper": scraper, "input": {"n": number}})
    document: dict[str, Any] = response.json()
    assert document.get("result", number) == number
    return Answer(status=response.status_code, version=document.get("version", ""), began=began, ended=time.monotonic())
