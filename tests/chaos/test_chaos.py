"""Guarantee 1 and 3: whatever is killed or restarted, every accepted run ends, once, and every caller is answered."""

import os
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.chaos.disturb import DISTURBANCES
from tests.chaos.load import FINAL
from tests.chaos.scenario import play
from tests.leaks import until
from tests.programs import Cluster, Embedded

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]
SHORT = ("worker", "zygote", "gateway", "dispatcher", "redis", "postgres")
"""These run always; the others with CHAOS_LONG=1."""


@pytest.fixture(scope="module")
def cluster(nothing_left: None) -> Iterator[Cluster]:
    with Cluster(gateways=2, workers=2, dispatchers=2) as cluster:
        yield cluster


@pytest.mark.parametrize("name", DISTURBANCES)
async def test_every_accepted_run_ends_once(cluster: Cluster, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name not in SHORT and not os.environ.get("CHAOS_LONG"):
        pytest.skip("runs with CHAOS_LONG=1")
    account = await play(cluster, [name])
    with capsys.disabled():
        sys.stdout.write(f"\n  {account.summary(name)}\n")
    assert not account.faults
    assert len(account.accepted) > 5
    assert set(account.ends) == ({"succeeded", "crashed"} if name == "child" else {"succeeded"})


def test_an_embedded_yard_that_was_killed_goes_on_where_it_was() -> None:
    with Embedded() as yard:
        with yard.client() as api:
            call = {"scraper": "lab/nap", "input": {"seconds": 1.5}, "wait": 0}
            handles = [api.post("/api/scrape", json=call).json()["id"] for _ in range(10)]
            until(lambda: _statuses(api, handles) > {"running"}, 20, "some run and some wait")
        yard.workers[0].kill()
        yard.ready(yard.add())
        with yard.client() as api:
            until(lambda: _statuses(api, handles) <= FINAL, 60, "every run ends")
            runs = [api.get(f"/api/scrape/{run_id}").json() for run_id in handles]
            assert {run["status"] for run in runs} == {"succeeded"}
            assert max(run["attempt"] for run in runs) == 2
            assert len(api.get("/api/scrape", params={"limit": 200}).json()["runs"]) == len(handles)


def _statuses(api: httpx.Client, run_ids: list[str]) -> set[str]:
    return {api.get(f"/api/scrape/{run_id}").json()["status"] for run_id in run_ids}
