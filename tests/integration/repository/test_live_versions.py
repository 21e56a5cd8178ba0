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

AT_ONCE = 8
LEAST = 60
AFTER = 40
"""Calls under way at any time, calls before the push, and calls that begin after the new version is known."""
SCRIPT = "async def run(ctx, n: int):\n    return n\n"


class Answer(Struct, frozen=True, kw_only=True):
    """One call."""

    status: int
    version: str
    began: float


@pytest.fixture
def team(tmp_path: Path) -> GitRepository:
    repository = GitRepository(tmp_path)
    repository.scraper("live/echo", "1.0.0", SCRIPT)
    repository.commit()
    return repository


@pytest.fixture
def yard(team: GitRepository, nothing_left: None) -> Iterator[Embedded]:
    times = {"POLL": "600", "REFRESH": "600", "TIMEOUT": "120"}
    rare = {f"SCRAPEYARD_REPOSITORY__{name}_SECONDS": seconds for name, seconds in times.items()}
    where = {"SCRIPT_REPOSITORY_TYPE": "git", "SCRIPT_REPOSITORY_URL": team.url}
    with Embedded({**rare, **where}) as yard:
        yield yard


async def test_a_push_while_calls_run_is_live_within_two_seconds(yard: Embedded, team: GitRepository) -> None:
    """Nothing else has it looked at: without the call it would take ten minutes."""
    async with httpx.AsyncClient(base_url=yard.urls[0], timeout=PATIENCE, trust_env=False) as api:
        warm = await _call(api, 0)
        assert (warm.status, warm.version) == (200, "1.0.0")
        calls = Calls(api)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(calls.make())
            await calls.begun(LEAST)
            team.scraper("live/echo", "1.1.0", SCRIPT + "# newer\n")
            await asyncio.to_thread(team.commit)
            assert (await api.post("/api/scrapers/refresh")).status_code == 200
            refreshed = time.monotonic()
            await calls.begun(calls.count + AFTER)
            calls.stop()
        answers = calls.answers
        pinned = await _call(api, 0, "live/echo@1.0.0")
    assert {answer.status for answer in answers} == {200}
    assert {answer.version for answer in answers} == {"1.0.0", "1.1.0"}
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


class Calls:
    """One after the other, several at once."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api
        self._changed = asyncio.Condition()
        self._over = False
        self.count = 0
        """That began."""
        self.answers: list[Answer] = []

    async def make(self) -> None:
        """Until `stop`."""
        await asyncio.gather(*(self._keep_calling() for _ in range(AT_ONCE)))

    def stop(self) -> None:
        """Those under way are answered still."""
        self._over = True

    async def begun(self, count: int) -> None:
        """Wait until so many have."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.count >= count)

    async def _keep_calling(self) -> None:
        while not self._over:
            async with self._changed:
                self.count += 1
                self._changed.notify_all()
            self.answers.append(await _call(self._api, self.count))


async def _call(api: httpx.AsyncClient, number: int, scraper: str = "live/echo") -> Answer:
    began = time.monotonic()
    response = await api.post("/api/scrape", json={"scraper": scraper, "input": {"n": number}, "wait": PATIENCE})
    document: dict[str, Any] = response.json()
    assert document.get("result", number) == number
    return Answer(status=response.status_code, version=document.get("version", ""), began=began)
