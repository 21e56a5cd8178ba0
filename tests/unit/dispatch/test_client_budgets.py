"""Budgets of clients: jobs pause and say why, and what runs ends well."""

from pathlib import Path

from scrapeyard.engines.budget.clients import FRESH_SECONDS
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model.job import JobStatus
from scrapeyard.settings import ClientSettings, Settings
from scrapeyard.store.ports.operations import Meter
from tests.services.job_yard import JobYard, feed, job_yard


async def use(yard: JobYard, client: str, fetches: int) -> None:
    """A worker writes what was used today."""
    meter = Meter(
        day=day_of(yard.clock()),
        writer="meter_1",
        job_id="",
        site="a.example",
        pool="",
        proxy_class="",
        client=client,
        requests=fetches,
        failures=0,
        bytes=0,
    )
    await yard.store.meters.put([meter])
    yard.clock.now += FRESH_SECONDS + 1


async def test_jobs_of_a_client_pause_when_its_budget_is_used_up_and_nothing_fails(tmp_path: Path) -> None:
    async with job_yard(tmp_path, Settings(clients=ClientSettings(daily_fetches=50))) as yard:
        await yard.beat()
        shop, other = await yard.job(100, owner="shop"), await yard.job(100, owner="other")
        await use(yard, "shop", 49)
        await feed(yard)
        assert (await yard.got(shop)).status is JobStatus.RUNNING
        await use(yard, "shop", 50)
        await feed(yard)
        job = await yard.got(shop)
        assert job.status is JobStatus.PAUSED
        assert "fetches of this day are used up (50)" in job.pause_reason
        (told,) = await yard.told(shop, "budget")
        assert (told["budget"], told["period"], told["used"], told["allowed"]) == ("client_fetches", "day", 50, 50)
        assert (await yard.got(other)).status is JobStatus.RUNNING
        while await yard.work():
            await feed(yard)
        counts = (await yard.got(shop)).counts
        assert (counts.error, counts.success + counts.pending) == (0, 100)
        assert (await yard.got(other)).counts.success == 100
        await yard.store.jobs.set_paused(shop, False, "", yard.clock())
        await feed(yard)
        assert (await yard.got(shop)).status is JobStatus.PAUSED, "as long as the day lasts"
        yard.clock.now += 86_400
        await yard.store.jobs.set_paused(shop, False, "", yard.clock())
        await feed(yard)
        assert (await yard.got(shop)).status is JobStatus.RUNNING
