"""Known secrets and personal data go through a whole platform; afterwards nothing that it keeps or tells has them."""

import asyncio
import json
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from scrapeyard.cli.main import app
from scrapeyard.settings import Settings
from scrapeyard.wiring.local_commands import rotate
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE
from tests.sites.site import Site, page

EMAIL, PHONE, CARD = "ann.lee@mail.example", "+49 30 12345678", "4111 1111 1111 1111"
PERSONAL = (EMAIL, PHONE, CARD)
TOKEN, COOKIE, PASSWORD, SIGNING = "t0k3n-of-api-x1", "c00kie-value-x2", "pr0xy-pass-x3", "webh00k-secret-x4"
SECRETS = (TOKEN, COOKIE, PASSWORD, SIGNING)
SCRIPT = """
def run(ctx, url):
    page = ctx.fetch(url + "?token=" + ctx.config["key"], session="login")
    print("saw", page.text("p")); ctx.log("token", token=ctx.config["key"])
    ctx.artifact("page.html", page.body, content_type="text/html")
    return {"seen": page.text("p"), "token": ctx.config["key"]}
"""
MANIFEST = """
id = "test/person"
version = "1.0.0"
[config]
key = { secret = "API_TOKEN" }
"""
POLICY = {"mask": "email,phone,card", "mask_as": "hash", "robots": "ignore"}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    body = f"<html><p>{EMAIL} {PHONE} {CARD}</p></html>".encode()
    async with Site() as site:
        site.routes["/person"] = page(body, set_cookie=f"login={COOKIE}; Path=/")
        yield site


def settings_of(folder: Path, *, encrypts: bool = False) -> Settings:
    place = folder / "scrapers" / "test" / "person"
    place.mkdir(parents=True, exist_ok=True)
    (place / "scraper.py").write_text(SCRIPT)
    (place / "scraper.toml").write_text(MANIFEST)
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "gateway": {"port": 0},
            "http": {"allow_private": True, "total_seconds": PATIENCE},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2, "drain_seconds": 0},
            "secrets": {"encrypt_content": encrypts},
            "blobs": {"encrypt": encrypts},
        }
    )


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    platform = Platform(settings)
    await platform.start()
    try:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            yield client
    finally:
        await platform.stop()


async def scrape(client: httpx.AsyncClient, site: Site, **more: Any) -> Any:
    given = {"scraper": "test/person", "input": {"url": site.url("/person")}, "wait": PATIENCE, "policy": POLICY}
    return (await client.post("/api/scrape", json={**given, **more})).json()


async def use_everything(client: httpx.AsyncClient, site: Site) -> tuple[Any, Any]:
    """A run and a job, with every kind of secret."""
    (await client.put("/api/secrets/test/person/API_TOKEN", json={"value": TOKEN})).raise_for_status()
    pool = {"urls": [f"http://user:{PASSWORD}@127.0.0.1:9"]}
    (await client.put("/api/proxies/home", json=pool)).raise_for_status()
    webhook = {"url": "http://127.0.0.1:9/", "secret": SIGNING}
    run = await scrape(client, site, webhook=webhook)
    job = {"scraper": "test/person", "items": [{"url": site.url("/person")}], "policy": POLICY, "webhook": webhook}
    made = await client.post("/api/jobs", json={**job, "exports": [{"type": "records", "format": "jsonl"}]})
    return run, await ended(client, made.json()["id"])


async def ended(client: httpx.AsyncClient, job_id: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (job := (await client.get(f"/api/jobs/{job_id}")).json())["status"] != "completed":
            await asyncio.sleep(0.02)
    return job


def processes() -> bytes:
    """Command line and environment of every process below this one."""
    found, parents = b"", {os.getpid()}
    for entry in sorted((each for each in Path("/proc").iterdir() if each.name.isdigit()), key=lambda e: int(e.name)):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in parents or int(entry.name) in parents:
                parents.add(int(entry.name))
                found += (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
    return found


async def test_nothing_is_found_in_clear(
    tmp_path: Path, site: Site, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path)
    async with served(settings) as client:
        run, job = await use_everything(client, site)
        assert run["usage"]["masked"] == {"email": 3, "phone": 3, "card": 3}, run
        assert job["usage"]["masked"] == {"email": 3, "phone": 3, "card": 3}, job
        assert run["result"]["token"] == "***"
        assert run["result"]["seen"].startswith("[email:")
        paths = [f"/api/scrape/{run['id']}{part}" for part in ("", "/logs", "/explain", "/artifacts/page.html")]
        paths += [f"/api/jobs/{job['id']}{part}" for part in ("", "/items", "/results", "/exports")]
        paths += ["/metrics", "/api/secrets", "/api/proxies", "/api/webhooks/deliveries", "/api/audit", "/api/stats"]
        told = "".join([(await client.get(path)).text for path in paths]).encode() + processes()
    monkeypatch.chdir(tmp_path)
    told += CliRunner().invoke(app, ["config", "--json"]).output.encode()
    told += "".join(capfd.readouterr()).encode()
    kept = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert len(kept) > 5
    for value in (*SECRETS, *PERSONAL):
        assert value.encode() not in told, value
        assert [path for path, data in kept.items() if value.encode() in data] == [], value


async def test_the_master_key_changes_while_calls_run(tmp_path: Path, site: Site) -> None:
    settings = settings_of(tmp_path, encrypts=True)
    async with served(settings) as client:
        await use_everything(client, site)
        key = (tmp_path / "data" / "master.key").read_bytes()
        calls = [asyncio.create_task(scrape(client, site)) for _ in range(20)]
        for _ in range(3):
            assert "1 data key wrapped" in await rotate(settings)
        rows = (await client.get("/api/audit", params={"action": "rotate_master"})).json()["rows"]
        assert [row["after"]["data_keys"] for row in rows] == [1, 1, 1], "and the audit has it"
        answers = await asyncio.gather(*calls, *(scrape(client, site) for _ in range(5)))
        assert [answer["status"] for answer in answers] == ["succeeded"] * 25
    assert (tmp_path / "data" / "master.key").read_bytes() != key
    async with served(settings) as client:
        assert (await scrape(client, site))["result"]["token"] == "***"


async def test_a_backup_goes_on_elsewhere(tmp_path: Path, site: Site) -> None:
    """As docs/deployment.md says: database, blobs and master key, taken while the server runs."""
    settings, there = (settings_of(tmp_path / place, encrypts=True) for place in ("here", "there"))
    async with served(settings) as client:
        run, _ = await use_everything(client, site)
        call = {"scraper": "test/person", "items": [{"url": site.url("/person")}], "policy": POLICY, "paused": True}
        waiting = (await client.post("/api/jobs", json=call)).json()["id"]
        async with asyncio.timeout(PATIENCE):
            while (await client.get(f"/api/jobs/{waiting}")).json()["counts"]["total"] != 1:
                await asyncio.sleep(0.02)
        copy(settings.data_dir, there.data_dir)
    kept = [path.read_bytes() for path in there.data_dir.rglob("*") if path.is_file()]
    assert not [data for data in kept if site.url("/person").encode() in data], "inputs are encrypted, too"
    async with served(there) as client:
        assert (await client.get(f"/api/scrape/{run['id']}")).json()["result"] == run["result"]
        (await client.post(f"/api/jobs/{waiting}/resume")).raise_for_status()
        assert (await ended(client, waiting))["counts"]["success"] == 1
        names = [each["name"] for each in json.loads((await client.get("/api/secrets")).text)["secrets"]]
        assert names == ["API_TOKEN"]


def copy(here: Path, there: Path) -> None:
    there.mkdir(mode=0o700)
    source, target = (sqlite3.connect(folder / "scrapeyard.db") for folder in (here, there))
    source.backup(target)
    source.close()
    target.close()
    shutil.copytree(here / "blobs", there / "blobs")
    shutil.copy(here / "master.key", there / "master.key")
