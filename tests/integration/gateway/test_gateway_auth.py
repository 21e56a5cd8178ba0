"""Who may call what: every route, for every kind of caller; and that a client sees nothing of another."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.auth.permissions import GRANTS, WEBSOCKET, Permission, asked_for
from scrapeyard.model import new_id
from scrapeyard.model.identity import Role, is_secret, new_secret
from scrapeyard.store.ports.operations import StoredPattern
from scrapeyard.store.ports.runs import RunFilter
from scrapeyard.store.ports.store import Store
from tests.integration.gateway_stand import Stand, open_stand

pytestmark = pytest.mark.asyncio(loop_scope="module")
ITEMS = {"scraper": "shop/product", "items": ["https://a.example/1", "https://a.example/2"], "paused": True}
SCRAPE = {"scraper": "shop/product", "input": {"url": "https://a.example"}, "wait": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("auth")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(folder: Path) -> AsyncIterator[Stand]:
    async with open_stand(folder) as opened:
        yield opened


async def make(stand: Stand, name: str, role: Role, **more: Any) -> tuple[str, str]:
    """A key as the API makes it: its id and its secret."""
    call = KeyCall.model_validate({"name": name, "role": role, **more})
    key, secret = await stand.gateway.keys.create(call.draft(time.time()))
    return key.id, secret


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def secrets(stand: Stand) -> dict[str, str | None]:
    """The secret of each kind of caller; None for a caller without one."""
    made: dict[str, str | None] = {role.value: (await make(stand, role.value, role))[1] for role in Role}
    made["other"] = (await make(stand, "other", Role.CLIENT))[1]
    revoked, made["revoked"] = await make(stand, "gone", Role.ADMIN)
    await stand.gateway.keys.revoke(revoked)
    draft = KeyCall(name="old", role=Role.ADMIN).draft(time.time())
    made["expired"] = (await stand.gateway.keys.create(replace(draft, expires_at=time.time() - 1)))[1]
    made |= {
        "nobody": None,
        "unknown": new_secret(),
        "malformed": f"{made['admin']}"[:-1] + "_",
        "token": "e30.e30.e30",
    }
    return made


def bearer(secret: str | None) -> dict[str, str]:
    return {} if secret is None else {"Authorization": f"Bearer {secret}"}


SIGN_IN = {
    "POST /api/session": 401,
    "DELETE /api/session": 204,
    "GET /api/session/oidc/start": 404,
    "GET /api/session/oidc/callback": 404,
}
"""What the routes for signing in answer to strangers, where no identity provider is set."""
STRANGERS = ("nobody", "unknown", "malformed", "token", "expired", "revoked")


async def ask(client: httpx.AsyncClient, route: str, secret: str | None) -> httpx.Response:
    method, path = route.split(" ")
    client.cookies.clear()  # of the caller before, who signed in
    return await client.request(method, path.replace("{", "").replace("}", ""), headers=bearer(secret))


@pytest.mark.parametrize("route", [name for name in asked_for() if not name.startswith(WEBSOCKET)])
async def test_every_route_answers_every_caller_as_the_table_says(
    stand: Stand, secrets: dict[str, str | None], route: str
) -> None:
    permission = asked_for()[route]
    for caller in STRANGERS:
        response = await ask(stand.client, route, secrets[caller])
        if permission is Permission.OPEN:
            assert response.status_code == SIGN_IN.get(route, 200)
        else:
            assert (response.status_code, response.json()["code"]) == (401, "unauthenticated"), caller
            assert response.headers["www-authenticate"].startswith("Bearer")
            assert secrets[caller] is None or secrets[caller] not in response.text
    if route in ("GET /api/scrape/{run_id}/events", "GET /api/jobs/{job_id}/stream"):
        return  # nothing to stream; the roles are the same as for the run and the job
    for role in Role:
        response = await ask(stand.client, route, secrets[role])
        told = response.json() if "json" in response.headers.get("content-type", "") else {}
        assert (told.get("code") == "forbidden") == (permission not in GRANTS[role]), (role, response.text)
        assert response.status_code not in (401, 500), (role, response.text)


@pytest.mark.parametrize("path", ["/api/nowhere", "/docs/nothing", "/api/keys/x/y", "/API/SCRAPE"])
async def test_what_is_not_there_is_told_only_to_known_callers(
    stand: Stand, secrets: dict[str, str | None], path: str
) -> None:
    for method in ("GET", "HEAD", "POST", "OPTIONS", "BREW"):
        assert (await stand.client.request(method, path)).status_code == 401
    assert (await stand.client.get(path, headers=bearer(secrets["viewer"]))).status_code == 404


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def work(stand: Stand, secrets: dict[str, str | None]) -> dict[str, str]:
    """What a client has: paths of everything that it owns, by what they are."""
    mine = bearer(secrets["client"])

    async def made(path: str, body: dict[str, Any]) -> str:
        response = await stand.client.post(path, json=body, headers=mine)
        assert response.status_code < 300, response.text
        return str(response.json()["id"])

    run = await made("/api/scrape", SCRAPE)
    job = await made("/api/jobs", {**ITEMS, "job_id": "tea"})
    export = await made(f"/api/jobs/{job}/exports", {"type": "full", "format": "csv"})
    schedule = await made(
        "/api/schedule", {"every_seconds": 3600, "paused": True, "scrape": {"url": "https://a.example"}}
    )
    key = (await stand.client.get(f"/api/jobs/{job}/items", headers=mine)).json()["items"][0]["id"]
    pattern = await _pattern(stand.store)
    ids = {"run_id": run, "job_id": job, "export_id": export, "schedule_id": schedule, "pattern_id": pattern}
    return {**ids, "key": key, "name": "a.png", "sink": "warehouse"}


async def _pattern(store: Store) -> str:
    """What pages of a client taught."""
    run = (await store.runs.page(RunFilter(), None, 1)).runs[0]
    owned = StoredPattern(
        id=new_id("pattern"),
        site="a.example",
        client=run.owner,
        key="k",
        fields=("title",),
        status="learning",
        created_at=1.0,
        changed_at=1.0,
    )
    assert await store.patterns.put(owned) is not None
    return owned.id


OWNED = [
    name
    for name, permission in asked_for().items()
    if permission in (Permission.WORK_READ, Permission.WORK_WRITE) and "{" in name and "delivery" not in name
]


def _body(route: str) -> dict[str, Any] | None:
    bodies = {
        "POST /api/jobs/{job_id}/items": {"items": ["https://a.example/9"]},
        "redrive": {},
        "exports": {"type": "full", "format": "csv"},
    }
    found = next((body for end, body in bodies.items() if route.endswith(end)), None)
    if route.startswith("PUT"):
        return {"status": "stale"}
    return {"name": "x"} if route.startswith("PATCH") else found if route.startswith("POST") else None


@pytest.mark.parametrize("route", [name for name in OWNED if not name.startswith(WEBSOCKET)])
async def test_what_another_owns_cannot_be_told_from_what_does_not_exist(
    stand: Stand, secrets: dict[str, str | None], work: dict[str, str], route: str
) -> None:
    method, template = route.split(" ")
    same = {name: work[name] for name in ("key", "name", "sink")}
    missing = {name: value[:-6] + "000000" for name, value in work.items()} | same
    answers = []
    for ids in (work, missing):
        url = template.format(**ids)
        response = await stand.client.request(method, url, json=_body(route), headers=bearer(secrets["other"]))
        told = response.text
        for mine, theirs in zip(work.values(), missing.values(), strict=True):
            told = told.replace(mine, "ID").replace(theirs, "ID")
        answers.append((response.status_code, told))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


async def test_a_client_lists_its_own_and_others_list_all(
    stand: Stand, secrets: dict[str, str | None], work: dict[str, str]
) -> None:
    lists = {
        "/api/scrape": "run_id",
        "/api/jobs": "job_id",
        "/api/schedule": "schedule_id",
        "/api/patterns": "pattern_id",
    }
    for path, name in lists.items():
        for caller, sees in (("client", True), ("other", False), ("viewer", True), ("operator", True), ("admin", True)):
            listed = (await stand.client.get(path, headers=bearer(secrets[caller]))).text
            assert (work[name] in listed) == sees, (path, caller)
    for caller in ("client", "viewer"):
        for path in (f"/api/jobs/{work['job_id']}", f"/api/scrape/{work['run_id']}"):
            assert (await stand.client.get(path, headers=bearer(secrets[caller]))).status_code == 200


async def test_ids_and_keys_that_clients_choose_are_their_own(
    stand: Stand, secrets: dict[str, str | None], work: dict[str, str]
) -> None:
    assert work["job_id"] == "client.tea"
    for path in ("/api/jobs/tea", "/jobs/tea/", "/api/jobs/client.tea"):
        assert (await stand.client.get(path, headers=bearer(secrets["client"]))).json()["id"] == "client.tea"
    theirs = await stand.client.post("/api/jobs", json={**ITEMS, "job_id": "tea"}, headers=bearer(secrets["other"]))
    assert (theirs.status_code, theirs.json()["id"]) == (201, "other.tea")
    ids = set()
    for caller in ("client", "other", "client"):
        headers = {**bearer(secrets[caller]), "Idempotency-Key": "same"}
        ids.add((await stand.client.post("/api/scrape", json=SCRAPE, headers=headers)).json()["id"])
    assert len(ids) == 2


async def test_a_key_calls_only_its_scrapers(stand: Stand, secrets: dict[str, str | None]) -> None:
    _, secret = await make(stand, "narrow", Role.CLIENT, scrapers=["builtin/*"])
    mine = bearer(secret)
    schedule = {"every_seconds": 3600, "scrape": {"scraper": "shop/product", "input": {"url": "https://a.example"}}}
    calls = {
        "/api/scrape": SCRAPE,
        "/api/jobs": ITEMS,
        "/api/schedule": schedule,
        "/api/cache/warm": {"urls": ["https://a.example"], "scraper": "shop/product"},
    }
    for path, body in calls.items():
        refused = await stand.client.post(path, json=body, headers=mine)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
        unknown = {**body, "scraper": "shop/unknown"} if "scraper" in body else body
        assert (await stand.client.post(path, json=unknown, headers=mine)).status_code == 403
    good = {"url": "https://a.example", "wait": 0}
    assert (await stand.client.post("/api/scrape", json=good, headers=mine)).status_code == 202
    listed = (await stand.client.get("/api/scrapers", headers=mine)).json()
    assert {each["id"].split("/")[0] for each in listed["scrapers"]} == {"builtin"}
    assert listed["sources"] == []
    named = await stand.client.post("/api/jobs", json={**ITEMS, "owner": "other"}, headers=bearer(secrets["client"]))
    assert named.status_code == 403


async def test_a_key_is_taken_from_each_header_and_never_from_the_query(
    stand: Stand, secrets: dict[str, str | None]
) -> None:
    secret = secrets["viewer"]
    assert secret is not None
    assert (await stand.client.get("/api/stats", headers={"X-API-Key": secret})).status_code == 200
    assert (await stand.client.get("/api/stats", auth=("anyone", secret))).status_code == 200
    for name in ("key", "api_key", "access_token", "link"):
        assert (await stand.client.get("/api/stats", params={name: secret})).status_code == 401


async def test_keys_are_made_rotated_and_revoked(stand: Stand, secrets: dict[str, str | None]) -> None:
    admin = bearer(secrets["admin"])
    limits = {"rate": 20, "daily": {"mb": 500}}
    body = {"name": "shop-team", "role": "client", "scrapers": ["shop/*"], "expires_days": 90, "limits": limits}
    made = (await stand.client.post("/api/keys", json=body, headers=admin)).json()
    assert is_secret(made["secret"])
    assert made["limits"]["daily"]["mb"] == 500
    listed = (await stand.client.get("/api/keys", headers=admin)).text
    assert made["id"] in listed
    assert made["secret"] not in listed
    me = (await stand.client.get("/api/identity", headers=bearer(made["secret"]))).json()
    assert (me["client"], me["role"]) == ("shop-team", "client")
    here = f"/api/keys/{made['id']}"
    next_one = (await stand.client.post(f"{here}/rotate", json={"overlap_seconds": 3600}, headers=admin)).json()
    for secret in (made["secret"], next_one["secret"]):
        assert (await stand.client.get("/api/identity", headers=bearer(secret))).status_code == 200
    assert (await stand.client.post(f"{here}/rotate", json={}, headers=admin)).status_code == 409
    assert (await stand.client.get(here, headers=admin)).json()["replaced_by"] == next_one["id"]
    assert (await stand.client.delete(here, headers=admin)).json()["usable"] is False
    refused = await stand.client.get("/api/identity", headers=bearer(made["secret"]))
    assert (refused.status_code, "revoked" in refused.json()["detail"]) == (401, True)
    assert (await stand.client.get("/api/identity", headers=bearer(next_one["secret"]))).status_code == 200
    bad = [{"name": "A b"}, {"name": "x", "role": "god"}, {**body, "scrapers": ["*"]}, {**body, "limits": {"rate": -1}}]
    for each in bad:
        assert (await stand.client.post("/api/keys", json=each, headers=admin)).status_code == 422


async def test_a_link_opens_one_path_and_ends_with_its_key(
    stand: Stand, secrets: dict[str, str | None], work: dict[str, str]
) -> None:
    _ = secrets
    key_id, secret = await make(stand, "browser", Role.VIEWER)
    path = f"/api/jobs/{work['job_id']}/items?limit=1&status=pending"
    link = (await stand.client.post("/api/links", json={"path": path}, headers=bearer(secret))).json()["url"]
    assert (await stand.client.get(link)).status_code == 200
    assert secret not in link
    changed = [
        link.replace("limit=1", "limit=2"),
        link.replace("/items", "/exports"),
        link[:-1] + "x",
        link + "&link=x",
    ]
    for other in changed:
        assert (await stand.client.get(other)).status_code == 401, other
    assert (await stand.client.post(link)).status_code == 401
    for refused in ("/api/keys", "/api/scrapers", "/api/jobs/x/pause", "/api/nowhere"):
        response = await stand.client.post("/api/links", json={"path": refused}, headers=bearer(secret))
        assert response.status_code == 400
    await stand.gateway.keys.revoke(key_id)
    assert (await stand.client.get(link)).status_code == 401


async def test_no_file_has_a_secret(stand: Stand, secrets: dict[str, str | None], folder: Path) -> None:
    assert len(await stand.store.api_keys.all()) >= len(Role)
    found = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.name.startswith("runs.sqlite") for file in found)
    for file in found:
        content = file.read_bytes()
        assert not any(secret.encode() in content for secret in filter(None, secrets.values())), file
