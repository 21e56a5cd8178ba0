"""Runs of scrapers with packages of their own, through the whole platform in this process, from a local index."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.contract.sandboxes import Traces
from tests.leaks import PATIENCE
from tests.services.package_index import PackageIndex, serve_packages
from tests.services.wheels import write_wheel

SCRIPT = "import tiny\ndef run(ctx): return tiny.VERSION\n"


@dataclass(frozen=True, kw_only=True)
class Stand:
    """A platform with a single slot, an index whose downloads can be held back, and a client."""

    platform: Platform
    index: PackageIndex
    client: httpx.AsyncClient

    async def call(self, scraper: str, wait: float = PATIENCE) -> dict[str, Any]:
        answer = await self.client.post("/api/scrape", json={"scraper": scraper, "input": {}, "wait": wait})
        assert answer.status_code in (200, 202, 502), answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def look(self, run_id: str, wait: float = 0) -> dict[str, Any]:
        answer = await self.client.get(f"/api/scrape/{run_id}", params={"wait": wait})
        told: dict[str, Any] = answer.json()
        return told

    async def workers(self) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = (await self.client.get("/api/workers")).json()["workers"]
        return told


def write_scraper(folder: Path, name: str, source: str, *requirements: str) -> None:
    place = folder / "test" / name
    place.mkdir(parents=True)
    (place / "scraper.py").write_text(source)
    wanted = ", ".join(f'"{each}"' for each in requirements)
    (place / "scraper.toml").write_text(f'id = "test/{name}"\nversion = "1.0.0"\nrequirements = [{wanted}]\n')


@asynccontextmanager
async def running(folder: Path, index: PackageIndex) -> AsyncIterator[Stand]:
    settings = Settings.model_validate(
        {
            "data_dir": folder / "data",
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 1, "drain_seconds": 0, "heartbeat_seconds": 0.2, "lease_seconds": PATIENCE},
            "sandbox": {"load_seconds": PATIENCE},
            "environments": {"index_url": index.url},
        }
    )
    platform = Platform(settings)
    await platform.start()
    try:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            yield Stand(platform=platform, index=index, client=client)
    finally:
        await platform.stop()


@pytest.fixture
async def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "600")
    monkeypatch.setattr("scrapeyard.sandbox.handles.zygote._HELLO_PATIENCE", PATIENCE)
    monkeypatch.setattr("scrapeyard.sandbox.handles.parent._FORK_PATIENCE", PATIENCE)
    for place in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        os.chmod(place, 0o755)
    wheels, scrapers = tmp_path / "wheels", tmp_path / "scrapers"
    for version in (1, 2):
        write_wheel(wheels, "tiny", f"{version}.0", {"tiny.py": f"VERSION = {version}\n"})
    write_scraper(scrapers, "one", SCRIPT, "tiny==1.0")
    write_scraper(scrapers, "two", SCRIPT, "tiny==2.0")
    write_scraper(scrapers, "never", SCRIPT, "tiny==3.0")
    write_scraper(scrapers, "plain", "def run(ctx): return 'plain'\n")
    before = Traces.now()
    with serve_packages(wheels) as index:
        index.gate.clear()
        async with running(tmp_path, index) as made:
            yield made
    await before.check()


async def eventually(found: Callable[[], Awaitable[Any]], what: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (answer := await found()):
            await asyncio.sleep(0.05)
    assert answer, what
    return answer


async def test_packages_are_installed_before_anybody_calls(stand: Stand) -> None:
    assert await asyncio.to_thread(stand.index.asked.wait, PATIENCE)
    stand.index.gate.set()

    async def ready() -> dict[str, Any]:
        (worker,) = await stand.workers()
        states = {name: state["status"] for name, state in worker["environments"].items()}
        wanted = {"test/never@1.0.0": "failed", "test/one@1.0.0": "ready", "test/two@1.0.0": "ready"}
        return worker["environments"] if states == wanted else {}

    built = await eventually(ready, "every environment is built or refused")
    stand.index.gate.clear()
    downloads = len(stand.index.downloads)
    assert (await stand.call("test/one"))["result"] == 1
    assert len(stand.index.downloads) == downloads
    assert (await ready())["test/one@1.0.0"] == built["test/one@1.0.0"], "nothing was built for the call"


async def test_a_run_that_waits_for_packages_holds_no_slot(stand: Stand) -> None:
    waiting = [await stand.call(f"test/{name}", wait=0) for name in ("one", "two", "one", "two")]
    assert await asyncio.to_thread(stand.index.asked.wait, PATIENCE)
    assert (await stand.call("test/plain", wait=PATIENCE))["result"] == "plain", "the only slot is free"

    async def running_all() -> bool:
        return [(await stand.look(run["id"]))["status"] for run in waiting] == ["running"] * 4

    await eventually(running_all, "they run, and wait")

    async def idle() -> bool:
        return (await stand.workers())[0]["busy"] == 0

    await eventually(idle, "its next heartbeat says so too")
    stand.index.gate.set()
    ended = [await stand.look(run["id"], wait=PATIENCE) for run in waiting]
    assert [run["result"] for run in ended] == [1, 2, 1, 2]
    assert all(run["timing"]["environment_ms"] > 1 for run in ended)


async def test_the_second_call_is_as_fast_as_one_without_requirements(stand: Stand) -> None:
    stand.index.gate.set()
    for name, result in (("one", 1), ("two", 2), ("plain", "plain")):
        assert (await stand.call(f"test/{name}"))["result"] == result
    for name in ("one", "two", "plain"):

        async def ahead(name: str = name) -> bool:
            run = await stand.call(f"test/{name}")
            return bool(run["timing"]["forked_ahead"])

        await eventually(ahead, f"{name} starts from a child that was forked ahead")


async def test_a_run_is_cancelled_while_it_waits(stand: Stand) -> None:
    run = await stand.call("test/one", wait=0)
    assert await asyncio.to_thread(stand.index.asked.wait, PATIENCE)
    await stand.client.delete(f"/api/scrape/{run['id']}")
    ended = await stand.look(run["id"], wait=PATIENCE)
    assert ended["status"] == "cancelled"
    stand.index.gate.set()
    assert (await stand.call("test/one"))["result"] == 1, "what it waited for was built all the same"


async def test_what_cannot_be_installed_ends_the_run_with_the_resolvers_words(stand: Stand) -> None:
    run = await stand.call("test/never")
    assert run["exit_reason"] == "scraper_invalid"
    assert "tiny==3.0" in str(run)
    assert "unsatisfiable" in str(run)
    assert "hidden-password" not in str(run)
    assert (await stand.call("test/plain"))["result"] == "plain"


async def test_a_worker_stops_while_runs_wait(stand: Stand) -> None:
    run = await stand.call("test/one", wait=0)
    assert await asyncio.to_thread(stand.index.asked.wait, PATIENCE)
    assert stand.platform.worker is not None
    async with asyncio.timeout(PATIENCE):
        await stand.platform.worker.stop()
    assert (await stand.look(run["id"]))["status"] == "queued", "it was handed back"
