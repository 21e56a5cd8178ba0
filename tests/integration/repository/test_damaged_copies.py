"""A copy that is edited or damaged while the server runs never runs: what was signed runs, or nothing does."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from structlog.testing import capture_logs

from scrapeyard.repository.archive.copies import SIGNATURE
from scrapeyard.repository.catalogue.loading import identify
from scrapeyard.repository.trust.signing import public_key_of, sign
from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE

KEY = Ed25519PrivateKey.generate()
NAME = "shop/product@1.0.0"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "scrapers" / "product"
    (home / "parts").mkdir(parents=True)
    (home / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    (home / "scraper.py").write_text("from parts import deep\ndef run(ctx): return deep.VALUE\n")
    (home / "parts" / "__init__.py").touch()
    (home / "parts" / "deep.py").write_text("VALUE = 'good'\n")
    (home / SIGNATURE).write_bytes(sign(identify(home)[0], KEY))
    return home


@pytest.fixture
async def platform(tmp_path: Path, home: Path) -> AsyncIterator[Platform]:
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path / "data",
            "gateway": {"port": 0},
            "repository": {
                "source": {"type": "folder", "url": str(home.parent)},
                "public_keys": [public_key_of(KEY, "team").text],
                "installed": False,
                "poll_seconds": 3600,
                "refresh_seconds": 3600,
            },
            "worker": {"slots": 1, "drain_seconds": 0},
            "sandbox": {"load_seconds": PATIENCE},
        }
    )
    platform = Platform(settings)
    await platform.start()
    yield platform
    await platform.stop()


async def call(platform: Platform) -> httpx.Response:
    assert platform.gateway is not None
    async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
        body = {"scraper": NAME, "wait": PATIENCE, "policy": {"retries": 0}}
        return await client.post("/api/scrape", json=body)


def copy_of(tmp_path: Path) -> Path:
    (copy,) = (tmp_path / "data" / "cache" / "scrapers").iterdir()
    return copy


def edit(path: Path, text: str) -> None:
    """Write through read-only modes, and give the file its old times back."""
    before = path.stat()
    path.chmod(0o644)
    path.write_text(text)
    path.chmod(0o444)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


async def test_an_edited_copy_is_replaced_before_it_is_loaded(platform: Platform, tmp_path: Path) -> None:
    edit(copy_of(tmp_path) / "parts" / "deep.py", "VALUE = 'evil'\n")
    with capture_logs() as logs:
        answer = await call(platform)
    assert (answer.status_code, answer.json()["result"]) == (200, "good"), answer.text
    assert "repository.copy_damaged" in [entry["event"] for entry in logs]
    assert (copy_of(tmp_path) / "parts" / "deep.py").read_text() == "VALUE = 'good'\n"


async def test_an_edited_copy_that_cannot_be_fetched_again_does_not_run(
    platform: Platform, home: Path, tmp_path: Path
) -> None:
    """Also where an earlier run was good, and files were added rather than edited."""
    assert (await call(platform)).json()["result"] == "good"
    (home / "scraper.py").write_text("def run(ctx): return 'other'\n")
    (copy_of(tmp_path) / "parts" / "extra.py").write_text("VALUE = 'evil'\n")
    answer = await call(platform)
    assert (answer.status_code, answer.json()["code"]) == (502, "source_unavailable"), answer.text
