"""A repository that answers no more while somebody asks for a look: the rest of a worker goes on."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.leaks import until
from tests.programs import Embedded
from tests.services.static_site import StaticSite, stalls

RARE = {
    "SCRAPEYARD_REPOSITORY__POLL_SECONDS": "600",
    "SCRAPEYARD_REPOSITORY__REFRESH_SECONDS": "600",
    "SCRAPEYARD_REPOSITORY__TIMEOUT_SECONDS": "600",
    "SCRAPEYARD_WORKER__HEARTBEAT_SECONDS": "60",
    "SCRAPEYARD_WORKER__LEASE_SECONDS": "600",
}
"""So that a worker hears of a cancel by its signal alone."""


@pytest.fixture
def yard(static_site: StaticSite, nothing_left: None) -> Iterator[Embedded]:
    index = json.dumps({"schema": 1, "scrapers": {}})
    (static_site.folder / "index.json").write_text(index)
    where = {"SCRIPT_REPOSITORY_TYPE": "http", "SCRIPT_REPOSITORY_URL": static_site.url}
    with Embedded({**RARE, **where}) as yard:
        folder = yard.scrapers / "slow" / "sleep"
        folder.mkdir(parents=True)
        (folder / "scraper.py").write_text("import time\n\n\ndef run(ctx):\n    time.sleep(300)\n")
        (folder / "scraper.toml").write_text('id = "slow/sleep"\nversion = "1.0.0"\n[limits]\nwall_seconds = 300\n')
        yield yard


def test_a_cancel_is_heard_while_a_look_hangs(yard: Embedded, static_site: StaticSite) -> None:
    with yard.client() as api:
        assert api.post("/api/scrapers/refresh").status_code == 200
        run = api.post("/api/scrape", json={"scraper": "slow/sleep", "wait": 0}).json()
        until(lambda: _status(api, run["id"]) == "running", "it runs")
        static_site.forget()
        static_site.habits["/index.json"] = stalls
        assert api.post("/api/scrapers/refresh", headers={"X-GitHub-Event": "push"}).status_code == 202
        until(static_site.paths, "a look began")
        api.delete(f"/api/scrape/{run['id']}")
        until(lambda: _status(api, run["id"]) == "cancelled", "it is cancelled")


def test_what_is_new_elsewhere_is_live_while_a_look_hangs(yard: Embedded, static_site: StaticSite) -> None:
    static_site.habits["/index.json"] = stalls
    hook = {"X-GitHub-Event": "push"}
    with yard.client() as api:
        assert api.post("/api/scrapers/refresh", headers=hook).status_code == 202
        until(static_site.paths, "a look began")
        until(lambda: "1.0.0" in _versions(api), "what the first look found")
        manifest = yard.scrapers / "slow" / "sleep" / "scraper.toml"
        manifest.write_text(manifest.read_text().replace("1.0.0", "1.1.0"))
        assert api.post("/api/scrapers/refresh", headers=hook).status_code == 202
        until(lambda: "1.1.0" in _versions(api), "what the second look found")


def _versions(api: httpx.Client) -> list[str]:
    return [each["version"] for each in api.get("/api/scrapers").json()["scrapers"] if each["id"] == "slow/sleep"]


def _status(api: httpx.Client, run_id: str) -> str:
    return str(api.get(f"/api/scrape/{run_id}").json()["status"])
