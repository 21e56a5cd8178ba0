"""Secrets on their way into a run, and what of it is told afterwards."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE

SCRIPT = """
def run(ctx, fail: bool = False, leak: bool = False):
    print("key", ctx.config["key"]); ctx.log("said", key=ctx.config["key"])
    try: ctx.fetch("http://127.0.0.1:9/?key=" + ctx.config["key"])
    except Exception: pass
    if fail: raise ValueError("bad key " + ctx.config["key"])
    return {"said": ctx.config["key"]} if leak else len(ctx.config["key"])
"""
MANIFEST = 'id = "test/{name}"\nversion = "1.0.0"\n[config]\nkey = {{ secret = "api_key" }}\n'


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    for name in ("granted", "other"):
        place = tmp_path / "scrapers" / "test" / name
        place.mkdir(parents=True)
        (place / "scraper.py").write_text(SCRIPT)
        (place / "scraper.toml").write_text(MANIFEST.format(name=name))
    secrets = tmp_path / "secrets.toml"
    secrets.touch(mode=0o600)
    secrets.write_text('["test/granted"]\napi_key = "very-secret"\n')
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path / "data",
            "gateway": {"port": 0},
            "repository": {"scrapers": tmp_path / "scrapers", "secrets_file": secrets, "installed": False},
            "worker": {"slots": 2, "drain_seconds": 0},
        }
    )
    platform = Platform(settings)
    await platform.start()
    try:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            yield client
    finally:
        await platform.stop()


async def call(client: httpx.AsyncClient, name: str, **given: Any) -> dict[str, Any]:
    answer = await client.post("/api/scrape", json={"scraper": f"test/{name}", "input": given, "wait": PATIENCE})
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("fail", [False, True])
async def test_a_script_gets_its_secret_and_nobody_else_hears_it(client: httpx.AsyncClient, fail: bool) -> None:
    run = await call(client, "granted", fail=fail)
    assert run.get("result") == (None if fail else 11), run
    pages = [f"/api/scrape/{run['id']}{part}" for part in ("", "/logs", "/explain")] + ["/api/scrapers"]
    told = "".join([str(run), *[(await client.get(page)).text for page in pages]])
    assert "very-secret" not in told
    assert "***" in told


async def test_a_secret_that_is_not_granted_ends_the_run(client: httpx.AsyncClient) -> None:
    run = await call(client, "other")
    assert run["exit_reason"] == "scraper_invalid"
    assert "api_key is not granted" in str(run)


async def test_an_operator_grants_a_secret_that_is_told_nowhere(client: httpx.AsyncClient, tmp_path: Path) -> None:
    place = "/api/secrets/test/*/api_key"
    assert (await client.put(place, json={"value": "another-secret"})).json()["scrapers"] == "test/*"
    run = await call(client, "other", leak=True)
    assert run["result"] == {"said": "***"}
    listed = (await client.get("/api/secrets")).json()["secrets"]
    assert [(each["scrapers"], each["name"]) for each in listed] == [("test/*", "api_key")]
    pages = [f"/api/scrape/{run['id']}{part}" for part in ("", "/logs", "/explain")] + ["/api/secrets", "/api/audit"]
    told = "".join([str(run), *[(await client.get(page)).text for page in pages]])
    assert "another-secret" not in told
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"another-secret" not in kept
    assert (await client.delete(place)).json() == {"secrets": []}
    assert (await client.delete(place)).status_code == 404
