"""Workers, scrapers, health, and the shape of every error."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from structlog.testing import capture_logs

from scrapeyard.model import Refresh
from scrapeyard.queues import messages
from scrapeyard.settings import Settings, describe, load
from scrapeyard.store.ports.operations import LoadSample
from scrapeyard.store.ports.webhooks import Alert
from tests.integration.gateway_stand import Stand, open_stand, worker

SECRETIVE = """
[gateway]
max_waiting = 77
[repository]
hook_secret = "hush-secret"
[[proxies.pools]]
name = "office"
urls = ["http://user:hush-proxy@127.0.0.1:3128"]
[environments]
index_url = "https://hush-user:hush-index@packages.example/simple?token=hush"
"""


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def test_workers_show_what_their_heartbeat_told(stand: Stand) -> None:
    await stand.store.workers.beat(worker(busy=3))
    await stand.store.workers.beat(worker(id="worker_silent", seen_at=1.0))
    (shown,) = (await stand.client.get("/api/workers")).json()["workers"]
    assert (shown["id"], shown["busy"], shown["lanes"]) == ("worker_1", 3, ["default", "bulk"])
    assert shown["age_seconds"] < 60


async def test_history_shows_the_minutes_that_were_asked_for(stand: Stand) -> None:
    now = time.time()
    for age in (7200.0, 60.0):
        await stand.store.load.put(LoadSample(at=now - age, busy=2, slots=8, workers=1, waiting=4, lanes={"slow": 9.5}))
    (shown,) = (await stand.client.get("/api/stats/history")).json()["samples"]
    assert (shown["busy"], shown["waiting"], shown["lanes"], shown["ended"]) == (2, 4, {"slow": 9.5}, None)
    assert len((await stand.client.get("/api/stats/history?hours=3")).json()["samples"]) == 2
    assert (await stand.client.get("/api/stats/history?hours=49")).status_code == 422


async def call_at_once(stand: Stand, times: int) -> None:
    for _ in range(times):
        body = {"scraper": "shop/product", "input": {"url": "https://a.example"}, "wait": 0}
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202


async def test_scale_tells_the_workers_that_waiting_work_needs(stand: Stand) -> None:
    empty = (await stand.client.get("/api/stats/scale")).json()
    assert (empty["wanted_workers"], empty["workers"], empty["lanes"]) == (0, 0, [])
    await call_at_once(stand, 60)
    guessed = (await stand.client.get("/api/stats/scale?target_seconds=1&lane=default")).json()
    (lane,) = guessed["lanes"]
    assert (lane["lane"], lane["runs"], lane["slot_seconds"], lane["measured"]) == ("default", 60, 60.0, False)
    each = guessed["slots_per_worker"]
    assert (guessed["measured"], guessed["wanted_workers"]) == (False, -(-60 // each)), "as many slots as seconds"
    await stand.store.workers.beat(worker(busy=3, run_seconds=2.0))
    known = (await stand.client.get("/api/stats/scale?target_seconds=10&lane=default")).json()
    assert (known["measured"], known["slots"], known["busy"]) == (True, 4, 3)
    assert (known["queued_seconds"], known["wanted_workers"]) == (30.0, 3), "120 s, 10 s of each slot, 4 slots of each"
    await stand.store.workers.beat(worker(busy=3, run_seconds=2.0, draining=True))
    left = (await stand.client.get("/api/stats/scale?lane=default")).json()
    assert (left["workers"], left["busy"]) == (0, 0), "a worker that drains takes nothing"
    other = (await stand.client.get("/api/stats/scale?lane=other")).json()
    assert (other["wanted_workers"], other["lanes"][0]["runs"]) == (0, 0)


async def test_settings_tell_their_source_and_hide_what_is_secret(tmp_path: Path) -> None:
    (tmp_path / "scrapeyard.toml").write_text(SECRETIVE)
    environ = {"REDIS_URL": "redis://:hush-redis@queue.example", "SCRAPEYARD_WORKER__SLOTS": "3"}
    given = {"sandbox": {"mode": "off"}}
    async with open_stand(tmp_path, load(given, environ=environ, folder=tmp_path)) as stand:
        answer = await stand.client.get("/api/settings")
    shown = {one["key"]: one for one in answer.json()["settings"]}
    assert "hush" not in answer.text
    assert shown["redis_url"]["value"] == "redis://:***@queue.example"
    sources = {
        "redis_url": "environment REDIS_URL",
        "worker.slots": "environment SCRAPEYARD_WORKER__SLOTS",
        "gateway.max_waiting": "scrapeyard.toml",
        "http.read_seconds": "default",
        "sandbox.mode": "command line",
    }
    assert {key: shown[key]["source"] for key in sources} == sources
    assert (shown["worker.slots"]["value"], shown["worker.slots"]["default"]) == (3, 0)
    assert len(shown) == len(list(describe()))
    assert all(one["meaning"] for one in shown.values())


async def test_scale_answers_as_the_example_for_keda_asks(stand: Stand) -> None:
    text = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text("utf-8")
    (trigger,) = next(yaml.safe_load_all(text.partition("```yaml\n")[2].partition("```")[0]))["spec"]["triggers"]
    asked = trigger["metadata"]
    await call_at_once(stand, 1)
    answer = await stand.client.get("/" + asked["url"].split("/", 3)[3])
    assert answer.json()[asked["valueLocation"]] == 1


async def test_alerts_are_listed_and_receivers_tried(tmp_path: Path) -> None:
    alerts = {"slack_url": "https://hooks.example/hush", "email_to": ["ops@example.com"]}
    async with open_stand(tmp_path, Settings.model_validate({"alerts": alerts})) as stand:
        now = stand.services.clock()
        fields = {"words": "it is", "value": 1.0, "threshold": 0.5, "started_at": now, "told_at": now}
        for number in range(3):
            alert = Alert(id=f"alert_{number}", rule="queue_age", subject=f"lane{number}", **fields)
            assert await stand.store.alerts.open(alert, ())
        assert await stand.store.alerts.change(alert, replace(alert, state="resolved", resolved_at=now), ())
        listed = (await stand.client.get("/api/alerts?state=firing&limit=1")).json()
        assert ([each["subject"] for each in listed["alerts"]], listed["receivers"]) == (["lane1"], ["slack", "email"])
        rest = (await stand.client.get(f"/api/alerts?state=firing&cursor={listed['next_cursor']}")).json()
        assert ([each["id"] for each in rest["alerts"]], rest["next_cursor"]) == (["alert_0"], None)
        tried = await stand.client.post("/api/alerts/test")
        assert (tried.status_code, list(tried.json()["deliveries"])) == (202, ["slack", "email"])
        shown = (await stand.client.get(f"/api/webhooks/deliveries/{tried.json()['deliveries']['slack']}")).json()
        assert (shown["event"], shown["url"], "hush" in str(shown)) == ("alert.test", "alert:slack", False)


async def test_without_receivers_there_is_nothing_to_try(stand: Stand) -> None:
    assert (await stand.client.post("/api/alerts/test")).status_code == 409


@pytest.mark.parametrize("query", ["target_seconds=0", "target_seconds=nan", "lane=A%20B", "target_seconds=1e9"])
async def test_scale_refuses_what_it_cannot_count_with(stand: Stand, query: str) -> None:
    assert (await stand.client.get(f"/api/stats/scale?{query}")).status_code == 422


async def test_health_is_degraded_without_workers_and_ok_with_one(stand: Stand) -> None:
    response = await stand.client.get("/api/health")
    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    assert response.json()["dependencies"]["workers"]["state"] == "away"
    assert response.json()["dependencies"]["store"]["latency_ms"] >= 0


async def test_health_with_a_worker_is_ok(stand: Stand) -> None:
    await stand.store.workers.beat(worker())
    document = (await stand.client.get("/api/health")).json()
    assert document["status"] == "ok"
    assert set(document["dependencies"]) == {"queue", "store", "blobs", "workers"}
    assert document["dependencies"]["workers"]["detail"] == "1 workers, 1/4 slots busy"


async def test_ready_and_live(stand: Stand) -> None:
    assert (await stand.client.get("/api/ready")).json() == {"ready": True}
    assert (await stand.client.get("/api/live")).json() == {"alive": True}
    await stand.gateway.stop()
    assert (await stand.client.get("/api/ready")).status_code == 503
    assert (await stand.client.get("/api/live")).status_code == 200


async def test_scrapers_are_listed_and_described(stand: Stand) -> None:
    listed = (await stand.client.get("/api/scrapers")).json()["scrapers"]
    assert {one["id"]: (one["builtin"], one["valid"]) for one in listed} == {
        "builtin/document": (True, True),
        "builtin/extract": (True, True),
        "builtin/map": (True, True),
        "builtin/page": (True, True),
        "shop/product": (False, True),
    }
    described = (await stand.client.get("/api/scrapers/shop/product")).json()
    assert described["version"] == "1.4.2"
    assert "url" in described["input_schema"]["properties"]
    assert described["limits"]["wall_seconds"] == 20
    missing = await stand.client.get("/api/scrapers/shop/none")
    assert (missing.status_code, missing.json()["code"]) == (404, "scraper_not_found")
    assert (await stand.client.get("/api/scrapers/shop/NONE")).status_code == 422


async def test_refresh_finds_new_scrapers_and_tells_the_workers(stand: Stand, tmp_path: Path) -> None:
    home = tmp_path / "scrapers" / "shop" / "list"
    home.mkdir()
    (home / "scraper.toml").write_text('id = "shop/list"\nversion = "1.0.0"\n')
    (home / "scraper.py").write_text("def run(ctx):\n    return 1\n")
    async with stand.queue.listen(messages.SIGNALS) as signals:
        response = await stand.client.post("/api/scrapers/refresh")
        assert messages.decode_signal(await anext(signals)) == Refresh(sender="gw1")
    assert "shop/list" in [one["id"] for one in response.json()["scrapers"]]


async def test_an_invalid_scraper_says_why_and_cannot_be_called(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "scrapers" / "shop" / "product" / "scraper.py").write_text("def run(:")
    listed = (await stand.client.post("/api/scrapers/refresh")).json()["scrapers"]
    broken = next(one for one in listed if one["id"] == "shop/product" and not one["valid"])
    assert broken["problem"]
    refused = await stand.client.post("/api/scrape", json={"scraper": "shop/product", "url": "https://a.example"})
    assert (refused.status_code, refused.json()["code"]) == (422, "scraper_invalid")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/nothing", 404, "no_such_path"), ("PUT", "/api/scrape", 405, "method_not_allowed")],
)
async def test_http_s_own_errors_are_problems_too(stand: Stand, method: str, path: str, status: int, code: str) -> None:
    response = await stand.client.request(method, path)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert set(response.json()) >= {"type", "title", "status", "detail", "code", "retryable", "remedy"}


async def test_a_fault_of_ours_tells_nothing_of_its_cause(stand: Stand) -> None:
    stand.app.router.add_route("/boom", _boom)
    with capture_logs():  # a traceback in colours takes longer than all the rest
        response = await stand.client.get("/boom")
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert "secret" not in response.text


async def _boom(_request: object) -> None:
    raise RuntimeError("secret cause")


async def test_every_route_refuses_a_parameter_that_it_does_not_know(stand: Stand) -> None:
    document = (await stand.client.get("/api/openapi.json")).json()
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    assert {"get", "post", "put", "patch", "delete"} == {method for method, _, _ in operations}
    for method, path, operation in operations:
        response = await stand.client.request(method, path, params={"nonsense": "1"})
        problem = response.json()
        assert (response.status_code, problem["code"], str(response.status_code) in operation["responses"]) == (
            422,
            "invalid",
            True,
        ), (method, path)
        (fault,) = problem["errors"]
        assert fault["path"] == "/query/nonsense"
        known = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        assert all(name in fault["message"] for name in known)


async def test_a_refusal_of_many_unknown_parameters_is_short(stand: Stand) -> None:
    given = {f"{n}{'x' * 500}": "1" for n in range(100)}
    response = await stand.client.get("/api/live", params=given)
    assert (response.status_code, len(response.json()["errors"])) == (422, 20)
    assert len(response.content) < 20_000
