"""What a worker logs of the work it does: runs at info, items of jobs at debug."""

from pathlib import Path
from typing import Any

import httpx
from structlog.testing import capture_logs

from tests.leaks import PATIENCE
from tests.services.batch_yard import batch_yard

SCRIPT = """
from scrapeyard_sdk import Fail

def run(ctx, good):
    if not good:
        raise Fail("no")
    return {"good": good}
"""


def told(logs: list[Any], area: str) -> list[tuple[Any, ...]]:
    """The events of runs or of items, as (level, event, exit reason)."""
    return [
        (line["log_level"], line["event"], line.get("exit_reason"))
        for line in logs
        if line["event"].startswith(f"{area}.")
    ]


async def test_a_run_is_logged_when_it_starts_and_when_it_ends(tmp_path: Path) -> None:
    async with batch_yard(tmp_path, {"test/case": SCRIPT}) as yard:
        assert yard.platform.gateway is not None
        async with httpx.AsyncClient(base_url=yard.platform.gateway.url, timeout=PATIENCE) as client:
            with capture_logs() as logs:
                for good in (True, False):
                    order = {"scraper": "test/case", "input": {"good": good}, "wait": PATIENCE}
                    await client.post("/api/scrape", json=order)
    started, finished = ("info", "run.started", None), ("info", "run.finished")
    assert told(logs, "run") == [started, (*finished, "succeeded"), started, (*finished, "failed")]
    assert {line["scraper"] for line in logs if line["event"] == "run.started"} == {"test/case@1.0.0"}


async def test_items_are_logged_at_debug_only(tmp_path: Path) -> None:
    async with batch_yard(tmp_path, {"test/case": SCRIPT}) as yard:
        with capture_logs() as logs:
            await yard.run("test/case@1.0.0", [{"good": True}, {"good": False}])
    assert sorted(told(logs, "item"), key=str) == [
        ("debug", "item.finished", "failed"),
        ("debug", "item.finished", "succeeded"),
        ("debug", "item.started", None),
        ("debug", "item.started", None),
    ]
    assert told(logs, "run") == []
