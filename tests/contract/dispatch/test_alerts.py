"""Alerts: every rule fires when it must and not when it must not; receivers are told once, again, and of the end."""

import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from msgspec.structs import replace
from pydantic import ValidationError

from scrapeyard.dispatch.alerts.alerts import MAX_SUBJECTS, Alerts
from scrapeyard.dispatch.alerts.messages import CHANNEL, AlertSender
from scrapeyard.dispatch.alerts.rules import AlertRules
from scrapeyard.dispatch.webhooks.webhooks import Webhooks
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model import Delivery, ExitReason, Priority
from scrapeyard.model.drift import sights_of
from scrapeyard.model.export import SinkState
from scrapeyard.model.identity import ApiKey, ClientBudget, ClientLimits, Role
from scrapeyard.model.job import BY_BUDGET, JobStatus
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import Meter
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.store.ports.webhooks import Alert, DeliveryFilter
from scrapeyard.wiring.duties import make_webhook_engine
from tests.contract.dispatch.test_webhooks import signed_well
from tests.contract.finished_jobs import bad, finished_job, good
from tests.contract.job_nouns import a_job
from tests.contract.nouns import a_run, a_worker, an_ending, begun
from tests.contract.store.test_schedule_store import a_schedule
from tests.leaks import PATIENCE
from tests.services.job_yard import Clock
from tests.services.ports import free_port
from tests.sites.site import Site, page

SECRET = "a secret of sixteen or more"
HUSH = "T0/B0/hush-hush"


class Yard:
    """A store, a queue and a clock, and leaders that evaluate and send."""

    def __init__(self, store: DurableStore, **alerts: Any) -> None:
        self.store = store
        self.queue = MemoryQueue()
        self.clock = Clock()
        webhooks = {"allow_hosts": ["127.0.0.0/8"], "timeout_seconds": PATIENCE}
        self.settings = Settings.model_validate({"alerts": alerts, "webhooks": webhooks})
        self.engine = make_webhook_engine(self.settings)
        self.lead()

    def lead(self) -> None:
        """A new leader, which knows only what the store does."""
        settings, clock = self.settings, self.clock
        self.duty = Alerts(settings, self.store.alerts, AlertRules(settings, self.store, self.queue, clock), clock)
        sender = AlertSender(settings.webhooks, self.engine, self.store.sealer, clock, settings.alerts)
        self.sending = Webhooks(settings, self.store, sender, clock, "one")

    async def round(self, seconds: float = 30.0) -> dict[str, str]:
        """What lasts, by subject, after so long."""
        self.clock.now += seconds
        await self.duty.run_once()
        await self.sending.run_once()
        await self.sending.idle()
        return {alert.subject: alert.words for alert in await self.store.alerts.firing()}

    async def beat(self, **more: Any) -> None:
        await self.store.workers.beat(a_worker(seen_at=self.clock(), **more))

    async def end_runs(self, count: int, reason: ExitReason, scraper: str = "shop/product") -> None:
        for _ in range(count):
            run = a_run(scraper=f"{scraper}@1.4.2", created_at=self.clock())
            await self.store.runs.add([run])
            ending = an_ending(begun(run), exit_reason=reason, finished_at=self.clock(), scraper=None, result=None)
            await self.store.runs.finish([ending])

    async def ask_site(self, site: str, requests: int, failures: int, client: str = "") -> None:
        meter = Meter(
            day=day_of(self.clock()), writer="m", job_id="", site=site, pool="", proxy_class="", client=client,
            requests=requests, failures=failures, bytes=0,
        )  # fmt: skip
        await self.store.meters.put([meter])


def only(kind: str, **more: Any) -> dict[str, Any]:
    return {"rules": [{"kind": kind, **more}], "every_seconds": 1}


@pytest.fixture
async def made(store: DurableStore) -> AsyncIterator[Any]:
    """Makes yards on a store of each kind."""
    yards: list[Yard] = []

    def make(**alerts: Any) -> Yard:
        yards.append(Yard(store, **alerts))
        return yards[-1]

    yield make
    for yard in yards:
        await yard.sending.stop()
        await yard.engine.stop()


class TestRules:
    async def test_drift(self, made: Any) -> None:
        yard = made(**only("drift", only=["shop/*"]))
        for subject in ("shop/product", "other/product", "pat_1"):
            pages = [sights_of({"price": 3 + n}) for n in range(60)] + [sights_of({"price": None})] * 20
            await yard.store.drift.observe(subject, "shop.example", "1", pages, yard.clock())
        words = "fields of shop/product on shop.example are not as they were: price (emptied)"
        assert await yard.round() == {"shop/product shop.example": words}
        await yard.store.drift.forget("shop/product")
        assert await yard.round() == {}

    async def test_failure_rate(self, made: Any) -> None:
        yard = made(**only("failure_rate", threshold=0.2, minimum=10))
        await yard.end_runs(5, ExitReason.TIMEOUT)
        assert await yard.round() == {}, "too few to tell"
        await yard.end_runs(20, ExitReason.SUCCEEDED)
        await yard.end_runs(5, ExitReason.CANCELLED)
        assert await yard.round() == {}, "5 of 25 are no more than a fifth, and who cancels does not fail"
        await yard.end_runs(2, ExitReason.TIMEOUT)
        assert await yard.round() == {"all": "7 of 27 runs and items failed in the last 15 minutes (26%)"}
        assert list(await yard.round(60)) == ["all"]
        assert await yard.round(16 * 60) == {}, "nothing has ended since"

    async def test_failure_rate_of_some_scrapers(self, made: Any) -> None:
        yard = made(**only("failure_rate", only=["toys/*"], minimum=5))
        await yard.end_runs(10, ExitReason.TIMEOUT)
        assert await yard.round() == {}
        await yard.end_runs(10, ExitReason.TIMEOUT, scraper="toys/list")
        assert list(await yard.round()) == ["all"]

    async def test_failure_rate_of_items(self, made: Any, store: DurableStore) -> None:
        yard = made(**only("failure_rate", threshold=0.2, minimum=4))
        await finished_job(store, [good(n, {}) for n in range(4)], job_id="job_before", at=yard.clock() - 3600)
        assert await yard.round() == {}, "who knows when the items of an old job ended"
        await finished_job(store, [bad(n) for n in range(3)] + [good(3, {})], at=yard.clock())
        await store.jobs.move("job_1", JobStatus.FINISHING, JobStatus.COMPLETED, yard.clock())
        told = {"all": "3 of 4 runs and items failed in the last 15 minutes (75%)"}
        assert await yard.round() == told, "a job that began and ended between two looks"
        assert await yard.round(60) == told
        yard.lead()
        assert await yard.round() == told, "a new leader counts a job that is younger than the window"
        assert await yard.round(16 * 60) == {}

    async def test_queue_age(self, made: Any) -> None:
        yard = made(**only("queue_age", threshold=100))
        for lane in ("default", "slow"):
            fields = {"scraper": "a/b", "input": b"{}", "lane": lane, "priority": Priority.NORMAL, "attempt": 1}
            run = a_run(lane=lane)
            delivery = Delivery(
                run_id=run.id, **{**fields, "input": run.input}, max_attempts=1, timeout_seconds=1.0,
                created_at=yard.clock(), queued_at=yard.clock(),
            )  # fmt: skip
            await yard.queue.publish([delivery])
        assert await yard.round(99) == {}
        assert await yard.round() == {
            lane: f"work has waited in lane {lane} for 129 seconds" for lane in ("default", "slow")
        }
        await yard.queue.take(["slow"], 1, list(Priority), 0)
        assert list(await yard.round()) == ["default"]

    async def test_budget_of_a_client_and_of_a_job(self, made: Any) -> None:
        yard = made(**only("budget", threshold=0.8))
        limits = ClientLimits(daily=ClientBudget(fetches=100))
        key = ApiKey(
            id="key_1", name="k", client="shop", role=Role.CLIENT, digest="d", pepper_id="p", created_at=0.0,
            changed_at=0.0, limits=limits,
        )  # fmt: skip
        await yard.store.api_keys.add(key, 0.0)
        await yard.ask_site("a.example", 79, 0, client="shop")
        assert await yard.round() == {}
        await yard.ask_site("a.example", 80, 0, client="shop")
        assert await yard.round() == {"client shop": "client shop has used 80 of 100 fetches of this day (80%)"}
        job = a_job()
        await yard.store.jobs.create(job)
        await yard.store.jobs.end_reading(job.id, 0, "", yard.clock())
        await yard.store.jobs.set_paused(job.id, True, "by hand", yard.clock())
        yard.clock.now += 86_400
        assert await yard.round() == {}, "a new day, and a job that somebody paused"
        await yard.store.jobs.set_paused(job.id, False, "", yard.clock())
        await yard.store.jobs.set_paused(job.id, True, BY_BUDGET, yard.clock())
        assert await yard.round() == {f"job {job.id}": f"job {job.id} is paused: its budget is used up"}

    async def test_stale_schedules(self, made: Any) -> None:
        yard = made(**only("stale_schedules", threshold=300))
        schedule = a_schedule(next_due=yard.clock(), next_at=yard.clock())
        await yard.store.schedules.add(schedule, 100)
        await yard.store.schedules.add(a_schedule(next_due=yard.clock() + 9e6, next_at=yard.clock() + 9e6), 100)
        assert await yard.round(299) == {}
        assert await yard.round() == {schedule.id: "schedule nightly should have started 329 seconds ago"}

    async def test_no_data(self, made: Any) -> None:
        yard = made(**only("no_data", window_minutes=10, minimum=5))
        await yard.ask_site("down.example", 10, 10)
        assert await yard.round() == {}, "it cannot tell yet when that was"
        await yard.ask_site("down.example", 14, 14)
        await yard.round(300)
        assert await yard.round(300) == {}, "four requests are too few"
        await yard.ask_site("down.example", 30, 30)
        assert await yard.round(60) == {
            "down.example": "down.example answered none of 20 requests of the last 10 minutes"
        }
        await yard.ask_site("down.example", 31, 30)
        assert await yard.round(60) == {}, "it has answered"

    async def test_no_data_of_a_site_that_should_be_asked(self, made: Any) -> None:
        yard = made(**only("no_data", window_minutes=10, only=["shop.example"]))
        await yard.ask_site("shop.example", 10, 0)
        await yard.ask_site("other.example", 10, 0)
        await yard.round()
        await yard.ask_site("shop.example", 11, 0)
        assert await yard.round(600) == {}
        assert await yard.round(600) == {"shop.example": "nothing was asked of shop.example for 10 minutes"}

    async def test_worker_loss(self, made: Any) -> None:
        yard = made(**only("worker_loss"))
        await yard.beat(id="worker_1")
        await yard.beat(id="worker_2")
        assert await yard.round(10) == {}
        yard.clock.now += 20
        await yard.beat(id="worker_1")
        assert await yard.round(10) == {"worker_2": "worker worker_2 on node-1 has fallen silent"}
        await yard.store.workers.forget("worker_2")
        await yard.beat(id="worker_1")
        assert list(await yard.round(10)) == ["worker_2"], "the row goes soon, the news stays"
        yard.clock.now += 3600
        await yard.beat(id="worker_1")
        assert await yard.round(10) == {}
        await yard.store.workers.forget("worker_1")
        assert await yard.round() == {"all": "no worker is alive: nothing runs"}, "also if it went in order"

    async def test_sinks_that_were_given_up(self, made: Any) -> None:
        yard = made(**only("sinks"))
        job = a_job(sinks=("lake", "warehouse"))
        assert await yard.store.jobs.create(job)
        assert await yard.round() == {}
        given_up = (await yard.store.sinks.of_jobs([job.id]))[1]
        failed = await yard.store.sinks.put(replace(given_up, state=SinkState.FAILED, due_at=None))
        assert await yard.round(60) == {"warehouse": "sink warehouse took nothing for too long: gave up 1 job"}
        assert await yard.store.sinks.put(replace(failed, state=SinkState.ACTIVE, due_at=0.0))
        assert await yard.round(60) == {}

    async def test_many_subjects_do_not_flood(self, made: Any) -> None:
        yard = made(**only("worker_loss"))
        for number in range(MAX_SUBJECTS + 5):
            await yard.beat(id=f"worker_{number:03}")
        assert len(await yard.round(60)) == MAX_SUBJECTS


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(routes={"/hook": page(b"ok"), f"/services/{HUSH}": page(b"ok")}) as site:
        yield site


class Inbox:
    """What a real SMTP server took. Refuses while `is_full`."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.is_full = False

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802  aiosmtpd's name
        if self.is_full:
            return "452 no room"
        self.mails.append(envelope)
        return "250 taken"


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, int]]:
    inbox, port = Inbox(), free_port()
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    yield inbox, port
    controller.stop()


def receivers(site: Site, smtp_port: int) -> dict[str, Any]:
    return {
        "webhook_url": site.url("/hook"),
        "webhook_secret": SECRET,
        "slack_url": site.url(f"/services/{HUSH}"),
        "email_to": ["ops@example.com"],
        "smtp_port": smtp_port,
    }


class TestTelling:
    async def test_every_receiver_is_told_once_again_and_of_the_end(
        self, made: Any, site: Site, inbox: tuple[Inbox, int]
    ) -> None:
        box, port = inbox
        yard = made(**only("worker_loss"), **receivers(site, port), repeat_hours=1)
        for _ in range(3):
            await yard.round()
        yard.lead()
        await yard.round()
        assert (len(site.asked), len(box.mails)) == (2, 1), "once, also with a new leader"
        signed = next(asked for asked in site.asked if asked.path == "/hook")
        assert signed_well(signed, SECRET)
        told = json.loads(signed.body)
        assert (told["event"], told["alert"]["rule"], told["alert"]["state"]) == (
            "alert.firing",
            "worker_loss",
            "firing",
        )
        slack = next(asked for asked in site.asked if asked.path != "/hook")
        assert "no worker is alive" in json.loads(slack.body)["text"]
        assert b"Subject: Scrapeyard ALERT: worker_loss (all)" in box.mails[0].content
        await yard.round(3600)
        assert (len(site.asked), len(box.mails)) == (4, 2), "it lasts"
        yard.clock.now += 60
        await yard.beat()
        await yard.round(10)
        assert (len(site.asked), len(box.mails)) == (6, 3)
        assert b"resolved" in box.mails[-1].content
        page = await yard.store.alerts.page("resolved", None, 10)
        assert [(alert.tells, alert.resolved_at) for alert in page.alerts] == [(2, yard.clock())]

    async def test_what_is_not_taken_is_sent_again_and_no_address_is_stored(
        self, made: Any, store: DurableStore, inbox: tuple[Inbox, int]
    ) -> None:
        box, port = inbox
        box.is_full = True
        async with Site() as gone:
            dead = gone.url(f"/services/{HUSH}")
        yard = made(**only("worker_loss"), slack_url=dead, email_to=["ops@example.com"], smtp_port=port)
        await yard.round()
        assert not box.mails
        box.is_full = False
        yard.lead()
        await yard.round(60)
        assert len(box.mails) == 1
        deliveries = (await store.deliveries.page(DeliveryFilter(), None, 10)).deliveries
        states = {each.url: (each.state.value, each.attempts) for each in deliveries}
        assert states == {f"{CHANNEL}email": ("delivered", 2), f"{CHANNEL}slack": ("waiting", 2)}
        assert all(HUSH not in repr(each) and attempt.error for each in deliveries for attempt in each.log[:1])
        assert HUSH not in repr(yard.settings.alerts)

    async def test_a_login_over_starttls(self, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        logins: list[Any] = []

        def check(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
            logins.append((data.login, data.password))
            return AuthResult(success=data.password == b"hush")

        inbox, port = Inbox(), free_port()
        more = {"tls_context": context, "require_starttls": True, "authenticator": check, "auth_required": True}
        controller = Controller(inbox, hostname="127.0.0.1", port=port, **more)
        controller.start()
        try:
            smtp = {"smtp_port": port, "smtp_security": "starttls", "smtp_user": "ops", "smtp_password": "hush"}
            yard = made(**only("worker_loss"), email_to=["ops@example.com"], **smtp)
            await yard.round()
        finally:
            controller.stop()
        assert (logins, len(inbox.mails)) == ([(b"ops", b"hush")], 1)

    async def test_of_two_leaders_one_tells(self, made: Any, store: DurableStore, site: Site) -> None:
        yard = made(**only("worker_loss"), webhook_url=site.url("/hook"), webhook_secret=SECRET)
        await yard.round()
        (alert,) = await store.alerts.firing()
        assert not await store.alerts.open(Alert(**{**_fields(alert), "id": "alert_other"}), ())
        assert not await store.alerts.change(Alert(**{**_fields(alert), "tells": 7}), alert, ())

    async def test_rules_that_are_gone_are_resolved(self, made: Any, store: DurableStore) -> None:
        await made(**only("worker_loss")).round()
        assert len(await store.alerts.firing()) == 1
        assert await made(enabled=False).round() == {}


def _fields(alert: Alert) -> dict[str, Any]:
    return {name: getattr(alert, name) for name in alert.__struct_fields__}


@pytest.mark.parametrize(
    "given",
    [
        {"rules": [{"kind": "worker_loss"}, {"kind": "worker_loss"}]},
        {"rules": [{"kind": "weather"}]},
        {"webhook_url": "http://a.example", "webhook_secret": "short"},
        {"slack_url": "hooks.example/x"},
        {"email_to": ["nobody"]},
        {"smtp_user": "ops"},
    ],
)
def test_settings_that_cannot_work_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"alerts": given})
