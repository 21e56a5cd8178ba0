"""Budgets of clients: jobs pause and say why, and what runs ends well."""

from pathlib import Path
from typing import Any

from scrapeyard.dispatch.feeding.halting import ClientResume
from scrapeyard.engines.budget.clients import FRESH_SECONDS
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model.identity import ApiKey, ClientBudget, ClientLimits, Role
from scrapeyard.model.job import JobStatus
from scrapeyard.settings import ClientSettings, Settings
from scrapeyard.store.ports.operations import Meter
from tests.services.job_yard import JobYard, feed, job_yard


async def use(yard: JobYard, client: str, fetches: int) -> None:
    """A worker writes what was used today."""
    meter = Meter(
        day=day_of(yard.clock()),
        writer=f"meter_{client}",
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
    yard_settings = Settings(clients=ClientSettings(daily_fetches=50))
    async with job_yard(tmp_path, yard_settings) as yard:
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
        by_hand = await yard.job(10, owner="shop")
        await yard.store.jobs.set_paused(by_hand, True, "later", yard.clock())
        resuming = ClientResume(yard_settings, yard.store, yard.clock)
        await resuming.run_once()
        assert (await yard.got(shop)).status is JobStatus.PAUSED
        yard.clock.now += 86_400
        await ClientResume(Settings(clients=ClientSettings(resume_jobs=False)), yard.store, yard.clock).run_once()
        assert (await yard.got(shop)).status is JobStatus.PAUSED
        await resuming.run_once()
        assert (await yard.got(shop)).status is JobStatus.RUNNING, "by itself, on the next day"
        assert (await yard.got(by_hand)).status is JobStatus.PAUSED, "what somebody paused stays so"
        assert {"status": "running", "reason": "client_budget"} in await yard.told(shop, "status")
        await feed(yard)
        assert (await yard.got(shop)).status is JobStatus.RUNNING


def key(number: int, client: str, fetches: int, **more: Any) -> ApiKey:
    limits = ClientLimits(daily=ClientBudget(fetches=fetches))
    fields = {
        "role": Role.CLIENT,
        "digest": f"{number}",
        "pepper_id": "p",
        "created_at": 0.0,
        "changed_at": 0.0,
        **more,
    }
    return ApiKey(id=f"key_{number}", name=f"k{number}", client=client, limits=limits, **fields)


async def test_the_budgets_of_keys_go_first_and_the_largest_of_a_client_counts(tmp_path: Path) -> None:
    async with job_yard(tmp_path, Settings(clients=ClientSettings(daily_fetches=50))) as yard:
        await yard.beat()
        for each in (
            key(1, "large", 60),
            key(2, "large", 80),
            key(3, "large", 500, revoked_at=1.0),
            key(4, "small", 20),
            key(5, "plain", 0),
        ):
            assert await yard.store.api_keys.add(each, 0.0)
        jobs = {name: await yard.job(100, owner=name, concurrency=1) for name in ("large", "small", "plain", "keyless")}
        running = {}
        for fetches in (30, 55, 75, 85):
            for name in jobs:
                await use(yard, name, fetches)
            await feed(yard)
            running[fetches] = {name for name, job in jobs.items() if (await yard.got(job)).status is JobStatus.RUNNING}
        assert running == {30: {"large", "plain", "keyless"}, 55: {"large"}, 75: {"large"}, 85: set()}
