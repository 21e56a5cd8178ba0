"""Scrapers at the gateway's door: versions, freshness, environments, refreshes, hooks, metrics."""

import asyncio
import hashlib
import hmac
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.model import EnvironmentState, EnvironmentStatus, Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import RepositorySettings, Settings
from tests.integration.gateway_stand import Stand, open_stand, worker, write_scraper
from tests.leaks import PATIENCE

SECRET = "a long secret"
HERE = "/api/scrapers/shop/product"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    write_scraper(tmp_path, "1.5.0-rc.1", "shop/candidate")
    write_scraper(tmp_path, "1.4.1", "shop/before")
    async with open_stand(tmp_path, Settings(repository=RepositorySettings(hook_secret=SECRET))) as opened:
        yield opened


async def get(stand: Stand, path: str, status: int = 200, **query: str) -> Any:
    response = await stand.client.get(path, params=query)
    assert response.status_code == status, response.text
    return response.json()


async def test_a_scraper_is_described_at_the_version_that_a_call_gets(stand: Stand) -> None:
    described = await get(stand, HERE)
    assert described["version"] == "1.4.2"
    assert (described["source"], described["stale"], described["all_channels"]) == ("scrapers", "", {})
    assert described["place"]
    assert described["environment"] == {"status": "none", "problem": "", "workers": []}
    assert described["freshness"]["kind"] == "folder"
    assert described["freshness"]["checked_at"].endswith("Z")
    versions = [(each["version"], each["prerelease"], each["valid"]) for each in described["versions"]]
    assert versions == [("1.5.0-rc.1", True, True), ("1.4.2", False, True), ("1.4.1", False, True)]
    digests = {each["version"]: each["digest"] for each in described["versions"]}
    assert digests["1.4.2"] == described["digest"] != digests["1.4.1"]


async def test_the_files_of_a_version_are_read_as_they_run(stand: Stand, tmp_path: Path) -> None:
    read = await get(stand, f"{HERE}/source")
    assert (read["scraper"], read["entry"], read["more"]) == ("shop/product@1.4.2", "scraper.py:run", False)
    assert read["digest"] == (await get(stand, HERE))["digest"]
    files = {file["name"]: file for file in read["files"]}
    assert 'version = "1.4.2"' in files["scraper.toml"]["text"]
    assert "def run" in files["scraper.py"]["text"]
    older = {file["name"]: file["text"] for file in (await get(stand, f"{HERE}/source", version="1.4.1"))["files"]}
    assert 'version = "1.4.1"' in older["scraper.toml"]
    assert (await get(stand, "/api/scrapers/builtin/page/source", 404))["code"] == "not_found"
    assert (await get(stand, f"{HERE}/source", 404, version="9.9.9"))["code"] == "scraper_not_found"


async def test_a_file_that_is_no_text_or_large_is_only_named(stand: Stand, tmp_path: Path) -> None:
    write_scraper(tmp_path, "1.6.0", "shop/large")
    folder = next(path.parent for path in tmp_path.rglob("scraper.toml") if "1.6.0" in path.read_text("utf-8"))
    (folder / "picture.bin").write_bytes(b"\xff\x00")
    (folder / "long.txt").write_text("x" * (256 * 1024 + 1))
    (folder / ".env").write_text("KEY=hush")
    await stand.client.post("/api/scrapers/refresh")
    files = {file["name"]: file for file in (await get(stand, f"{HERE}/source", version="1.6.0"))["files"]}
    assert (files["picture.bin"]["text"], files["long.txt"]["text"]) == (None, None)
    assert files["long.txt"]["size"] == 256 * 1024 + 1
    assert ".env" not in files


@pytest.mark.parametrize(("wanted", "version"), [("1.4.1", "1.4.1"), ("~1.4", "1.4.2"), ("beta", "1.5.0-rc.1")])
async def test_another_version_a_range_or_a_channel_may_be_described(stand: Stand, wanted: str, version: str) -> None:
    assert (await get(stand, HERE, version=wanted))["version"] == version


@pytest.mark.parametrize(
    ("wanted", "status", "code"),
    [("9.9.9", 404, "scraper_not_found"), ("^^1", 400, "bad_request"), ("a/b", 422, "invalid")],
)
async def test_a_version_that_is_not_there_is_a_problem(stand: Stand, wanted: str, status: int, code: str) -> None:
    assert (await get(stand, HERE, status, version=wanted))["code"] == code


async def test_the_listing_is_filtered_and_tells_its_sources(stand: Stand) -> None:
    document = await get(stand, "/api/scrapers")
    own = [each["version"] for each in document["scrapers"] if not each["builtin"]]
    assert own == ["1.4.1", "1.4.2", "1.5.0-rc.1"]
    (source,) = document["sources"]
    assert (source["name"], source["kind"], source["scrapers"], source["stale"]) == ("scrapers", "folder", 3, "")
    builtins = {each["id"] for each in (await get(stand, "/api/scrapers", site="builtin"))["scrapers"]}
    assert builtins == {"builtin/document", "builtin/extract", "builtin/map", "builtin/page"}
    assert len((await get(stand, "/api/scrapers", q="PRICE of one"))["scrapers"]) == 3
    assert (await get(stand, "/api/scrapers", q="nothing like it"))["scrapers"] == []
    assert (await get(stand, "/api/scrapers", 422, site="NO"))["code"] == "invalid"


async def test_an_invalid_scraper_is_described_with_its_problem(stand: Stand, tmp_path: Path) -> None:
    home = write_scraper(tmp_path, "2.0.0", "shop/broken")
    (home / "scraper.py").write_text("def run(:")
    await stand.client.post("/api/scrapers/refresh")
    described = await get(stand, HERE)
    assert (described["version"], described["valid"], described["limits"]) == ("2.0.0", False, None)
    assert described["problem"]
    assert (await get(stand, HERE, version="1.4.2"))["valid"] is True


async def test_a_source_that_is_away_is_marked_stale_everywhere(stand: Stand, tmp_path: Path) -> None:
    shutil.move(tmp_path / "scrapers", tmp_path / "gone")
    assert (await stand.client.post("/api/scrapers/refresh")).status_code == 200
    document = await get(stand, "/api/scrapers")
    reason = document["sources"][0]["stale"]
    assert "cannot be read" in reason
    assert [each["stale"] for each in document["scrapers"] if each["source"]] == [reason] * 3
    assert (await get(stand, HERE))["stale"] == reason
    metrics = (await stand.client.get("/metrics")).text
    assert 'scrapeyard_repository_stale{source="scrapers"} 1.0' in metrics
    shutil.move(tmp_path / "gone", tmp_path / "scrapers")
    await stand.client.post("/api/scrapers/refresh")
    assert (await get(stand, HERE))["stale"] == ""
    assert 'scrapeyard_repository_stale{source="scrapers"} 0.0' in (await stand.client.get("/metrics")).text


async def test_the_environment_is_the_worst_that_workers_tell(stand: Stand, tmp_path: Path) -> None:
    home = write_scraper(tmp_path, "1.6.0", "shop/needy")
    manifest = (home / "scraper.toml").read_text()
    (home / "scraper.toml").write_text(manifest.replace("description", 'requirements = ["tiny==1"]\ndescription'))
    await stand.client.post("/api/scrapers/refresh")
    assert (await get(stand, HERE))["environment"]["status"] == "unknown"
    name = "shop/product@1.6.0"
    ready = EnvironmentState(status=EnvironmentStatus.READY, key="k", size_bytes=10, built_at=1700000000.0)
    failed = EnvironmentState(status=EnvironmentStatus.FAILED, problem="no such package")
    await stand.store.workers.beat(worker(id="worker_1", environments={name: ready}))
    assert (await get(stand, HERE))["environment"]["status"] == "ready"
    await stand.store.workers.beat(worker(id="worker_2", environments={name: failed}))
    told = (await get(stand, HERE))["environment"]
    assert (told["status"], told["problem"]) == ("failed", "no such package")
    assert [(each["worker"], each["status"]) for each in told["workers"]] == [
        ("worker_1", "ready"),
        ("worker_2", "failed"),
    ]
    workers = (await get(stand, "/api/workers"))["workers"]
    assert workers[0]["environments"][name]["built_at"] == "2023-11-14T22:13:20.000Z"


async def test_the_environment_is_unknown_while_the_store_is_away(stand: Stand, tmp_path: Path) -> None:
    home = write_scraper(tmp_path, "1.6.0", "shop/needy")
    manifest = (home / "scraper.toml").read_text()
    (home / "scraper.toml").write_text(manifest.replace("description", 'requirements = ["tiny==1"]\ndescription'))
    await stand.client.post("/api/scrapers/refresh")
    await stand.store.stop()
    try:
        assert (await get(stand, HERE))["environment"]["status"] == "unknown"
    finally:
        await stand.store.start()


def signed(body: bytes, event: str = "push", secret: str = SECRET) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={signature}"}


async def test_a_hook_is_answered_at_once_and_makes_everyone_look(stand: Stand, tmp_path: Path) -> None:
    write_scraper(tmp_path, "1.7.0", "shop/pushed")
    body = b'{"ref": "refs/heads/main"}'
    async with stand.queue.listen(messages.SIGNALS) as signals:
        answered = await stand.client.post("/api/scrapers/refresh", content=body, headers=signed(body))
        assert (answered.status_code, answered.json()) == (202, {"event": "push", "refreshing": True})
        assert messages.decode_signal(await anext(signals)) == Refresh(sender="gw1")
    async with asyncio.timeout(PATIENCE):
        while (await get(stand, HERE))["version"] != "1.7.0":
            await asyncio.sleep(0.02)


async def test_a_hook_that_does_not_know_the_secret_is_refused(stand: Stand) -> None:
    body = b"{}"
    for headers in (signed(body, secret="other"), {"X-Gitlab-Token": "other"}, {"X-Gitea-Event": "push"}):
        refused = await stand.client.post("/api/scrapers/refresh", content=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "hook_refused")
        assert SECRET not in refused.text


async def test_a_ping_is_answered_and_does_nothing(stand: Stand) -> None:
    body = b'{"zen": "quiet"}'
    before = (await get(stand, "/api/scrapers"))["sources"][0]["checked_at"]
    pinged = await stand.client.post("/api/scrapers/refresh", content=body, headers=signed(body, "ping"))
    assert (pinged.status_code, pinged.json()) == (200, {"event": "ping", "refreshing": False})
    assert (await get(stand, "/api/scrapers"))["sources"][0]["checked_at"] == before


async def test_a_hook_s_body_is_bounded(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings.model_validate({"gateway": {"max_body_mb": 0.001}})) as stand:
        refused = await stand.client.post("/api/scrapers/refresh", content=b"x" * 2000, headers={"X-Gitlab-Token": "t"})
        assert (refused.status_code, refused.json()["code"]) == (413, "too_large")


async def test_another_gateway_s_refresh_is_followed(tmp_path: Path) -> None:
    queue = MemoryQueue()
    async with open_stand(tmp_path, queue=queue) as one, open_stand(tmp_path, queue=queue, gateway_id="gw2") as other:
        write_scraper(tmp_path, "1.8.0", "shop/pushed")
        assert (await get(other, HERE))["version"] == "1.4.2"
        assert (await one.client.post("/api/scrapers/refresh")).status_code == 200
        assert (await get(one, HERE))["version"] == "1.8.0"
        async with asyncio.timeout(PATIENCE):
            while (await get(other, HERE))["version"] != "1.8.0":
                await asyncio.sleep(0.02)


async def test_metrics_count_refreshes_and_ends(stand: Stand) -> None:
    await stand.client.post("/api/scrapers/refresh")
    call = asyncio.create_task(stand.client.post("/api/scrape", json={"url": "https://shop.example/p/1"}))
    await stand.finish(await stand.take())
    assert (await call).status_code == 200
    response = await stand.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert 'scrapeyard_repository_refreshes_total{outcome="done"} 1.0' in response.text
    assert 'scrapeyard_gateway_runs_ended_total{exit_reason="succeeded"} 1.0' in response.text
    assert "scrapeyard_gateway_waiting_calls 0.0" in response.text
    assert 'scrapeyard_repository_scrapers{source="scrapers"} 3.0' in response.text
