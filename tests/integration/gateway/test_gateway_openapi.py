"""The OpenAPI document is the contract: whatever is sent, never a 500, and every answer is as the document says."""

import asyncio
import dataclasses
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.errors import Unsatisfiable
from msgspec import Raw
from msgspec.structs import replace
from schemathesis import GenerationMode, openapi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from scrapeyard.dispatch.webhooks.news import Outbox
from scrapeyard.errors import StoreUnavailable
from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.auth.permissions import GRANTS, asked_for
from scrapeyard.gateway.http.patterns import EXPORT_ID, JOB_ID, NAME, RUN_ID, VERSION
from scrapeyard.gateway.limits.memory import MemoryLimiter
from scrapeyard.gateway.schedules.schemas import SCHEDULE_ID
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.gateway.webhooks import DELIVERY_ID
from scrapeyard.model import Delivery, ExitReason, LogLine, Priority, RunError, RunStatus
from scrapeyard.model.identity import Role
from scrapeyard.model.job import ITEM_KEY, ExportWish, JobStatus
from scrapeyard.model.webhook import Attempt, DeliveryState, Webhook
from scrapeyard.queues import messages
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import Finisher
from scrapeyard.settings import AuthSettings, GatewaySettings, Settings
from scrapeyard.store.ports.runs import Ending
from scrapeyard.store.ports.webhooks import DeliveryFilter
from scrapeyard.store.sql import SqlStore
from tests.integration.gateway_stand import open_services, outcome_of, run_of, worker
from tests.integration.job_desk import post, urls
from tests.integration.job_desk import work as job_work
from tests.leaks import PATIENCE, until

ENDS = list(ExitReason)
CHECKS = [
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]

TEXT_LISTS = ("site", "key")
"""Parameters of a query that take nearly any text, and several of them."""


@dataclass(kw_only=True)
class Yard:
    """A gateway with a played worker, in a thread of its own; and a second one beside it that asks for keys."""

    folder: Path
    url: str = ""
    closed_url: str = ""
    keys: dict[Role, str] = field(default_factory=dict)
    """A secret of each role."""
    run_ids: list[str] = field(default_factory=list)
    job_ids: list[str] = field(default_factory=list)
    """One has completed, one is cancelled, one runs and one is paused, unless calls have changed that."""
    export_ids: list[str] = field(default_factory=list)
    schedule_ids: list[str] = field(default_factory=list)
    delivery_ids: list[str] = field(default_factory=list)
    up: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    async def serve(self) -> None:
        # With authentication off, keys that the calls make lock nobody out.
        limits = Settings(
            gateway=GatewaySettings(port=0, wait_seconds=1, max_wait_seconds=1), auth=AuthSettings(mode="off")
        )
        async with open_services(self.folder, limits) as services:
            await services.store.workers.beat(worker(seen_at=9e9))
            server = GatewayServer(services)
            await server.start()
            work = asyncio.create_task(self._work(services))
            self.url = server.url
            closed = await self._close(services)
            await self._make_jobs(services)
            await self._make_schedules(services)
            self.up.set()
            await asyncio.to_thread(self.done.wait)
            await closed.stop()
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            await server.stop()

    async def _close(self, services: GatewayServices) -> GatewayServer:
        settings = services.settings.model_copy(update={"auth": AuthSettings(mode="on")})
        server = GatewayServer(
            dataclasses.replace(services, settings=settings, gateway_id="gw2", limiter=MemoryLimiter())
        )
        await server.start()
        self.closed_url = server.url
        for role in Role:
            draft = KeyCall(name=f"the-{role}", role=role).draft(time.time())
            self.keys[role] = (await server._gateway.keys.create(draft))[1]
        return server

    async def _work(self, services: GatewayServices) -> None:
        """Ends every run at once, each in the next of all the ways there are."""
        while True:
            for delivery in await services.queue.take(["default", "bulk"], 50, list(Priority), 60):
                while not await self._end(services, delivery):
                    await asyncio.sleep(0.05)

    async def _make_jobs(self, services: GatewayServices) -> None:
        """One that completed with its files, one that was cancelled, one that runs and one that is paused."""
        store: SqlStore = services.store  # type: ignore[assignment]
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, trust_env=False) as client:
            items = [{"item_id": f"k{number}", "url": url} for number, url in enumerate(urls(3))]
            made = [(await post(client, items=items, paused=last))["id"] for last in (False, False, False, True)]
            for job_id in made[:1]:
                await job_work(store, job_id, lambda item: ENDS[item.seq])
                await store.jobs.move(job_id, JobStatus.RUNNING, JobStatus.FINISHING, time.time())
                job = await store.jobs.get(job_id)
                assert job is not None
                wishes = (ExportWish(type="full", format="csv"), ExportWish(type="diff", format="json"))
                exporter = Exporter(store, services.blobs, time.time)
                await Finisher(store, services.blobs, exporter, time.time).finish(replace(job, exports=wishes))
                await store.jobs.move(job_id, JobStatus.FINISHING, JobStatus.COMPLETED, time.time())
                self.export_ids = [export.id for export in await store.exports.of_job(job_id)]
            await store.jobs.cancel(made[1], False, time.time() - 60)
            await job_work(store, made[2], lambda item: ENDS[-1 - item.seq])
        self.job_ids = made

    async def _make_schedules(self, services: GatewayServices) -> None:
        """One of jobs and one of runs; deliveries that were given up and that wait."""
        store: SqlStore = services.store  # type: ignore[assignment]
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, trust_env=False) as client:
            for target in ({"job": {"items": urls(2)}}, {"scrape": {"url": urls(1)[0]}}):
                made = await post(client, "/api/schedule", cron="@daily", time_zone="Asia/Seoul", **target)
                self.schedule_ids.append(made["id"])
        webhook = Webhook(url="https://hooks.example/", events=("run.succeeded",), secret="never to be shown")
        run = run_of(Delivery(run_id=self.job_ids[0], scraper="a/b", input=Raw(b"{}"), created_at=1.0, queued_at=1.0))
        for number in range(2):
            ended = replace(run, id=f"run_{number:032x}", status=RunStatus.SUCCEEDED, finished_at=time.time())
            await store.webhooks.tell_run(ended.id, Outbox(60).of_run(ended, webhook))
        taken = await store.deliveries.claim("me", time.time(), time.time() + 60, [])
        assert taken is not None
        log = (Attempt(at=1.0, ms=2.5, error="nobody answers"),)
        await store.deliveries.end_attempt(
            replace(taken, state=DeliveryState.FAILED, next_at=None, finished_at=2.0, log=log)
        )
        self.delivery_ids = [one.id for one in (await store.deliveries.page(DeliveryFilter(), None, 9)).deliveries]

    async def _end(self, services: GatewayServices, delivery: Delivery) -> bool:
        """False if the database is too busy just now, as it may be on a busy machine."""
        reason = ENDS[len(self.run_ids) % len(ENDS)]
        error = None if reason is ExitReason.SUCCEEDED else RunError(message="as it goes", type="Played")
        lines = (LogLine(at_ms=1, stream="stdout", text="a line"),)
        outcome = outcome_of(delivery, reason, error=error, logs=lines)
        try:
            await services.store.runs.finish([Ending(run=run_of(delivery), outcome=outcome)])
        except StoreUnavailable:
            return False
        if delivery.reply_to:
            await services.queue.send(messages.replies(delivery.reply_to), messages.encode(outcome))
        self.run_ids.append(delivery.run_id)
        return True


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    opened = Yard(folder=tmp_path_factory.mktemp("openapi"))
    thread = threading.Thread(target=lambda: asyncio.run(opened.serve()))
    thread.start()
    try:
        assert opened.up.wait(PATIENCE)
        yield opened
    finally:
        opened.done.set()
        thread.join(PATIENCE)


@pytest.fixture(scope="module")
def contract(yard: Yard) -> schemathesis.BaseSchema:
    with httpx.Client(timeout=PATIENCE, trust_env=False) as client:
        for _ in ENDS:
            answer = client.post(f"{yard.url}/api/scrape", json={"url": "https://a.example"})
            assert answer.status_code in (200, 202, 502, 504), answer.text
    until(lambda: len(yard.run_ids) >= len(ENDS), "the worker has ended them all")
    return openapi.from_url(f"{yard.url}/api/openapi.json")


OPERATIONS = [
    "GET /",
    "GET /api/secrets",
    "PUT /api/secrets/{site}/{task}/{name}",
    "DELETE /api/secrets/{site}/{task}/{name}",
    "GET /api/audit",
    "GET /api/identity",
    "GET /api/keys",
    "POST /api/keys",
    "GET /api/keys/{key_id}",
    "DELETE /api/keys/{key_id}",
    "POST /api/keys/{key_id}/rotate",
    "POST /api/links",
    "GET /api/usage",
    "GET /api/cache",
    "POST /api/cache/invalidate",
    "POST /api/cache/warm",
    "GET /api/dead-letters",
    "GET /api/exports/{export_id}",
    "GET /api/exports/{export_id}/download",
    "GET /api/graphql",
    "POST /api/graphql",
    "GET /api/graphql/schema",
    "GET /api/health",
    "POST /api/crawl",
    "POST /api/map",
    "POST /api/extract",
    "GET /api/patterns",
    "GET /api/patterns/{pattern_id}",
    "PUT /api/patterns/{pattern_id}",
    "DELETE /api/patterns/{pattern_id}",
    "GET /api/jobs",
    "POST /api/forget",
    "POST /api/jobs",
    "DELETE /api/jobs/{job_id}",
    "GET /api/jobs/{job_id}",
    "PATCH /api/jobs/{job_id}",
    "POST /api/jobs/{job_id}/archive",
    "POST /api/jobs/{job_id}/cancel",
    "GET /api/jobs/{job_id}/errors",
    "GET /api/jobs/{job_id}/exports",
    "POST /api/jobs/{job_id}/exports",
    "GET /api/jobs/{job_id}/items",
    "POST /api/jobs/{job_id}/items",
    "GET /api/jobs/{job_id}/items/{key}",
    "GET /api/jobs/{job_id}/items/{key}/download",
    "POST /api/jobs/{job_id}/pause",
    "POST /api/jobs/{job_id}/redrive",
    "GET /api/jobs/{job_id}/metrics",
    "GET /api/jobs/{job_id}/results",
    "POST /api/jobs/{job_id}/restore",
    "POST /api/jobs/{job_id}/resume",
    "POST /api/jobs/{job_id}/sinks/{sink}",
    "GET /api/jobs/{job_id}/stream",
    "GET /api/live",
    "GET /api/proxies",
    "DELETE /api/proxies/{name}",
    "GET /api/projects/{project}",
    "PUT /api/projects/{project}/versions/{version}",
    "DELETE /api/projects/{project}/versions/{version}",
    "DELETE /api/projects/{project}",
    "PUT /api/proxies/{name}",
    "GET /api/ready",
    "GET /api/schedule",
    "POST /api/schedule",
    "DELETE /api/schedule/{schedule_id}",
    "GET /api/schedule/{schedule_id}",
    "PATCH /api/schedule/{schedule_id}",
    "GET /api/schedule/{schedule_id}/history",
    "POST /api/schedule/{schedule_id}/pause",
    "POST /api/schedule/{schedule_id}/resume",
    "POST /api/schedule/{schedule_id}/run",
    "GET /api/scrape",
    "POST /api/scrape",
    "DELETE /api/scrape/{run_id}",
    "GET /api/scrape/{run_id}",
    "GET /api/scrape/{run_id}/artifacts",
    "GET /api/scrape/{run_id}/artifacts/{name}",
    "GET /api/scrape/{run_id}/events",
    "GET /api/scrape/{run_id}/explain",
    "GET /api/scrape/{run_id}/logs",
    "GET /api/scrapers",
    "POST /api/scrapers/refresh",
    "GET /api/scrapers/{site}/{task}",
    "GET /api/scrapers/{site}/{task}/channels",
    "DELETE /api/scrapers/{site}/{task}/channels/{channel}",
    "PUT /api/scrapers/{site}/{task}/channels/{channel}",
    "GET /api/scrapers/{site}/{task}/drift",
    "DELETE /api/scrapers/{site}/{task}/drift",
    "GET /api/scrapers/{site}/{task}/source",
    "GET /api/scrapers/{site}/{task}/state",
    "DELETE /api/scrapers/{site}/{task}/state",
    "GET /api/scrapers/{site}/{task}/state/{key}",
    "DELETE /api/scrapers/{site}/{task}/state/{key}",
    "GET /api/sinks",
    "GET /api/sites",
    "DELETE /api/sites/{site}",
    "GET /api/sites/{site}",
    "PUT /api/sites/{site}",
    "POST /api/sites/{site}/reset",
    "GET /api/session",
    "POST /api/session",
    "DELETE /api/session",
    "GET /api/session/oidc/start",
    "GET /api/stats",
    "GET /api/stats/scale",
    "GET /api/webhooks/deliveries",
    "GET /api/webhooks/deliveries/{delivery_id}",
    "POST /api/webhooks/deliveries/{delivery_id}/replay",
    "GET /api/workers",
    "GET /api/alerts",
    "GET /api/settings",
    "GET /api/stats/history",
    "POST /api/alerts/test",
    "POST /api/workers/{worker_id}/drain",
    "DELETE /api/workers/{worker_id}/drain",
    "GET /metrics",
]


# the gateway draws its jitter in a thread beside, which hypothesis takes for a strategy that does
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_answer_is_as_the_document_says(
    name: str, mode: GenerationMode, contract: schemathesis.BaseSchema, yard: Yard
) -> None:
    method, path = name.split(" ")
    operation = contract[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=_enough(operation), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def answers(case: schemathesis.Case) -> None:
        assume(not _reads_as_a_list(case))
        _aim(case, yard)
        response = case.call_and_validate(checks=CHECKS, timeout=PATIENCE)
        assert response.status_code != 500
        if response.status_code in (502, 504):
            assert name in ("POST /api/scrape", "POST /api/map", "POST /api/extract")
            assert response.json()["exit_reason"] or response.json()["code"] == "wait_timeout"

    try:
        answers()
    except Unsatisfiable:  # an operation that takes nothing has nothing to get wrong
        assert mode is GenerationMode.NEGATIVE


@pytest.fixture(scope="module")
def others(yard: Yard, contract: schemathesis.BaseSchema) -> frozenset[str]:
    """Ids of what no client owns."""
    return frozenset((*yard.run_ids, *yard.job_ids, *yard.export_ids, *yard.schedule_ids, *yard.delivery_ids))


@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_role_is_answered_as_the_document_says_and_told_nothing_more(
    name: str, contract: schemathesis.BaseSchema, yard: Yard, others: frozenset[str]
) -> None:
    method, path = name.split(" ")
    operation, permission = contract[path][method], asked_for()[name]

    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @settings(max_examples=1, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def answers(case: schemathesis.Case) -> None:
        _aim(case, yard)
        for role, secret in yard.keys.items():
            own = {"Authorization": f"Bearer {secret}"}
            response = case.call(base_url=yard.closed_url, headers=own, timeout=PATIENCE)
            case.validate_response(response, checks=[each for each in CHECKS if each is not negative_data_rejection])
            assert response.status_code != 500
            told = response.text
            assert ("needs the permission" in told) == (permission not in GRANTS[role]), (role, told)
            for never in (*yard.keys.values(), "never to be shown", str(yard.folder), "Traceback"):
                assert never not in told
            if role is Role.CLIENT:
                assert [one for one in others if one in told and one not in str(response.request.url)] == []

    answers()


def _enough(operation: schemathesis.schemas.APIOperation) -> int:
    """Examples for an operation: a few, the more it takes. They are the same in every run."""
    if operation.body:
        return 6
    return min(6, 2 + sum(1 for _ in operation.iter_parameters()))


def _reads_as_a_list(case: schemathesis.Case) -> bool:
    """One value in place of a list of texts is wrong in the document, and once it is written a list of one."""
    if not case.path.endswith(("/items", "/dead-letters")):
        return False
    return any(isinstance((case.query or {}).get(name), str | int | float) for name in TEXT_LISTS)


def _aim(case: schemathesis.Case, yard: Yard) -> None:
    """Let an id that is well formed name a run or job there is, and most scrapers one there is."""
    given = case.path_parameters or {}
    _aim_at_jobs(case, given, yard)
    for name, pattern, ids in (
        ("schedule_id", SCHEDULE_ID, yard.schedule_ids),
        ("delivery_id", DELIVERY_ID, yard.delivery_ids),
    ):
        if re.fullmatch(pattern, str(given.get(name, ""))) and case.method != "DELETE":
            case.path_parameters[name] = ids[int(str(given[name])[-4:], 16) % len(ids)]
    asked = str(given.get("run_id", ""))
    if re.fullmatch(RUN_ID, asked):
        case.path_parameters["run_id"] = yard.run_ids[int(asked[-4:], 16) % len(yard.run_ids)]
    names = (str(given.get("site", "")), str(given.get("task", "")))
    if all(re.fullmatch(NAME, name) for name in names) and len("".join(names)) % 3:
        case.path_parameters |= {"site": "shop", "task": "product"}
        if isinstance(case.body, dict) and re.fullmatch(VERSION, str(case.body.get("version", "")), re.ASCII):
            case.body = {**case.body, "version": "1.4.2"}


def _aim_at_jobs(case: schemathesis.Case, given: dict[str, object], yard: Yard) -> None:
    """A stream is followed to its end, so only of the job that completed, which nothing runs again; and all stay."""
    asked, export = str(given.get("job_id", "")), str(given.get("export_id", ""))
    if re.fullmatch(JOB_ID, asked) and case.method != "DELETE":
        found = yard.job_ids
        if case.path.endswith(("/stream", "/redrive")):
            found = found[:1] if case.path.endswith("/stream") else found[1:]
        case.path_parameters["job_id"] = found[sum(asked.encode()) % len(found)]
    if re.fullmatch(EXPORT_ID, export):
        case.path_parameters["export_id"] = yard.export_ids[int(export[7:11], 16) % len(yard.export_ids)]
    if re.fullmatch(ITEM_KEY, str(given.get("key", "")), re.ASCII):
        case.path_parameters["key"] = f"k{len(str(given['key'])) % 4}"


def test_every_operation_is_described(yard: Yard) -> None:
    document = httpx.get(f"{yard.url}/api/openapi.json", timeout=PATIENCE).json()
    named = {
        f"{method.upper()} {path}": one
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    }
    assert sorted(named) == sorted(OPERATIONS)
    operations = named.values()
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        assert all(answer["description"] for answer in operation["responses"].values())
        bad = [answer for status, answer in operation["responses"].items() if status >= "400"]
        assert all("application/problem+json" in answer["content"] or "HealthDocument" in str(answer) for answer in bad)
    assert document["components"]["schemas"]["ScrapeCall"]["examples"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_way_a_run_may_end_has_answered(yard: Yard, contract: schemathesis.BaseSchema) -> None:
    seen = {
        run["exit_reason"]
        for run in httpx.get(
            f"{yard.url}/api/scrape", params={"limit": 200, "status": "failed"}, timeout=PATIENCE
        ).json()["runs"]
    }
    assert {ExitReason.TIMEOUT, ExitReason.SCRIPT_ERROR, ExitReason.LOST_WORKER} <= seen
