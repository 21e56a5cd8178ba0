"""Work that no worker takes is told of, once a minute, and not before a worker had time to show itself."""

from pathlib import Path
from typing import Any

from msgspec import Raw
from structlog.testing import capture_logs

from scrapeyard.dispatch.upkeep.untaken_lanes import LOOK_SECONDS, TELL_SECONDS, UntakenLanes
from scrapeyard.model import Delivery
from scrapeyard.settings import Settings
from tests.services.job_yard import job_yard

SETTINGS = Settings.model_validate({"lanes": {"patterns": ["shop/*"]}})
LEASE = SETTINGS.worker.lease_seconds


async def test_a_lane_without_a_worker_is_told_of(tmp_path: Path) -> None:
    async with job_yard(tmp_path) as yard:
        duty = UntakenLanes(SETTINGS, yard.store.workers, yard.queue, yard.clock)

        async def after(seconds: float, *lanes: str) -> list[dict[str, Any]]:
            """What is told after so long, by when these lanes have a worker."""
            yard.clock.now += seconds
            await yard.beat(lanes=lanes)
            with capture_logs() as logs:
                await duty.run_once()
            return [
                {name: line[name] for name in ("takes", "waiting")}
                for line in logs
                if line["event"] == "dispatch.untaken_lane"
            ]

        for lane, count in (("for.shop._", 2), ("default", 1)):
            made = {"scraper": "shop/product@1.0.0", "input": Raw(b"{}"), "lane": lane, "created_at": 1, "queued_at": 1}
            await yard.queue.publish([Delivery(run_id=f"run_{lane}{n}", **made) for n in range(count)])
        shop = {"takes": "shop/*", "waiting": 2}
        assert await after(0, "default") == []
        assert await after(LEASE, "default") == [shop]
        assert await after(LOOK_SECONDS, "default") == []
        assert await after(TELL_SECONDS, "default") == [shop]
        assert await after(TELL_SECONDS, "default", "for.shop._") == []
        assert await after(TELL_SECONDS, "for.shop._") == []
        assert await after(LEASE, "for.shop._") == [{"takes": "default", "waiting": 1}]
