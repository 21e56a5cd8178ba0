"""How the gateway serves the page: who gets it, under which rules, and what stands there without a build."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from scrapeyard.gateway.page import Dashboard
from tests.integration.gateway_stand import Stand, open_stand

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Dest": "document"}
SCRIPT = "console.log('a page');\n" * 50


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Scrapeyard</title>")
    (folder / "assets" / "index-abc.js").write_text(SCRIPT)
    (folder / "favicon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("kept from everybody")
    return folder


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path / "stand") as opened:
        yield opened


def browser(stand: Stand, folder: Path) -> httpx.AsyncClient:
    app = Dashboard(stand.app, folder)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=BROWSER)


async def test_people_get_the_page_and_programs_the_api(stand: Stand, built: Path) -> None:
    async with browser(stand, built) as person:
        for path in ("/", "/jobs", "/runs/run_1", "/try?url=a.example"):
            assert (await person.get(path)).text.startswith("<!doctype html>"), path
        assert (await person.get("/", headers={"Accept": "*/*"})).json()["service"] == "scrapeyard"
        assert "jobs" in (await person.get("/jobs", headers={"Accept": "application/json"})).json()
        for path in ("/api/live", "/api/openapi.json", "/docs"):
            assert "Scrapeyard</title>" not in (await person.get(path)).text


async def test_nothing_from_elsewhere_may_run_and_nobody_may_frame_it(stand: Stand, built: Path) -> None:
    async with browser(stand, built) as person:
        answer = await person.get("/")
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"


async def test_assets_are_kept_for_good_and_compressed(stand: Stand, built: Path) -> None:
    async with browser(stand, built) as person:
        answer = await person.get("/assets/index-abc.js")
        assert answer.text == SCRIPT
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) == len(gzip.compress(SCRIPT.encode(), mtime=0))
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith("text/javascript")
        again = await person.get("/assets/index-abc.js", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/assets/../../secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/assets/none.js"])
async def test_no_other_file_can_be_named(stand: Stand, built: Path, path: str) -> None:
    async with browser(stand, built) as person:
        answer = await person.get(path, headers={"Accept": "*/*"})
    assert (answer.status_code, "kept from" in answer.text) == (404, False)


async def test_without_a_build_the_api_serves_and_the_page_says_how_to_make_one(stand: Stand, tmp_path: Path) -> None:
    async with browser(stand, tmp_path / "nowhere") as person:
        assert "make page" in (await person.get("/")).text
        assert (await person.get("/api/live")).json() == {"alive": True}
        assert (await person.get("/jobs", headers={"Accept": "*/*"})).json()["jobs"] == []
