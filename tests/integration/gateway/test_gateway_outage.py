"""The gateway while its queue is away, full or restarted: a clear refusal, nothing accepted in secret, nothing lost."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from redis.asyncio import Redis

from scrapeyard.dispatch.leader import Dispatcher
from scrapeyard.dispatch.upkeep.lost_deliveries import GRACE_SECONDS
from scrapeyard.errors import QueueUncertain, StoreUnavailable, StoreUncertain
from scrapeyard.model import Delivery, Priority, RunStatus
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.runs import Ending
from tests.integration.gateway_stand import Stand, open_stand, outcome_of, run_of
from tests.leaks import PATIENCE
from tests.services.valkey import ValkeyServer

BODY = {"url": "https://shop.example/p/1"}


class ChangingQueue(RedisQueue):
    """Gives up soon while its server is stopped, and never where only the machine is slow."""

    def __init__(self, server: ValkeyServer) -> None:
        self._server = server
        super().__init__(server.url, patience_seconds=PATIENCE)

    @property
    def _patience(self) -> float:
        return self._given if self._server._process else 0.2

    @_patience.setter
    def _patience(self, seconds: float) -> None:
        self._given = seconds


@pytest.fixture
async def stand(tmp_path: Path, own_valkey: ValkeyServer) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path, queue=ChangingQueue(own_valkey)) as opened:
        yield opened


async def test_who_waits_while_the_queue_is_away_gets_a_503_and_nothing_stays_to_run(
    stand: Stand, own_valkey: ValkeyServer
) -> None:
    own_valkey.stop()
    response = await stand.client.post("/api/scrape", json={**BODY, "wait": PATIENCE})
    assert response.status_code == 503
    assert response.json()["code"] in ("queue_unavailable", "maybe_accepted")  # it may stop before or after the publish
    assert response.json()["retryable"] is True
    assert int(response.headers["retry-after"]) >= 1
    await stand.recorder.flush()
    assert (await stand.store.runs.counts())[RunStatus.QUEUED] == 0
    ready = await stand.client.get("/api/ready")
    assert (ready.status_code, ready.json()["code"]) == (503, "not_ready")
    health = await stand.client.get("/api/health")
    assert (health.status_code, health.json()["status"]) == (503, "down")
    assert health.json()["dependencies"]["queue"]["state"] == "away"
    assert (await stand.client.get("/api/live")).status_code == 200


class SilentQueue(MemoryQueue):
    """Takes what is published, and goes away before it says so."""

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        await super().publish(deliveries)
        raise QueueUncertain("the queue does not answer: gone")


async def test_a_run_that_the_queue_took_in_secret_counts_as_cancelled(tmp_path: Path) -> None:
    """Its caller was told to come again, so a worker that has it must not make it a second success."""
    queue = SilentQueue()
    async with open_stand(tmp_path, queue=queue) as stand:
        response = await stand.client.post("/api/scrape", json={**BODY, "wait": PATIENCE})
        assert (response.status_code, response.json()["code"]) == (503, "maybe_accepted")
        (delivery,) = await queue.take(["default"], 1, list(Priority), PATIENCE)
        assert response.json()["id"] == delivery.run_id
        await stand.recorder.flush()
        ran = await stand.store.runs.get(delivery.run_id)
        assert ran is not None
        assert ran.status is RunStatus.CANCELLED
        late = Ending(run=run_of(delivery), outcome=outcome_of(delivery))
        assert await stand.store.runs.finish([late]) == [False]


@pytest.fixture
async def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    """A gateway whose database writes the next runs, and goes away before it says so."""
    async with open_stand(tmp_path) as stand:
        with monkeypatch.context() as patches:
            for part, name in ((stand.store.runs, "add"), (stand.store.keys, "remember")):
                patches.setattr(part, name, _unanswered(getattr(part, name), patches))
            yield stand


def _unanswered(write: Callable[..., Awaitable[object]], patches: pytest.MonkeyPatch) -> Callable[..., Awaitable[None]]:
    async def written(*given: object) -> None:
        await write(*given)
        patches.undo()
        raise StoreUncertain("the database does not answer: gone")

    return written


@pytest.mark.parametrize("call", [BODY, {"urls": [BODY["url"]] * 2}], ids=["one", "many"])
async def test_runs_that_the_database_took_in_secret_are_named_and_cancelled(
    silent: Stand, call: dict[str, object]
) -> None:
    refused = await silent.client.post("/api/scrape", json={**call, "wait": 0})
    told = refused.json()
    assert (refused.status_code, told["code"], told["retryable"]) == (503, "maybe_accepted", True)
    assert "retry-after" in refused.headers
    runs = told.get("runs", [told])
    assert len(runs) == len(call.get("urls", [""]))  # type: ignore[arg-type]  # a list, where there is one
    await silent.recorder.flush()
    for run in runs:
        assert (await silent.client.get(run["links"]["self"])).json()["status"] == "cancelled"


@pytest.mark.parametrize("wait", [0, PATIENCE])
async def test_a_keyed_call_that_the_database_took_in_secret_runs_once_when_it_is_repeated(
    silent: Stand, wait: float
) -> None:
    async def call() -> httpx.Response:
        headers = {"Idempotency-Key": "k"}
        return await silent.client.post("/api/scrape", json={**BODY, "wait": wait}, headers=headers)

    refused = await call()
    assert (refused.status_code, refused.json()["code"]) == (503, "maybe_accepted")
    assert "id" not in refused.json()
    (run,) = (await silent.client.get("/api/scrape")).json()["runs"]
    assert run["status"] == "queued"
    await silent.store.runs.cancel(run["id"], time.time())
    assert (await call()).json()["id"] == run["id"]


async def test_a_keyed_run_goes_on_when_other_rows_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was durable before it was published, so its handle owes nothing to the recorder."""
    async with open_stand(tmp_path) as stand:

        async def away() -> None:
            raise StoreUnavailable("the database does not answer")

        monkeypatch.setattr(stand.recorder, "flush", away)
        call = {**BODY, "wait": 0.01}
        accepted = await stand.client.post("/api/scrape", json=call, headers={"Idempotency-Key": "k"})
        assert accepted.status_code == 202
        plain = await stand.client.post("/api/scrape", json=call)
        assert (plain.status_code, plain.json()["code"]) == (503, "maybe_accepted")
        monkeypatch.undo()
        await stand.recorder.flush()
        kept = await stand.store.runs.get(accepted.json()["id"])
        assert kept is not None
        assert kept.status is RunStatus.QUEUED


@pytest.mark.parametrize("on_timeout", ["continue", "cancel"])
async def test_a_call_that_waited_names_its_run_though_the_database_is_away(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, on_timeout: str
) -> None:
    """Its row is written, so the run may end: a refusal without its id would let the caller make a second one."""

    async def away(*_: object) -> None:
        raise StoreUnavailable("the database does not answer")

    with monkeypatch.context() as patches:
        patches.setattr(stand.store.runs, "get", away)
        patches.setattr(stand.store.runs, "cancel", away)
        call = {**BODY, "wait": 0.01, "on_timeout": on_timeout}
        answer = await stand.client.post("/api/scrape", json=call)
    told = {"continue": (202, None), "cancel": (503, "maybe_accepted")}[on_timeout]
    assert (answer.status_code, answer.json().get("code")) == told
    await stand.recorder.flush()
    run = (await stand.client.get(answer.json()["links"]["self"])).json()
    assert run["status"] == {"continue": "queued", "cancel": "cancelled"}[on_timeout]


async def test_a_queue_that_answers_but_takes_nothing_is_not_ready(stand: Stand, own_valkey: ValkeyServer) -> None:
    assert (await stand.client.get("/api/ready")).status_code == 200
    async with Redis.from_url(own_valkey.url) as redis:
        await redis.config_set("maxmemory", 1)  # full, and nothing is evicted
        while (ready := await stand.client.get("/api/ready")).status_code == 200:
            await asyncio.sleep(0.05)  # what was found last counts for a second
        assert ready.json()["code"] == "not_ready"
        assert (await stand.client.get("/api/health")).json()["dependencies"]["queue"]["state"] == "away"
        await redis.config_set("maxmemory", 0)
        while (await stand.client.get("/api/ready")).status_code != 200:
            await asyncio.sleep(0.05)


async def test_a_database_that_takes_nothing_is_not_ready(stand: Stand, tmp_path: Path) -> None:
    assert (await stand.client.get("/api/ready")).status_code == 200
    with closing(sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        while (ready := await stand.client.get("/api/ready")).status_code == 200:
            await asyncio.sleep(0.05)
        assert ready.json()["code"] == "not_ready"
        other.execute("ROLLBACK")
    while (await stand.client.get("/api/ready")).status_code != 200:
        await asyncio.sleep(0.05)


async def test_a_key_refused_while_the_queue_was_away_works_when_it_is_back(
    stand: Stand, own_valkey: ValkeyServer
) -> None:
    own_valkey.stop()
    headers = {"Idempotency-Key": "k"}
    refused = await stand.client.post("/api/scrape", json={**BODY, "wait": PATIENCE}, headers=headers)
    assert refused.status_code == 503
    own_valkey.start()
    await _until_up(stand)
    accepted = await stand.client.post("/api/scrape", json={**BODY, "wait": 0}, headers=headers)
    assert accepted.status_code == 202
    assert (await stand.take()).run_id == accepted.json()["id"]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["plain", "keyed"])
async def test_who_does_not_wait_is_accepted_while_the_queue_is_away_and_runs_when_it_is_back(
    stand: Stand, own_valkey: ValkeyServer, headers: dict[str, str]
) -> None:
    own_valkey.stop()
    accepted = await stand.client.post("/api/scrape", json={**BODY, "wait": 0}, headers=headers)
    assert (accepted.status_code, accepted.json()["status"]) == (202, "queued")
    run_id = accepted.json()["id"]
    assert (await stand.client.get(f"/api/scrape/{run_id}")).json()["status"] == "queued"
    own_valkey.start()
    await _until_up(stand)
    late = time.time() + GRACE_SECONDS + 1
    dispatcher = Dispatcher(stand.settings, stand.store, stand.queue, stand.blobs, clock=lambda: late)
    assert await dispatcher.round()
    assert await dispatcher.round()
    delivery = await stand.take()
    assert (delivery.run_id, delivery.redelivered) == (run_id, True)
    assert await dispatcher.round()
    assert await stand.queue.depth() == {}


async def test_what_waits_for_the_queue_to_come_back_has_a_bound(tmp_path: Path, own_valkey: ValkeyServer) -> None:
    few = Settings.model_validate({"gateway": {"max_backlog": 3}})
    queue = ChangingQueue(own_valkey)
    async with open_stand(tmp_path, few, queue) as stand:
        own_valkey.stop()
        call = {"urls": [BODY["url"]] * 3, "wait": 0}
        assert (await stand.client.post("/api/scrape", json=call)).status_code == 202
        refused = await stand.client.post("/api/scrape", json={**BODY, "wait": 0})
        assert (refused.status_code, refused.json()["code"]) == (503, "queue_unavailable")
        assert (await stand.store.runs.counts())[RunStatus.QUEUED] == 3
        own_valkey.start()
        await _until_up(stand)
        async with asyncio.timeout(PATIENCE):  # the gateway may believe for a moment that nothing has changed
            while (await stand.client.post("/api/scrape", json={**BODY, "wait": 0})).status_code != 202:
                await asyncio.sleep(0.05)


async def test_a_keyed_run_that_could_not_be_published_stays_durable(stand: Stand, own_valkey: ValkeyServer) -> None:
    own_valkey.command("CONFIG", "SET", "maxmemory", "1")
    response = await stand.client.post("/api/scrape", json={**BODY, "wait": 0}, headers={"Idempotency-Key": "k"})
    assert response.status_code == 202
    own_valkey.command("CONFIG", "SET", "maxmemory", "0")
    assert await stand.queue.depth() == {}
    kept = await stand.store.runs.get(response.json()["id"])
    assert kept is not None
    assert kept.status is RunStatus.QUEUED


async def test_an_outcome_sent_over_redis_answers_the_caller(stand: Stand) -> None:
    call = asyncio.create_task(stand.client.post("/api/scrape", json=BODY))
    delivery = await stand.take()
    await stand.reply(delivery, outcome_of(delivery))
    response = await call
    assert (response.status_code, response.json()["result"]["title"]) == (200, "Tea")


async def test_a_waiting_call_survives_a_restart_of_the_queue(stand: Stand, own_valkey: ValkeyServer) -> None:
    call = asyncio.create_task(stand.client.post("/api/scrape", json={**BODY, "wait": PATIENCE}))
    delivery = await stand.take()
    own_valkey.stop()
    finished = delivery.__class__(**{n: getattr(delivery, n) for n in delivery.__struct_fields__} | {"reply_to": ""})
    await stand.finish(finished)
    own_valkey.start()
    assert (await call).status_code == 200


async def _until_up(stand: Stand) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await stand.client.get("/api/ready")).status_code != 200:
            await asyncio.sleep(0.05)
