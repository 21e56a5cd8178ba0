"""The whole road, from an HTTP call to the answer, through the real programs on every backend."""

import json
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.leaks import PATIENCE, living, until
from tests.programs import Cluster, Embedded, Program, Yard, running

STEADY = {"SCRAPEYARD_REPOSITORY__REFRESH_SECONDS": "600", "SCRAPEYARD_WORKER__IDLE_SCRAPER_SECONDS": "3600"}
"""A scraper that changed is then noticed only when someone asks, and no children go because nobody used them."""
LONG = 100.0
"""Seconds that nobody waits for: who takes such a nap is cancelled."""
YARDS: dict[str, Callable[[], Yard]] = {
    "embedded": lambda: Embedded(STEADY, is_fresh=True),
    "cluster": lambda: Cluster(gateways=2, workers=2, dispatchers=1, environment=STEADY, is_fresh=True),
}


@pytest.fixture(scope="module", params=YARDS)
def yard(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[Yard]:
    with YARDS[request.param]() as yard:
        yield yard
        assert not list(yard.errors())


@pytest.fixture
def api(yard: Yard) -> Iterator[httpx.Client]:
    with yard.client() as client:
        yield client
    _quiet(yard)


@pytest.fixture
def cluster(yard: Yard) -> Cluster:
    if not isinstance(yard, Cluster):
        pytest.skip("one process has one of each role")
    return yard


def test_an_async_scraper_answers_in_the_same_response(yard: Yard, api: httpx.Client) -> None:
    run = _done(api, scraper="shop/product", input={"url": f"{yard.shop.url}/product/1"})
    assert run["status"] == "succeeded"
    assert run["version"] == "1.0.0"
    assert run["result"]["sku"]
    assert run["usage"]["fetches"] == 1
    assert api.get(f"/api/scrape/{run['id']}").json()["result"] == run["result"]


def test_a_generator_gives_a_list_of_records(yard: Yard, api: httpx.Client) -> None:
    page = httpx.get(f"{yard.shop.url}/", timeout=PATIENCE, trust_env=False).text
    first = page.partition('href="/category/')[2].partition('"')[0]
    run = _done(api, scraper="shop/category", input={"url": f"{yard.shop.url}/category/{first}"})
    assert run["usage"]["records"] == len(run["result"]) > 1
    assert all(record["title"] and record["price"] for record in run["result"])


def test_a_plain_function_fetches_many_at_once(yard: Yard, api: httpx.Client) -> None:
    urls = [f"{yard.shop.url}/product/{number}" for number in range(1, 13)]
    run = _done(api, scraper="shop/prices", input={"urls": urls})
    assert [price["url"] for price in run["result"]["prices"]] == urls
    assert run["result"]["cheapest"] > 0
    assert run["usage"]["fetches"] == 12


def test_a_warm_child_serves_the_next_call_unless_the_caller_wants_his_own(yard: Yard, api: httpx.Client) -> None:
    call = {"scraper": "template/quick", "input": {"url": f"{yard.shop.url}/product/1"}}
    first = _done(api, **call)
    until(lambda: _done(api, **call)["timing"]["forked_ahead"], "a child that has served is used again")
    own = _done(api, **call, policy={"isolation": "run"})
    assert own["result"] == first["result"]
    assert not own["timing"]["forked_ahead"]
    refused = api.post("/api/scrape", json={**call, "policy": {"isolation": "warm"}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "/policy/isolation")


def test_a_budget_warns_the_author_and_then_stops_the_run(yard: Yard, api: httpx.Client) -> None:
    urls = [f"{yard.shop.url}/product/{number}" for number in range(1, 13)]
    body = {"scraper": "shop/prices", "input": {"urls": urls}, "policy": {"budget": {"requests": 5}}, "wait": PATIENCE}
    answer = api.post("/api/scrape", json=body)
    assert (answer.status_code, answer.json()["exit_reason"]) == (502, "fetch_budget")
    assert not answer.json()["retryable"]
    run = api.get(f"/api/scrape/{answer.json()['id']}").json()
    assert (run["usage"]["requests"], run["attempt"]) == (5, 1)
    assert run["usage"]["bytes_by_class"] == {"direct": run["usage"]["bytes_received"]}
    lines = api.get(f"/api/scrape/{run['id']}/logs").json()["lines"]
    assert "4 of the run's budget of 5 requests are used up" in [line["text"] for line in lines]


def test_a_url_alone_is_read_by_the_built_in_scraper(yard: Yard, api: httpx.Client) -> None:
    run = _done(api, url=f"{yard.shop.url}/product/2")
    assert run["scraper"] == "builtin/page"
    assert run["result"]["title"]


def test_several_urls_are_several_runs_in_one_answer(yard: Yard, api: httpx.Client) -> None:
    urls = [f"{yard.shop.url}/product/{number}" for number in (1, 2, 3)] + [f"{yard.shop.url}/status/404"]
    answer = api.post("/api/scrape", json={"scraper": "shop/product", "urls": urls, "wait": PATIENCE})
    assert answer.status_code == 200
    runs = answer.json()["runs"]
    assert [run["input"]["url"] for run in runs] == urls
    assert [run["exit_reason"] for run in runs] == ["succeeded"] * 3 + ["skipped"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": "ftp://127.0.0.1/"},
        {"scraper": "shop/product", "input": {"url": 7}},
        {"scraper": "shop/product", "input": {"url": "http://127.0.0.1/", "surplus": 1}},
        {"scraper": "shop/prices", "input": {}},
        {"url": "http://127.0.0.1/", "wait": -1},
    ],
    ids=lambda body: ",".join(body) or "nothing",
)
def test_bad_input_is_refused_and_leaves_nothing(api: httpx.Client, body: dict[str, Any]) -> None:
    began = datetime.now(UTC)
    answer = api.post("/api/scrape", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"]
    newest = api.get("/api/scrape", params={"limit": 1}).json()["runs"]
    assert all(datetime.fromisoformat(run["created_at"]) < began for run in newest)


def test_a_script_that_fails_is_a_502_that_tells_why(yard: Yard, api: httpx.Client) -> None:
    answer = api.post("/api/scrape", json={"scraper": "shop/product", "url": f"{yard.shop.url}/", "wait": PATIENCE})
    assert answer.status_code == 502
    assert answer.json()["exit_reason"] == "failed"
    assert "is not a product page" in answer.json()["detail"]
    assert api.get(f"/api/scrape/{answer.json()['id']}").json()["status"] == "failed"


def test_a_call_that_does_not_wait_is_looked_up_later(api: httpx.Client) -> None:
    run_id = _handle(api, seconds=0.3)
    run = api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json()
    assert (run["status"], run["attempt"]) == ("succeeded", 1)


def test_a_call_that_waited_in_vain_gets_a_handle_and_the_run_goes_on(api: httpx.Client) -> None:
    answer = api.post("/api/scrape", json=_nap(8, wait=0.3))
    assert answer.status_code == 202
    run = api.get(answer.headers["location"], params={"wait": PATIENCE}).json()
    assert run["status"] == "succeeded"


def test_a_run_cancelled_on_timeout_takes_its_child_along(yard: Yard, api: httpx.Client) -> None:
    _done(api, **_nap(0.05))
    answer = api.post("/api/scrape", json=_nap(LONG, wait=0))
    run_id = answer.json()["id"]
    with api.stream("GET", f"/api/scrape/{run_id}/events") as stream:
        assert "event: log" in stream.iter_lines(), "the script writes its first line"
    children = [child for worker in yard.workers for child in worker.children()]
    api.delete(f"/api/scrape/{run_id}")
    dead = until(lambda: len(children) - len(living(children)), "the child ends")
    assert dead == 1
    answer = api.post("/api/scrape", json=_nap(LONG, wait=1, on_timeout="cancel"))
    assert answer.status_code == 504
    assert answer.json()["code"] == "wait_timeout"
    run = api.get(f"/api/scrape/{answer.json()['id']}", params={"wait": PATIENCE}).json()
    assert (run["status"], run["exit_reason"]) == ("cancelled", "cancelled")


def test_delete_cancels_a_running_run_and_is_repeatable(api: httpx.Client) -> None:
    run_id = _handle(api, seconds=LONG)
    _running(api, run_id)
    assert api.delete(f"/api/scrape/{run_id}").status_code == 200
    assert api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json()["status"] == "cancelled"
    assert api.delete(f"/api/scrape/{run_id}").json()["status"] == "cancelled"


def test_logs_explain_and_artifacts_of_a_run(yard: Yard, api: httpx.Client) -> None:
    run = _done(api, scraper="lab/keep", input={"url": f"{yard.shop.url}/product/1"})
    logs = api.get(run["links"]["logs"]).json()
    assert {(line["stream"], line["text"]) for line in logs["lines"]} == {
        ("log", "kept a page"),
        ("stdout", "on stdout"),
    }
    told = api.get(run["links"]["explain"]).json()
    assert [(fetch["url"], fetch["status"]) for fetch in told["fetches"]] == [(f"{yard.shop.url}/product/1", 200)]
    assert told["phases"]
    assert told["summary"]
    (kept,) = api.get(run["links"]["artifacts"]).json()["artifacts"]
    page = api.get(kept["href"])
    assert len(page.content) == kept["size"] == run["result"]["bytes"]
    assert b"<html" in page.content
    assert page.headers["content-type"].startswith("text/html")


def test_events_are_told_while_the_run_goes_on(api: httpx.Client) -> None:
    run_id = _handle(api, seconds=8)
    heard: list[tuple[str, dict[str, Any]]] = []
    meanwhile = ""
    with api.stream("GET", f"/api/scrape/{run_id}/events") as stream:
        name = ""
        for line in stream.iter_lines():
            kind, _, rest = line.partition(": ")
            if kind == "event":
                name = rest
            elif kind == "data":
                heard.append((name, json.loads(rest)))
                if name == "log" and not meanwhile:
                    meanwhile = api.get(f"/api/scrape/{run_id}").json()["status"]
    assert heard[-1][0] == "end"
    assert heard[-1][1]["exit_reason"] == "succeeded"
    assert len([name for name, _ in heard if name == "log"]) > 5
    assert meanwhile in ("queued", "running"), "when the first was heard: the store may be a batch behind"


def test_who_follows_a_run_late_gets_its_lines_from_the_first_on(yard: Yard, api: httpx.Client) -> None:
    run_id = _handle(api, seconds=LONG)
    early = _lines(api, run_id, 3)
    with yard.client(-1) as other:
        assert _lines(other, run_id, 3) == early
    api.delete(f"/api/scrape/{run_id}")


def _lines(api: httpx.Client, run_id: str, count: int) -> list[str]:
    """The first lines that a stream tells."""
    with api.stream("GET", f"/api/scrape/{run_id}/events") as stream:
        told = (line for line in stream.iter_lines() if line.startswith('data: {"type":"log"'))
        return [next(told) for _ in range(count)]


def test_a_large_result_streams_back(api: httpx.Client) -> None:
    size = 5_000_000
    run = _done(api, scraper="lab/big", input={"size": size})
    assert len(run["result"]["text"]) == size
    assert api.get(f"/api/scrape/{run['id']}").json()["result"] == run["result"]


def test_the_same_idempotency_key_runs_once(api: httpx.Client) -> None:
    headers = {"Idempotency-Key": f"key-{time.time_ns()}"}
    first = api.post("/api/scrape", json=_nap(0.1, wait=PATIENCE), headers=headers)
    again = api.post("/api/scrape", json=_nap(0.1, wait=PATIENCE), headers=headers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["result"] == first.json()["result"]
    other = api.post("/api/scrape", json=_nap(0.2, wait=PATIENCE), headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")


def test_a_waiting_call_is_answered_though_bulk_runs_fill_the_workers(yard: Yard, api: httpx.Client) -> None:
    _done(api, **_nap(0.05))
    slots = sum(worker["slots"] for worker in api.get("/api/workers").json()["workers"])
    open_to_bulk = slots - len(running(yard.workers))
    bulk: list[str] = []

    def busy() -> bool:
        shown = api.get("/api/scrape", params={"status": "running", "limit": 200}).json()["runs"]
        return bool(len([run for run in shown if run["id"] in bulk]) == open_to_bulk)

    try:
        bulk += [_handle(api, seconds=LONG) for _ in range(slots + 2)]
        until(busy, "bulk fills every slot that it may")
        _done(api, **_nap(0.05))
        assert busy(), "it was answered while they ran"
    finally:
        for run_id in bulk:
            api.delete(f"/api/scrape/{run_id}")
    for run_id in bulk:
        assert api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json()["status"] == "cancelled"


def test_bulk_runs_follow_each_other_without_a_pause(api: httpx.Client) -> None:
    _done(api, **_nap(0.05))
    began = time.monotonic()
    bulk = [_handle(api, seconds=0.1) for _ in range(48)]
    ends = [api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json() for run_id in bulk]
    assert {run["status"] for run in ends} == {"succeeded"}
    assert time.monotonic() - began < 60, "with a pause of five seconds for each round it would be longer"


def test_an_edited_scraper_is_live_after_a_refresh(yard: Yard, api: httpx.Client) -> None:
    call = {"scraper": "lab/mark", "input": {}}
    script = yard.scrapers / "lab" / "mark" / "scraper.py"
    old = script.read_text()
    assert _done(api, **call)["result"]["mark"] == "first"
    script.write_text(old.replace('"first"', '"second"'))
    try:
        assert _done(api, **call)["result"]["mark"] == "first"
        assert api.post("/api/scrapers/refresh").status_code == 200
        until(lambda: [_done(api, **call)["result"]["mark"] for _ in range(6)] == ["second"] * 6, "it is live")
    finally:
        script.write_text(old)
        api.post("/api/scrapers/refresh")
    until(lambda: [_done(api, **call)["result"]["mark"] for _ in range(6)] == ["first"] * 6, "it is back")


def test_a_retry_leads_to_a_second_attempt(api: httpx.Client) -> None:
    run = _done(api, scraper="lab/again", input={"after": 0.1})
    assert (run["attempt"], run["result"]) == (2, {"attempt": 2})
    assert api.get(f"/api/scrape/{run['id']}").json()["attempt"] == 2


def test_a_retry_without_an_attempt_left_says_so(api: httpx.Client) -> None:
    call = {"scraper": "lab/again", "input": {}, "policy": {"retries": 0}, "wait": PATIENCE}
    answer = api.post("/api/scrape", json=call)
    assert (answer.status_code, answer.json()["exit_reason"]) == (502, "retry")


def test_the_workers_are_listed(yard: Yard, api: httpx.Client) -> None:
    pids = {program.pid for program in running(yard.workers)}

    def listed() -> list[dict[str, Any]] | None:
        """One that is held up for long is not, until it is heard again."""
        found: list[dict[str, Any]] = api.get("/api/workers").json()["workers"]
        return found if {worker["pid"] for worker in found} == pids else None

    workers = until(listed, "every worker is listed")
    assert all(worker["slots"] == 4 and worker["walls"] for worker in workers)


def test_two_gateways_share_every_run(cluster: Cluster, api: httpx.Client) -> None:
    with cluster.client(1) as other:
        run_id = _handle(api, seconds=LONG)
        _running(other, run_id)
        assert other.delete(f"/api/scrape/{run_id}").status_code == 200
        assert api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json()["status"] == "cancelled"
        run = _done(api, **_nap(0.05))
        # Another gateway reads from the store alone, which may be a batch (50 ms) behind the answer.
        until(lambda: other.get(f"/api/scrape/{run['id']}").json().get("result") == run["result"], "it is there")


def test_a_channel_moved_at_one_gateway_is_in_force_at_the_other(cluster: Cluster, api: httpx.Client) -> None:
    home = cluster.scrapers / "lab" / "nap"
    newer = cluster.scrapers / "lab" / "nap-newer"
    shutil.copytree(home, newer)
    manifest = (newer / "scraper.toml").read_text()
    before = tomllib.loads(manifest)["version"]
    (newer / "scraper.toml").write_text(manifest.replace(f'version = "{before}"', 'version = "9.0.0"'))
    with cluster.client(1) as other:
        try:
            assert api.post("/api/scrapers/refresh").status_code == 200
            until(lambda: _done(other, **_nap(0))["version"] == "9.0.0", "the other gateway has the new version")
            moved = api.put("/api/scrapers/lab/nap/channels/stable", json={"version": before})
            assert moved.json()["channels"] == {"stable": before}
            assert _done(api, **_nap(0))["version"] == before
            until(lambda: _done(other, **_nap(0))["version"] == before, "the other gateway follows")
        finally:
            other.delete("/api/scrapers/lab/nap/channels/stable")
            shutil.rmtree(newer)
            api.post("/api/scrapers/refresh")
            until(lambda: _done(api, **_nap(0))["version"] == before, "all is as it was")


def test_a_worker_that_is_told_to_stop_finishes_what_it_runs(cluster: Cluster, api: httpx.Client) -> None:
    worker = _extra_worker(cluster, drain_seconds=PATIENCE)
    runs = _occupy(cluster, api, worker, seconds=10)
    assert worker.stop() == 0
    ends = [api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json() for run_id in runs]
    assert [(run["status"], run["attempt"]) for run in ends] == [("succeeded", 1)] * len(runs)
    assert _worker_id(worker) in {api.get(run["links"]["explain"]).json()["worker"] for run in ends}


def test_a_worker_that_is_drained_finishes_what_it_runs_and_ends(cluster: Cluster, api: httpx.Client) -> None:
    worker = _extra_worker(cluster, drain_seconds=0.1)
    runs = _occupy(cluster, api, worker, seconds=5)
    asked = api.post(f"/api/workers/{_worker_id(worker)}/drain", params={"exit": True})
    assert (asked.status_code, asked.json()["drain"]) == (200, "exit")
    until(lambda: not worker.runs, "it has ended by itself")
    assert (worker.stop(), any(event["event"] == "worker.handed_back" for event in worker.events())) == (0, False)
    ends = [api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json() for run_id in runs]
    assert [(run["status"], run["attempt"]) for run in ends] == [("succeeded", 1)] * len(runs)
    assert _worker_id(worker) in {api.get(run["links"]["explain"]).json()["worker"] for run in ends}


def test_a_worker_without_time_to_finish_hands_its_work_to_another(cluster: Cluster, api: httpx.Client) -> None:
    worker = _extra_worker(cluster, drain_seconds=0.1)
    runs = _occupy(cluster, api, worker, seconds=10)
    assert worker.stop() == 0
    assert any(event["event"] == "worker.handed_back" for event in worker.events())
    ends = [api.get(f"/api/scrape/{run_id}", params={"wait": PATIENCE}).json() for run_id in runs]
    assert [(run["status"], run["attempt"]) for run in ends] == [("succeeded", 1)] * len(runs)
    assert _worker_id(worker) not in {api.get(run["links"]["explain"]).json()["worker"] for run in ends}


def _nap(seconds: float, **more: Any) -> dict[str, Any]:
    return {"scraper": "lab/nap", "input": {"seconds": seconds}, **more}


def _done(api: httpx.Client, **call: Any) -> dict[str, Any]:
    answer = api.post("/api/scrape", json={"wait": PATIENCE, **call})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def _handle(api: httpx.Client, seconds: float) -> str:
    answer = api.post("/api/scrape", json=_nap(seconds, wait=0))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _running(api: httpx.Client, run_id: str) -> None:
    until(lambda: api.get(f"/api/scrape/{run_id}").json()["status"] == "running", f"{run_id} runs")


def _quiet(yard: Yard) -> None:
    """No test leaves work to the next."""
    with yard.client() as api:
        until(lambda: not any(worker["busy"] for worker in api.get("/api/workers").json()["workers"]), "quiet")


def _extra_worker(cluster: Cluster, drain_seconds: float) -> Program:
    worker = cluster.add_worker({"SCRAPEYARD_WORKER__DRAIN_SECONDS": str(drain_seconds)})
    worker.wait_for("worker.started")
    return worker


def _occupy(cluster: Cluster, api: httpx.Client, worker: Program, seconds: float) -> list[str]:
    """Runs on every worker, at least one of them on this one."""
    runs = [_handle(api, seconds) for _ in range(3 * len(running(cluster.workers)))]
    for run_id in runs:
        _running(api, run_id)
    mine = [
        run_id for run_id in runs if api.get(f"/api/scrape/{run_id}/explain").json()["worker"] == _worker_id(worker)
    ]
    assert mine
    return runs


def _worker_id(worker: Program) -> str:
    return str(worker.wait_for("worker.started")["worker"])
