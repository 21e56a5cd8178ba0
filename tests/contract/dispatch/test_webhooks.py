"""Receivers are told what happened, at least once: on every store, to a real server."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.dispatch.webhooks import webhooks
from scrapeyard.dispatch.webhooks.sending import Sender
from scrapeyard.dispatch.webhooks.webhooks import Webhooks
from scrapeyard.errors import BadRequest
from scrapeyard.model import ExitReason
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.model.webhook import JOB_EVENTS, DeliveryState, JobEventKind, Webhook, WebhookDelivery
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.store.ports.webhooks import DeliveryFilter
from scrapeyard.wiring.backends import store_at
from scrapeyard.wiring.duties import make_webhook_engine
from tests.contract.job_nouns import a_batch, a_job, an_error, new_items
from tests.contract.nouns import a_run, an_ending, begun
from tests.leaks import PATIENCE
from tests.services.job_yard import Clock
from tests.sites.site import Asked, Site, never, page, redirect

SECRET = "a secret of sixteen or more"


def settings(seconds: float = PATIENCE) -> Settings:
    webhooks = {"secret": SECRET, "timeout_seconds": seconds, "allow_hosts": ["127.0.0.0/8", "::1"]}
    return Settings.model_validate({"webhooks": webhooks, "http": {"connect_seconds": PATIENCE}})


SETTINGS = settings()


CHANGES = tuple(event for event in JOB_EVENTS if event != "job.created")


class Yard:
    """A store, a clock, a receiver, and dispatchers."""

    def __init__(self, store: DurableStore, site: Site) -> None:
        self.store = store
        self.site = site
        self.clock = Clock()
        self.engines: list[Any] = []
        self.duties: list[Webhooks] = []
        self.duty = self.dispatcher("one")

    def dispatcher(self, holder: str, settings: Settings = SETTINGS, store: DurableStore | None = None) -> Webhooks:
        engine = make_webhook_engine(settings)
        self.engines.append(engine)
        sender = Sender(settings.webhooks, engine, self.store.sealer, self.clock, spread=lambda: 0.0)
        self.duties.append(Webhooks(settings, store or self.store, sender, self.clock, holder))
        return self.duties[-1]

    async def round(self, seconds: float = 0.0, duty: Webhooks | None = None) -> None:
        self.clock.now += seconds
        await (duty or self.duty).run_once()
        await (duty or self.duty).idle()

    def webhook(self, *events: str, path: str = "/hook", **more: Any) -> Webhook:
        return Webhook(url=self.site.url(path), events=events or JOB_EVENTS, **more)

    async def job(self, *events: str, path: str = "/hook", **more: Any) -> Job:
        told = {"url": self.site.url(path), "events": list(events or CHANGES), **more}
        job = a_job(webhook=Raw(json.dumps(told).encode()), created_at=self.clock())
        assert await self.store.jobs.create(job)
        return job

    async def status(self, job: Job, status: str, **more: Any) -> None:
        await self.store.events.add(
            job.id, "status", Raw(json.dumps({"status": status, **more}).encode()), self.clock()
        )

    def told(self) -> list[tuple[str, str]]:
        """Event and subject of everything that came, in order."""
        bodies = [json.loads(asked.body) for asked in self.site.asked]
        return [(body["event"], (body.get("job") or body["run"])["id"]) for body in bodies]

    async def all(self) -> list[WebhookDelivery]:
        """Oldest first."""
        return list((await self.store.deliveries.page(DeliveryFilter(), None, 1000)).deliveries)[::-1]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Takes everything at /hook."""
    async with Site(routes={"/hook": page(b"ok"), "/never": never}) as site:
        yield site


@pytest.fixture
async def other(migrated_url: str) -> AsyncIterator[DurableStore]:
    """Another process's way to the same database."""
    store = store_at(migrated_url)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
async def yard(store: DurableStore, site: Site) -> AsyncIterator[Yard]:
    """With a clock that is moved by hand."""
    yard = Yard(store, site)
    yield yard
    for each in (*yard.duties, *yard.engines):
        await each.stop()


def signed_well(asked: Asked, secret: str) -> bool:
    """As a receiver checks it."""
    parts = dict(part.split("=", 1) for part in asked.headers["scrapeyard-signature"].split(","))
    wanted = hmac.new(secret.encode(), parts["t"].encode() + b"." + asked.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(parts["v1"], wanted)


class TestJobs:
    async def test_an_end_is_told_once_and_signed(self, yard: Yard) -> None:
        job = await yard.job("job.completed", "job.failed")
        await yard.round()
        assert yard.told() == []
        await yard.store.jobs.end_reading(job.id, 0, "the list cannot be read", yard.clock())
        await yard.round(1)
        await yard.status(job, "failed")
        await yard.round(1)
        assert yard.told() == [("job.failed", job.id)]
        (asked,) = yard.site.asked
        body = json.loads(asked.body)
        assert signed_well(asked, SECRET)
        assert not signed_well(asked, "another secret, as long")
        assert f"t={int(yard.clock()) - 1}," in asked.headers["scrapeyard-signature"]
        assert asked.headers["scrapeyard-delivery"] == body["id"]
        assert (asked.headers["scrapeyard-event"], asked.headers["content-type"]) == ("job.failed", "application/json")
        assert body["job"]["error"] == "the list cannot be read"

    async def test_the_callers_own_secret_signs(self, yard: Yard) -> None:
        job = await yard.job("job.cancelled", secret="the caller's own secret")
        await yard.store.jobs.cancel(job.id, False, yard.clock())
        await yard.round()
        assert signed_well(yard.site.asked[0], "the caller's own secret")

    async def test_an_end_whose_event_was_never_written_is_told(self, yard: Yard) -> None:
        job = await yard.job("job.cancelled")
        await yard.round()
        await yard.store.jobs.cancel(job.id, False, yard.clock())
        await yard.round(1)
        await yard.round(1)
        assert yard.told() == [("job.cancelled", job.id)]

    async def test_a_new_job_is_told_once(self, yard: Yard) -> None:
        job = await yard.job("job.created", "job.paused")
        await yard.status(job, "paused")
        for _ in range(3):
            await yard.round()
        assert sorted(yard.told()) == [("job.created", job.id), ("job.paused", job.id)]

    async def test_an_archived_job_is_told(self, yard: Yard) -> None:
        job = await yard.job("job.archived", "job.restored")
        for state in ("archived", "damaged", "restored"):
            told = Raw(json.dumps({"state": state}).encode())
            await yard.store.events.add(job.id, JobEventKind.ARCHIVE, told, yard.clock())
        for _ in range(3):
            await yard.round()
        assert sorted(yard.told()) == [("job.archived", job.id), ("job.restored", job.id)]

    async def test_every_event_is_told_in_its_way(self, yard: Yard) -> None:
        job = await yard.job()
        await yard.store.items.add(job.id, new_items(2), 0, yard.clock())
        await yard.store.jobs.end_reading(job.id, 0, "", yard.clock())
        batch = await yard.store.batches.cut(a_batch(job), yard.clock())
        assert batch is not None
        await yard.store.batches.take(batch.id, "w", yard.clock(), yard.clock() + 9)
        await yard.store.batches.record(batch.id, "w", 0, [an_error(0, exit_reason=ExitReason.FETCH_DNS)], yard.clock())
        await yard.store.events.add(job.id, "breaker", Raw(b'{"state":"open"}'), yard.clock())
        await yard.store.events.add(job.id, "export", Raw(b'{"id":"export_1","state":"failed"}'), yard.clock())
        await yard.store.events.add(job.id, "export", Raw(b'{"id":"export_2","state":"done"}'), yard.clock())
        await yard.store.events.add(job.id, "nonsense", Raw(b"{}"), yard.clock())
        await yard.store.jobs.set_paused(job.id, True, "by hand", yard.clock())
        await yard.status(job, "paused", reason="by hand")
        await yard.round()
        await yard.store.jobs.set_paused(job.id, False, "", yard.clock())
        await yard.round(1)
        assert [name for name, _ in sorted(yard.told())] == sorted(
            ["item.failed", "breaker", "export.ready", "job.paused", "job.resumed"]
        )
        data = {json.loads(asked.body)["event"]: json.loads(asked.body)["data"] for asked in yard.site.asked}
        assert data["item.failed"]["exit_reason"] == "fetch_dns"
        assert data["export.ready"]["id"] == "export_2"

    async def test_a_pause_and_resume_that_nobody_saw_are_told_by_their_events(self, yard: Yard) -> None:
        job = await yard.job("job.paused", "job.resumed")
        await yard.store.jobs.end_reading(job.id, 0, "", yard.clock())
        await yard.round()
        await yard.status(job, "paused")
        await yard.status(job, "running")
        await yard.round(1)
        await yard.round(1)
        assert sorted(yard.told()) == [("job.paused", job.id), ("job.resumed", job.id)]

    async def test_a_second_end_is_told_again(self, yard: Yard) -> None:
        job = await yard.job("job.completed")
        await yard.store.jobs.end_reading(job.id, 0, "", yard.clock())
        for seconds in (1.0, 5.0):
            if seconds > 1:
                await yard.store.jobs.move(job.id, JobStatus.COMPLETED, JobStatus.RUNNING, yard.clock())
            yard.clock.now += seconds
            await yard.store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, yard.clock())
            await yard.store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, yard.clock())
            await yard.status(job, "completed")
            await yard.round()
            await yard.round()
        assert yard.told() == [("job.completed", job.id)] * 2
        assert len({asked.headers["scrapeyard-delivery"] for asked in yard.site.asked}) == 2

    async def test_more_events_than_are_read_at_once(self, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(webhooks, "EVENTS", 20)
        job = await yard.job("breaker")
        for number in range(30):
            await yard.store.events.add(job.id, "breaker", Raw(b'{"n":%d}' % number), yard.clock())
        for _ in range(2):
            await yard.round()
        assert sorted(json.loads(asked.body)["data"]["n"] for asked in yard.site.asked) == list(range(30))

    async def test_a_job_made_paused_or_without_a_webhook_is_no_news(self, yard: Yard) -> None:
        await yard.store.jobs.create(a_job(status=JobStatus.PAUSED, webhook=(await yard.job()).webhook))
        await yard.store.jobs.cancel((await _plain(yard)).id, False, yard.clock())
        await yard.round()
        assert await yard.all() == []

    async def test_two_dispatchers_tell_once(self, yard: Yard, other: DurableStore) -> None:
        duties = [yard.dispatcher(f"d{n}", store=store) for n, store in enumerate((yard.store, other) * 2)]
        jobs = [await yard.job("job.cancelled") for _ in range(5)]
        for job in jobs:
            await yard.store.jobs.cancel(job.id, False, yard.clock())
        await asyncio.gather(*(duty.run_once() for duty in duties))
        await asyncio.gather(*(duty.idle() for duty in duties))
        await asyncio.gather(*(yard.round(duty=duty) for duty in duties))
        assert sorted(subject for _, subject in yard.told()) == sorted(job.id for job in jobs)


async def _plain(yard: Yard) -> Job:
    job = a_job()
    await yard.store.jobs.create(job)
    return job


class TestRuns:
    async def test_the_end_of_a_watched_run_is_told(self, yard: Yard) -> None:
        run, other = begun(a_run()), begun(a_run())
        await yard.store.webhooks.watch_runs([run.id, other.id], yard.webhook("run.succeeded"), yard.clock())
        await yard.store.runs.begin([run, other])
        await yard.round()
        assert yard.told() == []
        await yard.store.runs.finish([an_ending(run), an_ending(other, exit_reason=ExitReason.FAILED, result=None)])
        await yard.round(1)
        await yard.round(1)
        assert yard.told() == [("run.succeeded", run.id)]
        assert json.loads(yard.site.asked[0].body)["run"]["result"] == {"title": "Kettle"}
        assert await yard.store.webhooks.ended_runs(10) == []

    async def test_a_watch_of_a_run_that_never_was_is_dropped_in_time(self, yard: Yard) -> None:
        run = a_run()
        await yard.store.webhooks.watch_runs([run.id], yard.webhook("run.succeeded"), yard.clock())
        await yard.round(8 * 86_400)
        await yard.store.runs.finish([an_ending(begun(run))])
        await yard.round(1)
        assert yard.told() == []


class TestSending:
    async def ended(self, yard: Yard, path: str = "/hook") -> None:
        job = await yard.job("job.cancelled", path=path)
        await yard.store.jobs.cancel(job.id, False, yard.clock())

    async def test_a_receiver_that_fails_is_asked_again_later_and_later(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = page(b"", status=500)
        await self.ended(yard)
        await yard.round()
        for wait in (10, 20, 40):
            await yard.round(wait - 0.1)
            before = len(yard.site.asked)
            await yard.round(0.2)
            assert len(yard.site.asked) == before + 1
        yard.site.routes["/hook"] = page(b"", status=204)
        await yard.round(81)
        (delivery,) = await yard.all()
        assert delivery.state is DeliveryState.DELIVERED
        assert [one.status for one in delivery.log] == [500] * 4 + [204]
        assert delivery.log[0].error == "the receiver answered 500"
        assert [asked.headers["scrapeyard-attempt"] for asked in yard.site.asked] == list("12345")
        assert all(signed_well(asked, SECRET) for asked in yard.site.asked)
        assert len({asked.headers["scrapeyard-signature"] for asked in yard.site.asked}) == 5

    async def test_one_that_is_not_due_any_more_is_not_taken(self, yard: Yard) -> None:
        await self.ended(yard)
        await yard.duty._derive_jobs()
        now = yard.clock()
        taken = [await yard.store.deliveries.claim("me", now, now + 9, []) for _ in range(2)]
        assert taken[0] is not None
        assert taken[1] is None
        assert await yard.store.deliveries.end_attempt(replace(taken[0], next_at=now + 10))

        async def claim_and_give_back(holder: str) -> int:
            delivery = await yard.store.deliveries.claim(holder, now + 10, now + 20, [])
            if delivery is None:
                return 0
            await yard.store.deliveries.end_attempt(replace(delivery, next_at=now + 60))
            return 1

        assert sum(await asyncio.gather(*(claim_and_give_back(f"h{number}") for number in range(8)))) == 1

    async def test_it_is_given_up_after_a_day_and_the_job_says_so(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = page(b"", status=503)
        await self.ended(yard)
        for _ in range(60):
            await yard.round(1800)
        (delivery,) = await yard.all()
        assert delivery.state is DeliveryState.FAILED
        assert delivery.finished_at is not None
        assert 22 * 3600 < delivery.finished_at - delivery.created_at <= 24 * 3600
        assert 25 <= delivery.attempts <= 35
        events = await yard.store.events.after(delivery.subject, 0, 10)
        assert [event.kind for event in events] == ["webhook"]

    async def test_gone_is_final(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = page(b"", status=410)
        await self.ended(yard)
        await yard.round()
        assert [one.state for one in await yard.all()] == [DeliveryState.FAILED]

    async def test_retry_after_is_heard(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = page(b"", status=429, retry_after="120")
        await self.ended(yard)
        await yard.round()
        (delivery,) = await yard.all()
        assert delivery.next_at == yard.clock() + 120

    async def test_a_retry_after_that_is_a_date_is_heard(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = page(b"", status=503, retry_after=formatdate(time.time() + 1000, usegmt=True))
        await self.ended(yard)
        await yard.round()
        (delivery,) = await yard.all()
        assert delivery.next_at is not None
        assert delivery.next_at > yard.clock() + 500

    async def test_redirects_are_not_followed(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = redirect("/elsewhere")
        await self.ended(yard)
        await yard.round()
        assert [asked.path for asked in yard.site.asked] == ["/hook"]
        (delivery,) = await yard.all()
        assert "redirects are not followed" in delivery.log[0].error

    async def test_private_addresses_are_refused(self, yard: Yard) -> None:
        strict = Settings.model_validate({"webhooks": {"secret": SECRET}})
        await self.ended(yard)
        await yard.round(duty=yard.dispatcher("strict", strict))
        (delivery,) = await yard.all()
        assert (delivery.state, delivery.attempts) == (DeliveryState.FAILED, 1)
        assert "loopback" in delivery.log[0].error
        assert yard.site.asked == []

    async def test_without_a_secret_nothing_is_sent(self, yard: Yard) -> None:
        await self.ended(yard)
        await yard.round(duty=yard.dispatcher("bare", Settings()))
        (delivery,) = await yard.all()
        assert "webhooks.secret" in delivery.log[0].error
        assert yard.site.asked == []

    async def test_a_receiver_that_says_nothing_is_left(self, yard: Yard) -> None:
        await self.ended(yard, "/never")
        await yard.round(duty=yard.dispatcher("impatient", settings(1)))
        await self.ended(yard)
        await yard.round()
        silent, taken = sorted(await yard.all(), key=lambda one: one.state is DeliveryState.DELIVERED)
        assert taken.state is DeliveryState.DELIVERED
        assert silent.log[0].status is None
        assert "longer than 1 s" in silent.log[0].error

    async def test_a_long_answer_counts_by_its_status(self, yard: Yard) -> None:
        yard.site.routes["/hook"] = page(b"x" * 200_000)
        await self.ended(yard)
        await yard.round()
        assert [one.state for one in await yard.all()] == [DeliveryState.DELIVERED]

    async def test_a_kill_after_sending_sends_it_again(self, yard: Yard) -> None:
        await self.ended(yard)
        await yard.round(duty=yard.dispatcher("bare", SETTINGS))
        (sent,) = await yard.all()
        await yard.store.deliveries.replay(sent.id, yard.clock(), yard.clock() + 99)
        taken = await yard.store.deliveries.claim("killed", yard.clock(), yard.clock() + 22, [])
        assert taken is not None
        await yard.round(21)
        assert len(yard.site.asked) == 1
        await yard.round(1)
        assert len(yard.site.asked) == 2
        assert len({asked.headers["scrapeyard-delivery"] for asked in yard.site.asked}) == 1
        assert not await yard.store.deliveries.end_attempt(replace(taken, next_at=0.0))

    async def test_stopping_breaks_off(self, yard: Yard) -> None:
        await self.ended(yard, "/never")
        await yard.duty.run_once()
        await yard.site.until(lambda: len(yard.site.asked) == 1)
        await yard.duty.stop()
        await yard.duty.stop()
        (delivery,) = await yard.all()
        assert (delivery.state, delivery.attempts) == (DeliveryState.WAITING, 1)

    async def test_a_slow_receiver_holds_up_no_other(self, yard: Yard) -> None:
        async with Site(otherwise=never) as slow:
            for number in range(20):
                job = a_job(
                    webhook=Raw(json.dumps({"url": slow.url("/", "localhost"), "events": ["job.cancelled"]}).encode())
                )
                await yard.store.jobs.create(job)
                await yard.store.jobs.cancel(job.id, False, yard.clock() - 100 + number)
            await self.ended(yard)
            await yard.duty.run_once()
            await yard.site.until(lambda: len(yard.site.asked) == 1)
            assert len(slow.asked) <= 4
            await yard.duty.stop()


class TestLog:
    async def test_pages_filters_and_replay(self, yard: Yard) -> None:
        jobs = [await yard.job("job.cancelled", path="/hook" if number else "/gone") for number in range(5)]
        yard.site.routes["/gone"] = page(b"", status=410)
        for number, job in enumerate(jobs):
            await yard.store.jobs.cancel(job.id, False, yard.clock() + number)
        await yard.round(10)
        seen: list[str] = []
        cursor = None
        while True:
            found = await yard.store.deliveries.page(DeliveryFilter(), cursor, 2)
            seen += [one.subject for one in found.deliveries]
            assert all(one.body == b"" for one in found.deliveries)
            if (cursor := found.next_cursor) is None:
                break
        assert seen == [job.id for job in jobs[::-1]]
        (failed,) = (await yard.store.deliveries.page(DeliveryFilter(state=DeliveryState.FAILED), None, 9)).deliveries
        assert failed.subject == jobs[0].id
        assert (await yard.store.deliveries.page(DeliveryFilter(subject=jobs[0].id), None, 9)).deliveries == (failed,)
        with pytest.raises(BadRequest):
            await yard.store.deliveries.page(DeliveryFilter(), "nonsense!", 9)
        yard.site.routes["/gone"] = page(b"")
        again = await yard.store.deliveries.replay(failed.id, yard.clock(), yard.clock() + 99)
        assert again is not None
        await yard.round()
        kept = await yard.store.deliveries.get(failed.id)
        assert kept is not None
        assert (kept.state, kept.attempts, len(kept.log)) == (DeliveryState.DELIVERED, 2, 2)
        assert await yard.store.deliveries.replay("delivery_none", 0.0, 0.0) is None
        assert await yard.store.deliveries.get("\0") is None

    async def test_old_ones_are_dropped(self, yard: Yard) -> None:
        job = await yard.job("job.cancelled")
        await yard.store.jobs.cancel(job.id, False, yard.clock())
        await yard.round()
        await yard.round(6.9 * 86_400)
        assert len(await yard.all()) == 1
        await yard.round(0.2 * 86_400)
        assert await yard.all() == []
        assert len(yard.site.asked) == 1
