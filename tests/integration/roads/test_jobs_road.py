"""The road of a job, from the list that is uploaded to the files that are opened, through the real programs."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.job_calls import FORMATS, Jobs, Watcher, numbers
from tests.leaks import PATIENCE, Process, living, until
from tests.programs import Cluster, Embedded, Yard, running
from tests.services.threads import ThreadedServer

YARDS: dict[str, Callable[[], Yard]] = {
    "embedded": Embedded,
    "cluster": lambda: Cluster(gateways=1, workers=2, dispatchers=1),
}
EVERY_FORMAT = [{"type": "records", "format": format_} for format_ in FORMATS]
PATIENT = {"breaker": {"enabled": False}}
RUDE = {"robots": "ignore"}


@pytest.fixture(scope="module", params=YARDS)
def yard(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[Yard]:
    with YARDS[request.param]() as yard:
        yield yard
        assert not list(yard.errors())


@pytest.fixture
def jobs(yard: Yard) -> Iterator[Jobs]:
    with yard.client() as api:
        yield Jobs(api)
        workers = "/api/workers"
        until(lambda: not any(worker["busy"] for worker in api.get(workers).json()["workers"]), "quiet")


def test_a_list_of_thousands_becomes_files_that_hold_every_item_once(yard: Yard, jobs: Jobs) -> None:
    rows = [{"item_id": f"k{n}", "n": n, "url": f"http://shop{n % 7}.example/p/{n}"} for n in range(1100)]
    job_id = jobs.upload(rows, "builtin/echo", exports=EVERY_FORMAT)
    with Watcher(lambda: yard.urls, [job_id]).watching() as watcher:
        job = jobs.ended(job_id)
        files = jobs.exported(job_id)
    assert not watcher.faults
    assert watcher.samples > 10
    assert (job["status"], job["counts"]["success"], job["counts"]["total"]) == ("completed", 1100, 1100)
    assert [item["id"] for item in jobs.items(job_id)] == [row["item_id"] for row in rows]
    assert [entry["item_id"] for entry in jobs.manifested(job_id)] == [row["item_id"] for row in rows]
    assert set(files) == set(FORMATS)
    for name, found in files.items():
        assert numbers(found) == list(range(1100)), name


@pytest.mark.parametrize("isolation", ["run", "job"])
def test_items_of_a_script_run_in_children(jobs: Jobs, isolation: str) -> None:
    rows = [{"n": n} for n in range(120)]
    job_id = jobs.upload(rows, "lab/count", policy={"isolation": isolation})
    job = jobs.ended(job_id)
    assert job["counts"]["success"] == 120
    results = [item["result"] for item in jobs.items(job_id)]
    assert [(result["n"], result["square"]) for result in results] == [(n, n * n) for n in range(120)]
    assert (max(result["seen"] for result in results) > 1) == (isolation == "job")


def test_a_paused_job_hands_nothing_out_and_goes_on_when_told(jobs: Jobs) -> None:
    with serve_pages(free=60) as web:
        job_id = jobs.create([{"url": f"{web.url}/{n}"} for n in range(500)], "builtin/page", policy=RUDE)
        jobs.until(job_id, lambda job: job["counts"]["success"] > 50, "it runs")
        jobs.ask(job_id, "pause")
        asked = time.time()
        web.gate.set()
        still = jobs.until(job_id, _is_at_rest, "what runs has ended, and what waited was given back")
        until(lambda: time.time() > asked + 2, "time passes")
        later = jobs.get(job_id)
        jobs.ask(job_id, "resume")
        ended = jobs.ended(job_id)
    assert later["status"] == "paused"
    assert later["counts"]["queued"] == 0
    assert (later["counts"]["success"], later["counts"]["in_progress"]) == (still["counts"]["success"], 0)
    assert 0 < later["counts"]["pending"] < 500
    assert ended["counts"]["success"] == 500
    urls = [item["result"]["url"] for item in jobs.items(job_id)]
    assert sorted(int(url.rpartition("/")[2]) for url in urls) == list(range(500))
    assert len(web.arrivals) == 500


@pytest.mark.parametrize("isolation", ["run", "job"])
def test_a_killed_job_leaves_no_child(yard: Yard, jobs: Jobs, isolation: str) -> None:
    with serve_pages() as web:
        items = [{"url": f"{web.url}/{n}", "seconds": 250} for n in range(300)]
        job_id = jobs.create(items, "lab/stay", policy={"isolation": isolation, **RUDE})
        at_work = until(lambda: _all_open_slots(jobs), "every slot that is open to jobs is taken")
        until(lambda: len(web.arrivals) >= at_work, "each has a child that runs: others are only kept ready")
        children = _children(yard)
        jobs.ask(job_id, "cancel", mode="kill")
        until(lambda: len(children) - len(living(children)) >= at_work, "the children end")
    job = jobs.ended(job_id)
    assert (job["status"], job["counts"]["cancelled"]) == ("cancelled", 300)


def test_a_cancelled_job_is_told_at_once_and_leaves_its_files(jobs: Jobs) -> None:
    rows = [{"item_id": f"k{n}", "n": n} for n in range(400)]
    exports = [{"type": "records", "format": "csv"}]
    job_id = jobs.create(rows, "builtin/echo", policy={"rate": 10}, exports=exports)
    jobs.until(job_id, lambda job: job["counts"]["success"] > 0, "it runs")
    jobs.ask(job_id, "cancel")
    counts = jobs.ended(job_id)["counts"]
    job = jobs.until(job_id, lambda job: not job["files_pending"], "its files are written")
    assert (job["status"], job["counts"]) == ("cancelled", counts)
    assert 0 < counts["success"] == 400 - counts["cancelled"] < 400
    entries = {entry["item_id"]: entry["status"] for entry in jobs.manifested(job_id)}
    assert entries == {item["id"]: item["status"] for item in jobs.items(job_id)}
    done = [row["n"] for row in rows if entries[str(row["item_id"])] == "success"]
    assert numbers(jobs.exported(job_id)["csv"]) == done


def test_two_jobs_of_different_size_share_evenly(jobs: Jobs) -> None:
    def items(count: int) -> list[dict[str, Any]]:
        return [{"n": n, "seconds": 0.02} for n in range(count)]

    def done() -> tuple[int, int]:
        """Of both at one moment: a busy machine lets time pass between two answers."""
        listed = {job["id"]: job["counts"]["success"] for job in jobs.api.get("/api/jobs").json()["jobs"]}
        return listed[large], listed[small]

    policy = {"isolation": "job"}
    large = jobs.create(items(3000), "lab/count", policy=policy, paused=True)
    small = jobs.create(items(400), "lab/count", policy=policy, paused=True)
    for job_id in (large, small):
        jobs.until(job_id, lambda job: not job["reading"], "it is read")
    for job_id in (large, small):
        jobs.ask(job_id, "resume")
    before = until(lambda: pair if min(pair := done()) > 0 else None, "both run")
    after = until(lambda: pair if (pair := done())[1] > 300 else None, "the small one is nearly done")
    jobs.ask(large, "cancel", mode="kill")
    jobs.ended(small)
    jobs.ended(large)
    large_done, small_done = after[0] - before[0], after[1] - before[1]
    assert 0.6 < large_done / small_done < 1.6


def test_the_rate_of_a_job_is_what_the_server_sees(jobs: Jobs) -> None:
    """A busy machine loses time, and at most half a second of it is caught up on: so no page comes sooner than its
    number allows, and one good stretch tells."""
    rate, pages = 20, 160
    with serve_pages() as web:
        rows = [{"url": f"{web.url}/{n}"} for n in range(pages)]
        began = time.monotonic()
        job_id = jobs.upload(rows, "builtin/page", policy={"rate": rate, **RUDE})
        job = jobs.ended(job_id)
    assert job["counts"]["success"] == pages
    seen = sorted(web.arrivals)
    assert len(seen) == pages
    early = rate  # half a second's worth, and as much again that is handed out together
    assert all(arrived - began >= (number - early) / rate for number, arrived in enumerate(seen))
    assert min(abs(each - rate) for each in _rates(seen, 40)) < rate / 10


def test_an_interactive_call_does_not_wait_behind_a_large_job(jobs: Jobs) -> None:
    """Told by how many items the job has done meanwhile: on a busy machine both take longer."""
    call = {"scraper": "lab/count", "input": {"n": 1}, "wait": PATIENCE}

    def ask() -> int:
        before = jobs.get(job_id)["counts"]["success"]
        assert jobs.api.post("/api/scrape", json=call).status_code == 200
        return int(jobs.get(job_id)["counts"]["success"]) - before

    rows = ({"n": n, "seconds": 0.004} for n in range(10_000))
    job_id = jobs.upload(rows, "lab/count", policy={"isolation": "job"})
    jobs.until(job_id, lambda job: job["counts"]["success"] > 500, "it runs")
    meanwhile = statistics.median(ask() for _ in range(5))
    job = jobs.get(job_id)
    jobs.ask(job_id, "cancel")
    jobs.ended(job_id)
    assert job["counts"]["success"] < 10_000
    assert meanwhile < 1000


def _is_at_rest(job: dict[str, Any]) -> bool:
    return not job["counts"]["in_progress"] and not job["counts"]["queued"]


def _all_open_slots(jobs: Jobs) -> int:
    """How many are taken, once those are all but the ones kept for interactive calls; 0 before."""
    workers = jobs.api.get("/api/workers").json()["workers"]
    busy, slots = (sum(worker[field] for worker in workers) for field in ("busy", "slots"))
    return int(busy) if busy == slots - len(workers) else 0


def _children(yard: Yard) -> list[Process]:
    return [child for worker in running(yard.workers) for child in worker.children()]


def _rates(arrivals: list[float], count: int) -> Iterator[float]:
    """A second, over every stretch of so many."""
    return (count / (last - first) for first, last in zip(arrivals, arrivals[count:], strict=False))


@dataclass(kw_only=True)
class Pages:
    """A web server of one page."""

    url: str = ""
    arrivals: list[float] = field(default_factory=list)
    """When it was asked."""
    paths: list[str] = field(default_factory=list)
    """What it was asked for."""
    gate: threading.Event = field(default_factory=threading.Event)
    """Opened by the test."""


@contextmanager
def serve_pages(free: int = 0) -> Iterator[Pages]:
    """Answers at once, or where `free` is set so many, and the others when the gate is open."""
    web = Pages()
    if not free:
        web.gate.set()

    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            web.arrivals.append(time.monotonic())
            web.paths.append(self.path)
            if len(web.arrivals) > free:
                web.gate.wait(PATIENCE)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadedServer(Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            web.url = f"http://127.0.0.1:{server.server_port}"
            yield web
        finally:
            web.gate.set()
            server.shutdown()
            thread.join()
