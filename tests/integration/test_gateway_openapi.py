"""The OpenAPI document is the contract: whatever is sent, never a 500, and every answer is as the document says."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, openapi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from scrapeyard.gateway.schemas import NAME, RUN_ID, VERSION
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.model import Delivery, ExitReason, LogLine, Priority, RunError
from scrapeyard.queues import channels
from scrapeyard.settings import GatewaySettings, Settings
from scrapeyard.store.port import Ending
from tests.integration.gateway_stand import open_services, outcome_of, run_of, worker

ENDS = list(ExitReason)
CHECKS = [
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@dataclass(kw_only=True)
class Yard:
    """A gateway with a played worker, in a thread of its own."""

    folder: Path
    url: str = ""
    run_ids: list[str] = field(default_factory=list)
    up: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    async def serve(self) -> None:
        limits = Settings(gateway=GatewaySettings(port=0, wait_seconds=1, max_wait_seconds=1))
        async with open_services(self.folder, limits) as services:
            await services.store.beat(worker(seen_at=9e9))
            server = GatewayServer(services)
            await server.start()
            work = asyncio.create_task(self._work(services))
            self.url = server.url
            self.up.set()
            await asyncio.to_thread(self.done.wait)
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            await server.stop()

    async def _work(self, services: GatewayServices) -> None:
        """Ends every run at once, each in the next of all the ways there are."""
        while True:
            for delivery in await services.queue.take(["default", "bulk"], 50, list(Priority), 60):
                await self._end(services, delivery)

    async def _end(self, services: GatewayServices, delivery: Delivery) -> None:
        reason = ENDS[len(self.run_ids) % len(ENDS)]
        error = None if reason is ExitReason.SUCCEEDED else RunError(message="as it goes", type="Played")
        lines = (LogLine(at_ms=1, stream="stdout", text="a line"),)
        outcome = outcome_of(delivery, reason, error=error, logs=lines)
        await services.store.finish([Ending(run=run_of(delivery), outcome=outcome)])
        if delivery.reply_to:
            await services.queue.send(channels.replies(delivery.reply_to), channels.encode(outcome))
        self.run_ids.append(delivery.run_id)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    opened = Yard(folder=tmp_path_factory.mktemp("openapi"))
    thread = threading.Thread(target=lambda: asyncio.run(opened.serve()))
    thread.start()
    try:
        assert opened.up.wait(20)
        yield opened
    finally:
        opened.done.set()
        thread.join(20)


@pytest.fixture(scope="module")
def contract(yard: Yard) -> schemathesis.BaseSchema:
    for _ in ENDS:
        httpx.post(f"{yard.url}/api/scrape", json={"url": "https://a.example"}, timeout=20)
    return openapi.from_url(f"{yard.url}/api/openapi.json")


OPERATIONS = [
    "GET /api/cache",
    "POST /api/cache/invalidate",
    "POST /api/cache/warm",
    "GET /api/health",
    "GET /api/live",
    "GET /api/proxies",
    "DELETE /api/proxies/{name}",
    "PUT /api/proxies/{name}",
    "GET /api/ready",
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
    "GET /api/sites",
    "DELETE /api/sites/{site}",
    "GET /api/sites/{site}",
    "PUT /api/sites/{site}",
    "POST /api/sites/{site}/reset",
    "GET /api/workers",
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
    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def answers(case: schemathesis.Case) -> None:
        _aim(case, yard)
        response = case.call_and_validate(checks=CHECKS)
        assert response.status_code != 500
        if response.status_code in (502, 504):
            assert name == "POST /api/scrape"
            assert response.json()["exit_reason"] or response.json()["code"] == "wait_timeout"

    try:
        answers()
    except Unsatisfiable:  # an operation that takes nothing has nothing to get wrong
        assert mode is GenerationMode.NEGATIVE


def _aim(case: schemathesis.Case, yard: Yard) -> None:
    """Let an id that is well formed name a run there is, and most scrapers one there is."""
    given = case.path_parameters or {}
    asked = str(given.get("run_id", ""))
    if re.fullmatch(RUN_ID, asked):
        case.path_parameters["run_id"] = yard.run_ids[int(asked[-4:], 16) % len(yard.run_ids)]
    names = (str(given.get("site", "")), str(given.get("task", "")))
    if all(re.fullmatch(NAME, name) for name in names) and len("".join(names)) % 3:
        case.path_parameters |= {"site": "shop", "task": "product"}
        if isinstance(case.body, dict) and re.fullmatch(VERSION, str(case.body.get("version", "")), re.ASCII):
            case.body = {**case.body, "version": "1.4.2"}


def test_every_operation_is_described(yard: Yard) -> None:
    document = httpx.get(f"{yard.url}/api/openapi.json").json()
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
        for run in httpx.get(f"{yard.url}/api/scrape", params={"limit": 200, "status": "failed"}).json()["runs"]
    }
    assert {ExitReason.TIMEOUT, ExitReason.SCRIPT_ERROR, ExitReason.LOST_WORKER} <= seen
