"""Compatible doors: whatever the API asks of its callers holds at every door, told in the door's own shape."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.types import Scope

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.port import Caller
from scrapeyard.gateway.app import DOORS
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.model.identity import ClientBudget, ClientLimits, Identity, Role
from scrapeyard.settings import EscalationSettings, GatewaySettings, Settings
from tests.integration.gateway_stand import Stand, open_stand

URL = "https://shop.example/p/1"


class Work(NamedTuple):
    """A call of a door that starts work."""

    door: str
    path: str
    body: dict[str, Any]


WORK = [
    Work("firecrawl", "/v1/scrape", {"url": URL}),
    Work("firecrawl", "/v2/scrape", {"url": URL, "formats": ["markdown", "links"]}),
    Work("firecrawl", "/v2/map", {"url": URL}),
    Work("firecrawl", "/v2/crawl", {"url": URL}),
    Work("firecrawl", "/v1/batch/scrape", {"urls": [URL]}),
    Work("firecrawl", "/v2/extract", {"urls": [URL], "prompt": "the price"}),
    Work("firecrawl", "/v1/search", {"query": "a lamp"}),
    Work("firecrawl", "/v2/search", {"query": "a lamp", "scrapeOptions": {"formats": ["markdown"]}}),
    Work("flaresolverr", "/v1", {"cmd": "request.get", "url": URL}),
    Work("scrapyd", "/schedule.json", {"project": "shop", "spider": "product", "url": URL}),
    Work(
        "scrapyrt", "/crawl.json", {"spider_name": "shop/product", "request": {"url": URL}, "crawl_args": {"url": URL}}
    ),
]
"""Each path of each door by which work is started."""
each_work = pytest.mark.parametrize("work", WORK, ids=lambda work: f"{work.door} {work.path}")


class Callers:
    """Credentials for the test: the key is the name of a role, with these limits."""

    in_use = True
    limits = ClientLimits()

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        if token is None:
            return None
        if token not in list(Role):
            raise unauthenticated("no such key")
        limits = self.limits if token == "client" else ClientLimits()
        return Identity(client=f"{token}-1", role=Role(token), key_id=f"k-{token}", limits=limits)


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    engine = EscalationSettings(solver="firecrawl", solver_url="http://127.0.0.1:9")
    async with open_stand(tmp_path, Settings(gateway=GatewaySettings(max_body_mb=0.1), escalation=engine)) as opened:
        opened.gateway.authenticator._kinds = (Callers(),)
        yield opened


async def post(stand: Stand, work: Work, role: str = "client", **more: Any) -> httpx.Response:
    headers = {"X-API-Key": role, **more.pop("headers", {})} if role else more.pop("headers", {})
    return await stand.client.post(work.path, json=work.body, headers=headers, **more)


async def started(stand: Stand) -> int:
    """Runs and jobs that there are."""
    await stand.recorder.flush()
    headers = {"X-API-Key": "admin"}
    runs = (await stand.client.get("/api/scrape", headers=headers)).json()["runs"]
    jobs = (await stand.client.get("/api/jobs", headers=headers)).json()["jobs"]
    return len(runs) + len(jobs)


def test_every_door_is_tried_here() -> None:
    assert {work.door for work in WORK} == set(DOORS)
    assert set(GatewaySettings().doors) == set(DOORS), "doors that cost nothing are open"


@each_work
async def test_who_may_not_call_the_api_may_not_use_a_door(stand: Stand, work: Work) -> None:
    assert (await post(stand, work, role="")).status_code == 401
    assert (await post(stand, work, role="nobody")).status_code == 401
    assert (await post(stand, work, role="viewer")).status_code == 403
    await stand.gateway.audit._flush()
    refused = await stand.client.get("/api/audit", headers={"X-API-Key": "admin"})
    assert {row["status"] for row in refused.json()["rows"]} == {401, 403}
    assert await started(stand) == 0


@each_work
async def test_names_and_pages_of_strangers_are_refused(stand: Stand, work: Work) -> None:
    assert (await post(stand, work, headers={"Host": "evil.example"})).status_code == 421
    assert (await post(stand, work, headers={"Origin": "https://evil.example"})).status_code == 403
    assert await started(stand) == 0


@each_work
async def test_a_budget_that_is_used_up_starts_nothing(stand: Stand, work: Work) -> None:
    callers = Callers()
    callers.limits = ClientLimits(daily=ClientBudget(runs=1))
    stand.gateway.authenticator._kinds = (callers,)
    meters = Meters(stand.store.meters)
    meters.count_run(Caller(client="client-1"))
    await meters.flush()
    refused = await post(stand, work)
    assert refused.status_code in (402, 429, 500), refused.text
    assert "are used up" in refused.text
    assert int(refused.headers["retry-after"]) > 0
    assert await started(stand) == 0


@each_work
async def test_a_rate_holds_for_doors(stand: Stand, work: Work) -> None:
    callers = Callers()
    callers.limits = ClientLimits(rate=0.01)
    stand.gateway.authenticator._kinds = (callers,)
    await stand.client.get("/api/jobs", headers={"X-API-Key": "client"})
    refused = await post(stand, work)
    assert refused.status_code in (429, 500)
    assert "0.01 times a second" in refused.text
    assert await started(stand) == 0


@each_work
async def test_a_body_over_the_limit_is_refused(stand: Stand, work: Work) -> None:
    large = {**work.body, "origin": "x" * 200_000}
    refused = await stand.client.post(work.path, json=large, headers={"X-API-Key": "client"})
    assert refused.status_code in (413, 500)
    stranger = await stand.client.post(work.path, json=large)
    assert stranger.status_code == 401, "a stranger's body is not read to its end"


@each_work
async def test_what_is_no_call_is_told_in_the_doors_shape(stand: Stand, work: Work) -> None:
    headers = {"X-API-Key": "client", "Content-Type": "application/json"}
    for content in (b"", b"{", b"[]", b"7", b'{"url": 7}', b'{"url": "ftp://x"}', b'{"nonsense": {}}', b"\xff\xfe"):
        answer = await stand.client.post(work.path, content=content, headers=headers)
        assert 400 <= answer.status_code <= 500, content
        told = answer.json()
        assert told.get("success") is False or told.get("status") == "error", told
    assert (await stand.client.post(work.path, content=b"{", headers={})).status_code == 401
    assert await started(stand) == 0


READ = ("/v1/crawl/{}", "/v2/crawl/{}", "/v2/batch/scrape/{}", "/v2/crawl/{}/errors", "/v2/batch/scrape/{}/errors")


async def test_a_job_of_another_client_does_not_exist(stand: Stand) -> None:
    made = await stand.client.post("/v2/batch/scrape", json={"urls": [URL]}, headers={"X-API-Key": "operator"})
    assert made.status_code == 200, made.text
    extract = await stand.client.post(
        "/v2/extract", json={"urls": [URL], "prompt": "x"}, headers={"X-API-Key": "operator"}
    )
    jobs = {path.format(made.json()["id"]): "GET" for path in READ}
    jobs |= {f"/v2/extract/{extract.json()['id']}": "GET", f"/v2/crawl/{made.json()['id']}": "DELETE"}
    for path, method in jobs.items():
        answer = await stand.client.request(method, path, headers={"X-API-Key": "client"})
        assert (answer.status_code, answer.json()["error"]) == (404, "Job not found"), path
    assert (
        await stand.client.get(f"/v2/crawl/{made.json()['id']}", headers={"X-API-Key": "viewer"})
    ).status_code == 200
    unknown = await stand.client.get("/v2/crawl/nonsense", headers={"X-API-Key": "client"})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "Job not found")
    appended = {"urls": [URL + "2"], "appendToId": made.json()["id"]}
    refused = await stand.client.post("/v2/batch/scrape", json=appended, headers={"X-API-Key": "client"})
    assert refused.status_code == 404, "nobody adds to the jobs of others"


async def test_a_receiver_of_firecrawl_gets_its_messages(stand: Stand) -> None:
    asked = {"urls": [URL], "webhook": {"url": "https://you.example/hook", "metadata": {"a": "b"}}}
    headers = {"X-API-Key": "client"}
    unsigned = await stand.client.post("/v2/batch/scrape", json=asked, headers=headers)
    assert unsigned.status_code == 400
    assert "webhooks.secret" in unsigned.text
    for wrong in ({"headers": {"a": "b"}}, {"events": ["pages"]}, {"events": []}):
        refused = await stand.client.post(
            "/v2/batch/scrape", json={**asked, "webhook": {**asked["webhook"], **wrong}}, headers=headers
        )
        assert refused.status_code == 400, wrong


async def test_the_calls_of_n8n(stand: Stand) -> None:
    """As `@mendable/n8n-nodes-firecrawl` 2.1 makes them, by its defaults."""
    headers = {"Authorization": "Bearer client", "Accept": "application/json"}
    credentials = await stand.client.get("/v2/team/credit-usage", headers=headers)
    assert credentials.json()["success"] is True
    formats = [{"type": "markdown"}, {"type": "screenshot", "fullPage": False, "quality": 100}]
    page = {"onlyMainContent": True, "waitFor": 0, "mobile": False, "skipTlsVerification": False, "timeout": 30000}
    more = {"removeBase64Images": True, "blockAds": True, "storeInCache": True, "proxy": "auto"}
    batch = {"urls": [URL], "formats": formats, **page, **more, "maxConcurrency": 100, "ignoreInvalidURLs": True}
    for path, body in (
        ("/v2/batch/scrape", {**batch, "zeroDataRetention": False}),
        ("/v2/crawl", {"url": URL, "limit": 5, "scrapeOptions": {"formats": formats, **page, **more}}),
    ):
        made = await stand.client.post(path, json={"integration": "n8n", **body}, headers=headers)
        assert made.status_code == 200, made.text
        status = await stand.client.get(f"{path}/{made.json()['id']}", headers=headers)
        assert status.json()["status"] == "scraping"
    refused = await stand.client.post("/v2/agent", json={"integration": "n8n", "prompt": "x"}, headers=headers)
    assert (refused.status_code, refused.json()["success"]) == (404, False)


FLARESOLVERR = [
    ({"cmd": "request.get"}, "'url' is mandatory"),
    ({"cmd": "request.get", "url": URL, "postData": "a=b"}, "Cannot use"),
    ({"cmd": "request.post", "url": URL}, "'postData' is mandatory"),
    ({"cmd": "request.get", "url": URL, "proxy": {"url": "http://p:1"}}, "proxy is not available"),
    ({"cmd": "request.get", "url": URL, "maxTimeout": "soon"}, "maxTimeout"),
    ({"cmd": "request.dance", "url": URL}, "cmd"),
    ({"cmd": "request.get", "url": URL, "nonsense": {}}, "nonsense"),
    ({"cmd": "sessions.destroy", "session": "nobody"}, "The session doesn't exist."),
]


@pytest.mark.parametrize(("body", "words"), FLARESOLVERR, ids=lambda given: str(given)[:60])
async def test_flaresolverr_tells_what_is_wrong(stand: Stand, body: dict[str, Any], words: str) -> None:
    answer = await stand.client.post("/v1", json=body, headers={"X-API-Key": "client"})
    assert (answer.status_code, answer.json()["status"]) == (500, "error")
    assert words in answer.json()["message"]
    assert {"startTimestamp", "endTimestamp", "version"} <= answer.json().keys()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/crawl.json", {"spider_name": "product", "request": {"url": URL}, "crawl_args": {"url": URL}}),
        ("/schedule.json", {"project": "shop", "spider": "product", "url": URL, "setting": "LOG_LEVEL=INFO"}),
    ],
)
async def test_a_scraper_that_is_no_scrapy_spider(stand: Stand, path: str, data: dict[str, Any]) -> None:
    refused = await stand.client.post(path, json=data, headers={"X-API-Key": "client"})
    assert (refused.status_code, refused.json()["status"]) == (400, "error")
    assert "shop/product is not a Scrapy spider" in refused.json()["message"]
    assert "POST /api/scrape" in refused.json()["message"]
    assert await started(stand) == 0


async def test_what_is_wrong_with_the_input_of_a_spider_is_told(stand: Stand) -> None:
    """Without a word of Scrapy, whatever the scraper is."""
    data = {"project": "shop", "spider": "product"}
    refused = await stand.client.post("/schedule.json", json=data, headers={"X-API-Key": "client"})
    assert '"url" is a required property' in refused.json()["message"]


async def test_the_calls_of_prowlarr(stand: Stand) -> None:
    """It gives what FlareSolverr 3 no longer uses: refused, every indexer behind it would fail."""
    agent = {"userAgent": "Mozilla/5.0", "maxTimeout": 1}
    form = {"postData": "a=b", "headers": {"contentType": "application/x-www-form-urlencoded", "contentLength": None}}
    for call in ({"cmd": "request.get", **agent}, {"cmd": "request.post", **agent, **form}):
        answer = await stand.client.post("/v1", json={"url": URL, **call}, headers={"X-API-Key": "client"})
        assert "Timeout after the given maxTimeout" in answer.json()["message"], "it was taken, and no worker is here"
    assert await started(stand) == 2


async def test_any_name_of_a_session_will_do(stand: Stand) -> None:
    """Also one that begins anew, and one that the browser could not keep."""
    for name in ("ü/日本", "x" * 90, "plain"):
        for command in ("request.get", "sessions.destroy", "request.get"):
            body = {"cmd": command, "url": URL, "session": name, "maxTimeout": 1}
            await stand.client.post("/v1", json=body, headers={"X-API-Key": "client"})
    profiled = {"url": URL, "timeout": 1, "profile": {"name": "my profile"}}
    await stand.client.post("/v2/scrape", json=profiled, headers={"X-API-Key": "client"})
    await stand.recorder.flush()
    runs = (await stand.client.get("/api/scrape", headers={"X-API-Key": "admin"})).json()["runs"]
    sessions = [run["input"]["session"] for run in runs]
    assert len(set(sessions)) == 7
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", each) for each in sessions), sessions
    assert "plain" in sessions


async def test_sessions_of_flaresolverr_belong_to_their_client(stand: Stand) -> None:
    async def say(role: str, **command: Any) -> dict[str, Any]:
        told: dict[str, Any] = (await stand.client.post("/v1", json=command, headers={"X-API-Key": role})).json()
        return told

    made = await say("client", cmd="sessions.create", session="one")
    assert (made["message"], made["session"]) == ("Session created successfully.", "one")
    assert (await say("client", cmd="sessions.create", session="one"))["message"] == "Session already exists."
    assert len((await say("client", cmd="sessions.create"))["session"]) == 32
    assert (await say("operator", cmd="sessions.list"))["sessions"] == []
    assert (await say("operator", cmd="sessions.destroy", session="one"))["status"] == "error"
    assert (await say("client", cmd="sessions.destroy", session="one"))["status"] == "ok"
    assert "one" not in (await say("client", cmd="sessions.list"))["sessions"]
    assert (await stand.client.get("/health")).json() == {"status": "ok"}


SEARCHES = [
    ({"query": ""}, "at least 1 character"),
    ({"query": "x", "limit": 101}, "less than or equal to 100"),
    ({"query": "x", "limit": 21, "scrapeOptions": {}}, "at most 20 results"),
    ({"query": "x", "scrapeOptions": {"formats": ["branding"]}}, "there is no reader of brands"),
    ({"query": "x", "sources": ["alexandria"]}, "'web', 'news' or 'images'"),
    ({"query": "x", "filter": "y"}, "not available here"),
    ({"query": "x", "enterprise": ["zdr"]}, "not available here"),
]


@pytest.mark.parametrize(("body", "words"), SEARCHES, ids=lambda given: str(given)[:60])
async def test_a_search_that_cannot_be_asked(stand: Stand, body: dict[str, Any], words: str) -> None:
    answer = await stand.client.post("/v2/search", json=body, headers={"X-API-Key": "client"})
    assert (answer.status_code, answer.json()["success"]) == (400, False)
    assert words in answer.json()["error"]
    assert await started(stand) == 0


async def test_a_search_without_an_outside_engine(tmp_path: Path) -> None:
    flaresolverr = EscalationSettings(solver_url="http://127.0.0.1:9")
    async with open_stand(tmp_path, Settings(escalation=flaresolverr)) as stand:
        for version in ("v1", "v2"):
            answer = await stand.client.post(f"/{version}/search", json={"query": "x"})
            assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
            assert 'escalation.solver to "firecrawl"' in answer.json()["error"]


async def test_a_door_that_is_not_open_is_no_path(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings(gateway=GatewaySettings(doors=()))) as stand:
        for work in WORK:
            answer = await stand.client.post(work.path, json=work.body)
            assert (answer.status_code, answer.json()["code"]) == (404, "no_such_path")
    with pytest.raises(ValueError, match="doors"):
        GatewaySettings(doors=("window",))
