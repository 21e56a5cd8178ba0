"""`/api/schedule` and `/api/webhooks`, and what the dispatcher makes of them by the gateway's own steps."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.dispatch.schedules.schedules import Schedules
from scrapeyard.dispatch.webhooks.sending import Sender
from scrapeyard.dispatch.webhooks.webhooks import Webhooks
from scrapeyard.gateway.app import application
from scrapeyard.gateway.runs.admission import Lanes, RunBuilder
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.schedules import service
from scrapeyard.gateway.schedules.starting import TemplateStarter
from scrapeyard.gateway.services import Gateway
from scrapeyard.settings import Settings
from scrapeyard.wiring.duties import make_webhook_engine
from tests.integration.gateway_stand import Stand, open_services, write_scraper
from tests.leaks import PATIENCE
from tests.services.job_yard import Clock
from tests.sites.site import Site, page

SECRET = "sixteen-letters-and-more"
SETTINGS = Settings.model_validate({"webhooks": {"allow_hosts": ["127.0.0.1"], "timeout_seconds": PATIENCE}})
NIGHTLY = {"cron": "30 3 * * *", "time_zone": "Europe/Berlin"}
JOB = {"scraper": "shop/product", "items": ["https://shop.example/1", "https://shop.example/2"]}


class Desk:
    """The door, and the dispatcher's two duties behind it."""

    def __init__(self, stand: Stand, clock: Clock) -> None:
        self.stand = stand
        self.client = stand.client
        self.clock = clock
        gateway, store = stand.gateway, stand.store
        self.starter = TemplateStarter(
            store=store, queue=stand.queue, creation=gateway.jobs.creation, control=gateway.jobs.control,
            builder=RunBuilder(
                stand.services.catalogue, Lanes(store.workers, Settings()), "builtin/page", stand.services.queue
            ),
            receivers=WebhookValidator(stand.settings.webhooks, store.sealer),
            cancelling=gateway.cancelling, clock=clock,
        )  # fmt: skip
        self.schedules = Schedules(store, self.starter, clock, "d1")
        self.engine = make_webhook_engine(stand.settings)
        sender = Sender(stand.settings.webhooks, self.engine, store.sealer, clock)
        self.webhooks = Webhooks(stand.settings, store, sender, clock, "d1")

    async def round(self, seconds: float = 0.0) -> None:
        self.clock.now += seconds
        for duty in (self.schedules, self.webhooks):
            await duty.run_once()
            await duty.idle()

    async def make(self, **call: Any) -> dict[str, Any]:
        response = await self.client.post("/api/schedule", json=call)
        assert response.status_code == 201, response.text
        assert response.headers["location"] == response.json()["links"]["self"]
        return dict(response.json())

    async def get(self, path: str, **query: Any) -> dict[str, Any]:
        response = await self.client.get(path, params=query)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def post(self, path: str, status: int = 200) -> dict[str, Any]:
        response = await self.client.post(path)
        assert response.status_code == status, response.text
        return dict(response.json())

    async def history(self, made: dict[str, Any]) -> list[dict[str, Any]]:
        return list((await self.get(made["links"]["history"]))["firings"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """With a clock that is moved by hand."""
    clock = Clock()
    async with open_services(tmp_path, SETTINGS) as opened:
        services = replace(opened, clock=clock)
        gateway = Gateway(services)
        app = application(gateway)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://gateway", timeout=PATIENCE
            ) as client,
        ):
            parts = {name: getattr(services, name) for name in ("settings", "queue", "store", "recorder", "blobs")}
            desk = Desk(Stand(services=services, gateway=gateway, app=app, client=client, **parts), clock)
            yield desk
            await desk.engine.stop()


class TestKeeping:
    async def test_one_is_shown_with_its_next_five_times(self, desk: Desk) -> None:
        made = await desk.make(name="nightly", **NIGHTLY, job=JOB, jitter_seconds=60)
        assert made == await desk.get(made["links"]["self"])
        assert (made["target"], made["job"], made["scrape"]) == ("job", JOB, None)
        assert made["next_runs"][:2] == ["2027-01-16T03:30:00+01:00", "2027-01-17T03:30:00+01:00"]
        assert len(made["next_runs"]) == 5
        assert re.fullmatch(r"2027-01-16T02:30:\d\d\.\d+Z", made["next_run_at"])
        assert (made["overlap"], made["missed"], made["paused"], made["last_id"]) == ("skip", "run_once", False, None)

    async def test_secrets_are_never_shown(self, desk: Desk) -> None:
        hook = {"url": "https://hooks.example/x", "secret": SECRET}
        made = await desk.make(every_seconds=60, job=JOB | {"webhook": hook})
        other = await desk.make(every_seconds=60, scrape={"url": "https://shop.example/", "webhook": hook})
        assert made["job"]["webhook"] == {"url": "https://hooks.example/x", "own_secret": True}
        listed = await desk.client.get("/api/schedule")
        assert SECRET not in listed.text + json.dumps([made, other])

    async def test_pages(self, desk: Desk) -> None:
        ids = [(await desk.make(every_seconds=60, job=JOB))["id"] for _ in range(3)]
        first = await desk.get("/api/schedule", limit=2)
        rest = await desk.get("/api/schedule", limit=2, cursor=first["next_cursor"])
        assert {one["id"] for one in first["schedules"] + rest["schedules"]} == set(ids)
        assert rest["next_cursor"] is None

    async def test_what_is_changed_is_counted_from_now(self, desk: Desk) -> None:
        made = await desk.make(**NIGHTLY, job=JOB)
        here = made["links"]["self"]
        named = (await desk.client.patch(here, json={"name": "b", "overlap": "queue"})).json()
        assert (named["name"], named["overlap"], named["next_run_at"]) == ("b", "queue", made["next_run_at"])
        timed = (await desk.client.patch(here, json={"every_seconds": 3600})).json()
        assert (timed["cron"], timed["every_seconds"]) == (None, 3600)
        assert timed["next_run_at"] == "2027-01-15T09:00:00.000Z"
        back = (await desk.client.patch(here, json={"cron": "@hourly", "job": JOB | {"name": "x"}})).json()
        assert (back["cron"], back["every_seconds"], back["job"]["name"]) == ("0 * * * *", None, "x")

    async def test_pause_and_resume(self, desk: Desk) -> None:
        made = await desk.make(every_seconds=60, job=JOB)
        for _ in range(2):
            paused = await desk.post(made["links"]["self"] + "/pause")
            assert (paused["paused"], paused["next_run_at"], paused["next_runs"]) == (True, None, [])
        await desk.round(3600)
        assert await desk.history(made) == []
        for wait in (0, 30, 29.9):
            desk.clock.now += wait
            resumed = await desk.post(made["links"]["self"] + "/resume")
            assert (resumed["paused"], resumed["next_run_at"]) == (False, "2027-01-15T09:01:00.000Z")
        same = await desk.client.patch(made["links"]["self"], json={"every_seconds": 60, "time_zone": "UTC"})
        assert same.json()["next_run_at"] == "2027-01-15T09:01:00.000Z"

    async def test_delete(self, desk: Desk) -> None:
        made = await desk.make(every_seconds=60, job=JOB)
        assert (await desk.client.delete(made["links"]["self"])).status_code == 204
        for path in ("", "/history"):
            assert (await desk.client.get(made["links"]["self"] + path)).status_code == 404
        for path in ("/run", "/pause", "/resume"):
            assert (await desk.client.post(made["links"]["self"] + path)).status_code == 404
        assert (await desk.client.delete(made["links"]["self"])).status_code == 404

    @pytest.mark.parametrize(
        ("call", "status", "words"),
        [
            ({"job": JOB}, 422, "one of cron and every_seconds"),
            ({"cron": "@daily", "every_seconds": 60, "job": JOB}, 422, "one of cron and every_seconds"),
            ({"cron": "@daily"}, 422, "one of job and scrape"),
            ({"cron": "@daily", "job": JOB, "scrape": {"url": "https://a.example/"}}, 422, "one of job and scrape"),
            ({"cron": "99 * * * *", "job": JOB}, 400, "bad minute"),
            ({"cron": "0 0 3 * * *", "job": JOB}, 400, "five fields"),
            ({"cron": "@daily", "time_zone": "Mars/Olympus", "job": JOB}, 400, "Europe/Berlin"),
            ({"every_seconds": 1, "job": JOB}, 422, "greater than or equal to 10"),
            ({"every_seconds": 60, "job": {"items": []}}, 422, "at least 1 item"),
            ({"every_seconds": 60, "job": JOB | {"scraper": "no/such"}}, 404, "no/such"),
            ({"every_seconds": 60, "job": {"items": ["https://a.example/", 7]}}, 400, "line 2"),
            ({"every_seconds": 60, "job": {"sitemap_url": "ftp://a.example/"}}, 422, "sitemap_url"),
            ({"every_seconds": 60, "job": JOB | {"lane": "no-such"}}, 400, "no-such"),
            ({"every_seconds": 60, "scrape": {}}, 422, "at least one of url and scraper"),
            ({"every_seconds": 60, "scrape": {"scraper": "shop/product"}}, 422, "url"),
            ({"every_seconds": 60, "scrape": {"url": "https://a.example/", "urls": []}}, 422, "unknown field"),
            ({"every_seconds": 60, "job": JOB | {"webhook": {"url": "https://a.example/"}}}, 400, "webhook.secret"),
            ({"every_seconds": 60, "job": JOB, "nonsense": 1}, 422, "unknown field"),
        ],
    )
    async def test_what_cannot_be_is_refused(self, desk: Desk, call: dict[str, Any], status: int, words: str) -> None:
        response = await desk.client.post("/api/schedule", json=call)
        assert (response.status_code, words in response.text) == (status, True), response.text
        assert (await desk.get("/api/schedule"))["schedules"] == []

    async def test_changes_that_cannot_be_are_refused(self, desk: Desk) -> None:
        made = await desk.make(**NIGHTLY, job=JOB)
        for change, words in (
            ({"scrape": {"url": "https://a.example/"}}, "starts a job"),
            ({"cron": "nonsense"}, "five fields"),
            ({"time_zone": "Mars/Olympus"}, "not known"),
        ):
            response = await desk.client.patch(made["links"]["self"], json=change)
            assert (response.status_code, words in response.text) == (400, True), response.text
        assert await desk.get(made["links"]["self"]) == made

    async def test_there_is_a_bound(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(service, "MAX_SCHEDULES", 1)
        await desk.make(every_seconds=60, job=JOB)
        response = await desk.client.post("/api/schedule", json={"every_seconds": 60, "job": JOB})
        assert (response.status_code, response.json()["code"]) == (409, "conflict")

    async def test_a_template_has_a_bound(self, desk: Desk) -> None:
        long = {"items": ["https://shop.example/" + "x" * 1000 for _ in range(1100)]}
        response = await desk.client.post("/api/schedule", json={"every_seconds": 60, "job": long})
        assert (response.status_code, "items_url" in response.text) == (400, True)


class TestStarting:
    async def test_a_job_is_made_as_a_call_would_make_it(self, desk: Desk) -> None:
        made = await desk.make(every_seconds=3600, job=JOB | {"name": "hourly"})
        await desk.round(3600)
        (firing,) = await desk.history(made)
        assert (firing["state"], firing["kind"], firing["reason"]) == ("started", "scheduled", None)
        job = await desk.get(f"/api/jobs/{firing['id']}")
        assert (job["name"], job["schedule_id"], job["version"]) == ("hourly", made["id"], "1.4.2")
        assert (job["status"], job["counts"]["total"]) == ("running", 2)
        assert (await desk.get(made["links"]["self"]))["last_id"] == job["id"]
        await desk.round(3600)
        assert [one["state"] for one in await desk.history(made)] == ["skipped", "started"]

    async def test_the_previous_job_is_cancelled(self, desk: Desk) -> None:
        made = await desk.make(every_seconds=3600, job=JOB, overlap="cancel_previous")
        await desk.round(3600)
        await desk.round(3600)
        await desk.round(1)
        newer, older = await desk.history(made)
        assert (newer["state"], older["state"]) == ("started", "started")
        assert (await desk.get(f"/api/jobs/{older['id']}"))["status"] == "cancelled"

    async def test_a_run_is_started_and_delivered(self, desk: Desk) -> None:
        scrape = {"scraper": "shop/product", "input": {"url": "https://shop.example/1"}, "policy": {"retries": 3}}
        made = await desk.make(every_seconds=3600, scrape=scrape)
        await desk.round(3600)
        delivery = await desk.stand.take()
        (firing,) = await desk.history(made)
        assert (delivery.run_id, delivery.redelivered, delivery.max_attempts) == (firing["id"], True, 4)
        assert delivery.scraper == "shop/product@1.4.2"
        assert (await desk.get(f"/api/scrape/{firing['id']}"))["status"] == "queued"
        await desk.client.delete(f"/api/scrape/{firing['id']}")
        await desk.round(3600)
        assert [one["state"] for one in await desk.history(made)] == ["started", "started"]

    async def test_run_now_names_what_it_will_start(self, desk: Desk) -> None:
        made = await desk.make(**NIGHTLY, job=JOB, paused=True)
        firing = await desk.post(made["links"]["self"] + "/run", 202)
        assert (firing["state"], firing["kind"]) == ("waiting", "manual")
        await desk.round(1)
        assert (await desk.get(f"/api/jobs/{firing['id']}"))["schedule_id"] == made["id"]
        assert [(one["state"], one["id"]) for one in await desk.history(made)] == [("started", firing["id"])]

    async def test_what_is_wrong_at_night_is_told_in_the_history(self, desk: Desk, tmp_path: Path) -> None:
        made = await desk.make(every_seconds=3600, job=JOB)
        script = write_scraper(tmp_path, "1.5.0") / "scraper.py"
        script.write_text("async def run(ctx, url: int) -> dict: return {}\n")
        await desk.stand.services.catalogue.refresh()
        await desk.round(3600)
        (firing,) = await desk.history(made)
        assert firing["state"] == "failed"
        assert "line 1" in firing["reason"]
        assert firing["id"] is None


class TestWebhooks:
    async def test_a_caller_is_told_when_its_run_ends(self, desk: Desk) -> None:
        async with Site(routes={"/hook": page(b"")}) as site:
            hook = {"url": site.url("/hook"), "secret": SECRET, "events": ["run.succeeded"]}
            call = {"scraper": "shop/product", "input": {"url": "https://shop.example/1"}, "webhook": hook}
            run = (await desk.client.post("/api/scrape", json=call | {"wait": 0})).json()
            await desk.round()
            assert site.asked == []
            await desk.stand.finish(await desk.stand.take())
            await desk.round(1)
            (asked,) = site.asked
            body = json.loads(asked.body)
            assert (body["event"], body["run"]["id"]) == ("run.succeeded", run["id"])
            assert body["run"]["result"] == {"title": "Tea", "price": 1.5}
            await self.check_log(desk, run["id"], asked.body.decode(), site)

    async def check_log(self, desk: Desk, run_id: str, sent: str, site: Site) -> None:
        (listed,) = (await desk.get("/api/webhooks/deliveries", subject=run_id))["deliveries"]
        assert (listed["state"], listed["attempts"], listed["status"]) == ("delivered", 1, 200)
        here = f"/api/webhooks/deliveries/{listed['id']}"
        whole = await desk.get(here)
        assert whole == listed | {"body": sent}
        assert SECRET not in json.dumps(whole)
        again = await desk.post(here + "/replay", 202)
        assert (again["state"], again["finished_at"]) == ("waiting", None)
        await desk.round(1)
        assert [asked.headers["scrapeyard-delivery"] for asked in site.asked] == [listed["id"]] * 2
        assert (await desk.get(here))["attempts"] == 2
        assert (await desk.get("/api/webhooks/deliveries", state="failed"))["deliveries"] == []
        none = "/api/webhooks/deliveries/delivery_" + "0" * 32
        assert (await desk.client.get(none)).status_code == 404
        assert (await desk.client.post(none + "/replay")).status_code == 404

    async def test_a_waiting_call_is_watched_too(self, desk: Desk) -> None:
        hook = {"url": "https://hooks.example/x?token=hidden", "secret": SECRET}
        call = {"scraper": "shop/product", "input": {"url": "https://shop.example/1"}, "webhook": hook, "wait": 0.01}
        response = await desk.client.post("/api/scrape", json=call)
        assert response.status_code == 202
        await desk.client.delete(f"/api/scrape/{response.json()['id']}")
        await desk.webhooks._derive_runs()
        (listed,) = (await desk.get("/api/webhooks/deliveries"))["deliveries"]
        assert (listed["event"], listed["state"]) == ("run.cancelled", "waiting")
        assert "hidden" not in json.dumps(listed)

    @pytest.mark.parametrize(
        ("hook", "status", "words"),
        [
            ({"url": "https://hooks.example/"}, 400, "webhook.secret"),
            ({"url": "ftp://hooks.example/", "secret": SECRET}, 422, "http"),
            ({"url": "https://:bad:/", "secret": SECRET}, 400, "webhook.url"),
            ({"url": "https://hooks.example/", "secret": "short"}, 422, "16"),
            ({"url": "https://hooks.example/", "secret": SECRET, "events": ["job.completed"]}, 422, "run.succeeded"),
            ({"url": "https://hooks.example/", "secret": SECRET, "events": []}, 422, "at least 1"),
        ],
    )
    async def test_what_cannot_be_told_is_refused(
        self, desk: Desk, hook: dict[str, Any], status: int, words: str
    ) -> None:
        response = await desk.client.post("/api/scrape", json={"url": "https://a.example/", "webhook": hook})
        assert (response.status_code, words in response.text) == (status, True), response.text

    async def test_a_job_with_a_webhook_that_cannot_be_signed_is_refused(self, desk: Desk) -> None:
        response = await desk.client.post("/api/jobs", json=JOB | {"webhook": {"url": "https://hooks.example/"}})
        assert (response.status_code, "webhook.secret" in response.text) == (400, True)
