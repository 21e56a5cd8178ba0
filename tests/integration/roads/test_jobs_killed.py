"""Jobs go on after kill -9 of every program and server, and lose only what had begun."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scrapeyard.model.job import ABREAST
from tests.integration.roads.test_jobs_road import PATIENT, RUDE, Pages, serve_pages
from tests.job_calls import Jobs, numbers
from tests.programs import Cluster, Embedded, Yard, running

LARGE = {"SCRAPEYARD_JOBS__BATCH_SECONDS": "60"}
"""The batches are then larger than what a worker begins at once, also where a busy machine makes every item slow."""
YARDS: dict[str, Callable[[], Yard]] = {
    # What a lone process leased goes on at once, however long the leases are.
    "embedded": lambda: Embedded({**LARGE, "SCRAPEYARD_WORKER__LEASE_SECONDS": "600"}),
    "cluster": lambda: Cluster(gateways=1, workers=2, dispatchers=1, environment=LARGE),
}


@pytest.fixture(scope="module", params=YARDS)
def mortal_yard(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[Yard]:
    """For tests that kill everything in it and start it again."""
    with YARDS[request.param]() as yard:
        yield yard


def test_a_job_goes_on_after_everything_was_killed(mortal_yard: Yard) -> None:
    rows = [{"n": n, "seconds": 0.01} for n in range(240)]
    exports = [{"type": "records", "format": "csv"}, {"type": "records", "format": "parquet"}]
    with mortal_yard.client() as api:
        jobs = Jobs(api)
        policy = {"isolation": "job", **PATIENT}
        job_id = jobs.upload(rows, "lab/count", policy=policy, exports=exports)
        jobs.until(job_id, lambda job: job["counts"]["success"] > 60, "it runs")
    _kill_and_start(mortal_yard)
    with mortal_yard.client() as api:
        jobs = Jobs(api)
        job = jobs.ended(job_id)
        assert (job["counts"]["success"], job["counts"]["total"]) == (240, 240)
        items = jobs.items(job_id)
        assert [(item["result"]["n"], item["result"]["square"]) for item in items] == [(n, n * n) for n in range(240)]
        for format_, found in jobs.exported(job_id).items():
            assert numbers(found) == list(range(240)), format_


def test_a_kill_costs_only_the_items_that_had_begun(mortal_yard: Yard) -> None:
    """Pages that the site was never asked for do not end as lost, though no attempt may be made twice.

    The first 300 come at once, so the batches after them are larger than what a worker begins at once.
    """
    policy = {"retries": 0, **PATIENT, **RUDE}
    yard = mortal_yard
    with serve_pages(free=300) as web:
        with yard.client() as api:
            jobs = Jobs(api)
            job_id = jobs.create([{"url": f"{web.url}/{n}"} for n in range(800)], "builtin/page", policy=policy)
            enough = 2 * ABREAST
            jobs.until(job_id, lambda job: _not_begun(job, web) > enough, "workers hold items that they have not begun")
        for program in running(yard.workers):
            program.kill()
        begun = set(web.paths)
        web.gate.set()
        _kill_and_start(yard)
        with yard.client() as api:
            jobs = Jobs(api)
            job = jobs.ended(job_id)
            lost = {item["input"]["url"] for item in jobs.items(job_id, exit_reason="lost_worker")}
            others = Counter(item["exit_reason"] for item in jobs.items(job_id, status="error")) - Counter(
                {"lost_worker": len(lost)}
            )
    on_the_way = lost - {f"{web.url}{path}" for path in begun}
    assert len(on_the_way) <= ABREAST, "begun, and killed before the site saw them"
    assert (job["counts"]["success"], job["counts"]["error"]) == (800 - len(lost), len(lost)), others


def _not_begun(job: dict[str, Any], web: Pages) -> int:
    """How many items are in the hands of a worker, and the site was not asked for them."""
    return int(job["counts"]["in_progress"]) - (len(web.paths) - int(job["counts"]["success"]))


def _kill_and_start(yard: Yard) -> None:
    """kill -9 of every program, the servers of a cluster among them; then all of it again."""
    for program in yard.programs:
        program.kill()
    if isinstance(yard, Cluster):
        yard.broker.stop()
        yard.postgres.stop()
        yard.broker.start()
        yard.postgres.start()
        yard.add_gateway()
        for _ in range(2):
            yard.add_worker()
        yard.add_dispatcher()
        yard.wait_until_up()
    elif isinstance(yard, Embedded):
        yard.ready(yard.add())
