"""What scripts ask of the HTTP engine, from a real child to a real site and back."""

import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.cli.runs.local import LocalYard, open_yard
from scrapeyard.model import ExitReason, Outcome
from scrapeyard.settings import Settings
from tests.sites.site import Site, chunks, page, redirect

MB = 1024 * 1024
FULL = ExitReason.SCRIPT_ERROR


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[LocalYard]:
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "http": {"allow_private": True}})
    async with open_yard(settings) as yard:
        yield yard


async def run(yard: LocalYard, folder: Path, body: str, limits: str = "", **given: Any) -> Outcome:
    """A run of a script whose function has this body; `site` is an argument."""
    folder = folder / "scraper"
    folder.mkdir(exist_ok=True)
    (folder / "scraper.toml").write_text(
        f'id = "test/fetching"\nversion = "1.0.0"\n[limits]\nwall_seconds = 120\n{limits}\n'
    )
    kind = "async def" if "await" in body else "def"
    (folder / "scraper.py").write_text(f"{kind} run(ctx, site):\n" + textwrap.indent(body, "    ") + "\n")
    _, outcome = await yard.run(yard.load(folder), given)
    return outcome


async def test_a_large_download_becomes_an_artifact(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    site.routes["/big"] = chunks(b"x" * MB, 40, content_type="video/mp4")
    body = 'page = await ctx.download(site + "/big", "film.mp4")\nreturn [page.size, len(page.body), page.status]'
    outcome = await run(yard, tmp_path, body, site=site.url(""))
    assert bytes(outcome.result or b"") == b"[41943040,0,200]"
    (kept,) = outcome.artifacts
    assert (kept.name, kept.content_type, kept.size) == ("film.mp4", "video/mp4", 40 * MB)
    assert await yard.blobs.size(kept.key) == 40 * MB


@pytest.mark.parametrize(
    ("body", "limits", "reason"),
    [
        ('ctx.download(site + "/big", "a")', "artifact_mb = 1", ExitReason.FETCH_TOO_LARGE),
        ('ctx.download(site + "/big", "a", max_bytes=1000)', "", ExitReason.FETCH_TOO_LARGE),
        ('ctx.download(site + "/gone", "a")', "", ExitReason.FETCH_STATUS),
        ('ctx.download(site + "/big", "../a")', "", ExitReason.SCRIPT_ERROR),
        ('ctx.artifact("x", b"x" * 1048570); ctx.download(site + "/small", "a")', "artifact_mb = 1", None),
        (
            'ctx.artifact("x", b"x" * 1048576); ctx.download(site + "/small", "a")',
            "artifact_mb = 1",
            ExitReason.SCRIPT_ERROR,
        ),
    ],
)
async def test_downloads_that_cannot_be(
    yard: LocalYard, site: Site, tmp_path: Path, body: str, limits: str, reason: ExitReason | None
) -> None:
    site.routes |= {"/big": chunks(b"x" * MB, 2), "/small": page(b"12345")}
    outcome = await run(yard, tmp_path, body, limits, site=site.url(""))
    assert outcome.exit_reason is (reason or ExitReason.SUCCEEDED)
    assert ("a" in {kept.name for kept in outcome.artifacts}) is (reason is None)


async def test_downloads_at_once_share_the_room(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    site.routes["/"] = page(b"x" * (MB // 2))
    body = (
        "import asyncio\n"
        'pages = await asyncio.gather(*(ctx.download(site + "/", f"a{n}") for n in range(3)), return_exceptions=True)\n'
        "return [type(page).__name__ for page in pages]"
    )
    outcome = await run(yard, tmp_path, body, "artifact_mb = 1", site=site.url(""))
    assert bytes(outcome.result or b"") == b'["Page","Page","ArtifactError"]'


async def test_files_ranges_and_sessions(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    site.routes |= {
        "/login": redirect("/in", 303, set_cookie="token=1; Path=/"),
        "/in": page(b"in"),
        "/part": page(b"middle", status=206, content_range="bytes 2-7/20"),
    }
    body = (
        'ctx.fetch(site + "/login", files={"doc": ("a.txt", b"hello", "text/plain")}, form={"n": 1}, session="me")\n'
        'return ctx.fetch(site + "/part", range=(2, 7), session="me", profile="firefox").status'
    )
    assert bytes((await run(yard, tmp_path, body, site=site.url(""))).result or b"") == b"206"
    posted, _, part = site.asked
    assert posted.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'filename="a.txt"' in posted.body
    assert (part.headers["range"], part.headers["cookie"]) == ("bytes=2-7", "token=1")
    assert "Firefox/" in part.headers["user-agent"]
    again = 'return ctx.fetch(site + "/in", session="me").status'
    await run(yard, tmp_path, again, site=site.url(""))
    assert site.asked[-1].headers["cookie"] == "token=1"


async def test_what_the_site_says_of_trying_again_reaches_the_script(
    yard: LocalYard, site: Site, tmp_path: Path
) -> None:
    site.routes["/"] = page(b"busy", status=503, retry_after="120")
    body = (
        "from scrapeyard_sdk import FetchError\n"
        "try:\n"
        '    ctx.fetch(site + "/").raise_for_status()\n'
        "except FetchError as error:\n"
        "    return [error.reason, error.site_status, error.retry_after]"
    )
    outcome = await run(yard, tmp_path, body, site=site.url(""))
    assert bytes(outcome.result or b"") == b'["fetch_status",503,120.0]'
