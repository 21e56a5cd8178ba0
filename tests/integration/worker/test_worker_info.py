"""What a worker reports of itself, as `/api/workers` shows it."""

from pathlib import Path

import httpx
import pytest

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE


@pytest.mark.parametrize(("solver_url", "engines"), [("", ["http"]), ("http://127.0.0.1:9/v1", ["http", "solver"])])
async def test_the_engines_that_it_fetches_with(tmp_path: Path, solver_url: str, engines: list[str]) -> None:
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path / "data",
            "gateway": {"port": 0},
            "repository": {"installed": False},
            "escalation": {"solver_url": solver_url},
            "browser": {"enabled": False},
            "worker": {"slots": 1, "drain_seconds": 0},
        }
    )
    platform = Platform(settings)
    await platform.start()
    try:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            (worker,) = (await client.get("/api/workers")).json()["workers"]
        assert worker["engines"] == engines
    finally:
        await platform.stop()
