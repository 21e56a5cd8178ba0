"""`/api/graphql`: what the HTTP API answers, in one query; the same permissions; bounded; job events live."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from graphql import build_client_schema, get_introspection_query, parse, validate

from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.graphql.operations import MOST_CALLS
from scrapeyard.model.identity import Role
from scrapeyard.settings import AuthSettings, Settings
from tests.integration.gateway_stand import Stand, open_stand

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATH = "/api/graphql"
RESULT = b'{"title":"Tea","price":1.50}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    settings = Settings(auth=AuthSettings(mode="on"))
    async with open_stand(tmp_path_factory.mktemp("graphql"), settings) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keys(stand: Stand) -> dict[str, str]:
    """The secret of an admin, and of two clients."""
    made = {}
    for name, role in (("admin", Role.ADMIN), ("one", Role.CLIENT), ("two", Role.CLIENT)):
        call = KeyCall.model_validate({"name": name, "role": role})
        _, made[name] = await stand.gateway.keys.create(call.draft(time.time()))
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def job(stand: Stand, keys: dict[str, str]) -> str:
    """A job of the first client, of three items, none of which ever runs."""
    call = {"scraper": "shop/product", "items": [f"https://a.example/{n}" for n in range(3)], "paused": True}
    made = await stand.client.post("/api/jobs", json=call, headers=bearer(keys["one"]))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def ask(stand: Stand, secret: str, query: str, **variables: Any) -> dict[str, Any]:
    body = {"query": query, "variables": variables}
    answered = await stand.client.post(PATH, json=body, headers=bearer(secret))
    assert answered.status_code == 200, answered.text
    told: dict[str, Any] = answered.json()
    return told


async def test_one_query_answers_what_several_calls_do(stand: Stand, keys: dict[str, str], job: str) -> None:
    query = """query ($job: String!) {
      job(job_id: $job) { id status counts { total pending } items(limit: 2) { items { number input } next_cursor } }
      jobs(status: [paused], limit: 1) { jobs { id } }
      scrapers { scrapers { id version } }
      schedules { schedules { id } }
    }"""
    told = await ask(stand, keys["one"], query, job=job)
    assert "errors" not in told
    data, head = told["data"], bearer(keys["one"])
    plain = (await stand.client.get(f"/api/jobs/{job}", headers=head)).json()
    items = (await stand.client.get(f"/api/jobs/{job}/items", params={"limit": 2}, headers=head)).json()
    assert data["job"]["status"] == plain["status"] == "paused"
    assert data["job"]["counts"] == {"total": 3, "pending": 3}
    assert data["job"]["items"]["items"] == [{key: item[key] for key in ("number", "input")} for item in items["items"]]
    assert data["job"]["items"]["next_cursor"] == items["next_cursor"]
    assert data["jobs"]["jobs"] == [{"id": job}]
    assert {"id": "shop/product", "version": "1.4.2"} in data["scrapers"]["scrapers"]


async def test_a_cursor_leads_to_the_next_page(stand: Stand, keys: dict[str, str], job: str) -> None:
    query = """query ($job: String!, $at: String) {
      job(job_id: $job) { items(limit: 2, cursor: $at) { items { number } next_cursor } }
    }"""
    seen, cursor = [], None
    while True:
        page = (await ask(stand, keys["one"], query, job=job, at=cursor))["data"]["job"]["items"]
        seen += [item["number"] for item in page["items"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert seen == [0, 1, 2]


async def test_a_run_is_answered_with_its_result(stand: Stand, keys: dict[str, str]) -> None:
    call = {"scraper": "shop/product", "input": {"url": "https://a.example"}, "wait": 0}
    made = (await stand.client.post("/api/scrape", json=call, headers=bearer(keys["one"]))).json()
    await stand.finish(await stand.take())
    query = (
        "query ($run: String!) { run(run_id: $run) { exit_reason result usage { wall_ms } logs { lines { text } } } }"
    )
    told = await ask(stand, keys["one"], query, run=made["id"])
    assert told["data"]["run"] == {
        "exit_reason": "succeeded",
        "result": json.loads(RESULT),
        "usage": {"wall_ms": 12.5},
        "logs": {"lines": []},
    }


async def test_a_client_sees_nothing_of_another(stand: Stand, keys: dict[str, str], job: str) -> None:
    query = "query ($job: String!) { jobs { jobs { id } } job(job_id: $job) { id } }"
    told = await ask(stand, keys["two"], query, job=job)
    assert told["data"] == {"jobs": {"jobs": []}, "job": None}
    (error,) = told["errors"]
    assert (error["path"], error["extensions"]["code"], error["extensions"]["status"]) == (["job"], "not_found", 404)


async def test_a_field_asks_for_the_permission_of_its_operation(stand: Stand, keys: dict[str, str]) -> None:
    query = "{ sites { sites { site } } scrapers { scrapers { id } } }"
    refused = await ask(stand, keys["one"], query)
    (error,) = refused["errors"]
    assert (error["path"], error["extensions"]["code"]) == (["sites"], "forbidden")
    assert refused["data"]["scrapers"]["scrapers"]
    assert "errors" not in await ask(stand, keys["admin"], query)


async def test_nobody_is_answered_without_a_key_and_nothing_is_written_to_the_audit(
    stand: Stand, keys: dict[str, str]
) -> None:
    assert (await stand.client.post(PATH, json={"query": "{ runs { next_cursor } }"})).status_code == 401
    await ask(stand, keys["one"], "{ runs { next_cursor } }")
    audit = (await stand.client.get("/api/audit", headers=bearer(keys["admin"]))).json()
    assert not [entry for entry in audit["rows"] if entry["resource"] == PATH and entry["status"] == 200]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("{ runs { ", "Syntax Error"),
        ("{ nothing }", "nothing"),
        ("mutation { runs }", "mutation"),
        ("{ runs { runs { artifacts { " + "x " * 2000, "tokens"),
        ("{ runs { ...A } } fragment A on RunPage { ...B } fragment B on RunPage { ...A }", "itself"),
        ("query A { runs { next_cursor } } query B { jobs { next_cursor } }", "operationName"),
    ],
)
async def test_a_bad_query_is_refused_with_the_reason(
    stand: Stand, keys: dict[str, str], query: str, words: str
) -> None:
    told = await ask(stand, keys["admin"], query)
    assert "data" not in told
    assert words in told["errors"][0]["message"]
    strict = {**bearer(keys["admin"]), "Accept": "application/graphql-response+json"}
    assert (await stand.client.post(PATH, json={"query": query}, headers=strict)).status_code == 400


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"query": 1}', b'{"query": "{runs{next_cursor}}", "what": 1}', b'{"query": "\xff"}']
)
async def test_a_body_that_is_no_query_is_refused(stand: Stand, keys: dict[str, str], body: bytes) -> None:
    headers = {**bearer(keys["admin"]), "Content-Type": "application/json"}
    answered = await stand.client.post(PATH, content=body, headers=headers)
    assert answered.status_code in {400, 422}
    assert answered.json()["remedy"]


async def test_a_filter_that_the_operation_refuses_is_an_error_of_its_field(stand: Stand, keys: dict[str, str]) -> None:
    told = await ask(stand, keys["admin"], '{ runs(limit: 500) { next_cursor } run(run_id: "../keys") { id } }')
    codes = {error["path"][0]: error["extensions"]["code"] for error in told["errors"]}
    assert codes == {"runs": "invalid", "run": "not_found"}


async def test_every_field_that_is_refused_tells_why(stand: Stand, keys: dict[str, str]) -> None:
    many = " ".join(f'a{n}: run(run_id: "none{n}") {{ id }}' for n in range(30))
    told = await ask(stand, keys["one"], f"{{ {many} }}")
    assert {error["path"][0] for error in told["errors"]} == set(told["data"])


async def test_a_query_may_not_ask_for_everything(
    stand: Stand, keys: dict[str, str], job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = " ".join(f"a{n}: runs {{ next_cursor }}" for n in range(MOST_CALLS + 1))
    told = await ask(stand, keys["admin"], f"{{ {many} }}")
    assert len(told["errors"]) == 1
    assert "too large" in told["errors"][0]["message"]
    assert told["errors"][0]["extensions"]["code"] == "bad_request"
    monkeypatch.setattr("scrapeyard.gateway.graphql.operations.MOST_VALUES", 5)
    rows = await ask(stand, keys["admin"], f'{{ job(job_id: "{job}") {{ items {{ items {{ number status }} }} }} }}')
    assert rows["data"]["job"] == {"items": None}
    assert "values" in rows["errors"][0]["message"]


async def test_fragments_that_spread_each_other_cost_no_more_than_their_text(
    stand: Stand, keys: dict[str, str]
) -> None:
    spread = " ".join(f"fragment F{n} on RunPage {{ ...F{n + 1} ...F{n + 1} }}" for n in range(60))
    query = f"{{ runs {{ ...F0 }} }} {spread} fragment F60 on RunPage {{ next_cursor }}"
    told = await asyncio.wait_for(ask(stand, keys["admin"], query), 60)
    assert "too large" in told["errors"][0]["message"]


async def test_a_query_has_a_depth(stand: Stand, keys: dict[str, str]) -> None:
    deep = "{ __schema { types { fields { type { " + "ofType { " * 20 + "name" + " }" * 20 + " } } } } }"
    told = await ask(stand, keys["admin"], deep)
    assert "data" not in told


async def test_tools_read_the_schema_and_check_queries_with_it(stand: Stand, keys: dict[str, str]) -> None:
    told = await ask(stand, keys["one"], get_introspection_query(input_value_deprecation=True))
    schema = build_client_schema(told["data"])
    assert not validate(schema, parse("{ dead_letters(limit: 3) { items { id error { message } } next_cursor } }"))
    assert validate(schema, parse("{ jobs { jobs { no_such_field } } }"))
    text = (await stand.client.get(f"{PATH}/schema", headers=bearer(keys["one"]))).text
    assert "type Job {" in text
    assert "job_events(" in text


async def test_get_answers_the_same(stand: Stand, keys: dict[str, str], job: str) -> None:
    params = {
        "query": "query ($job: String!) { job(job_id: $job) { id } }",
        "variables": json.dumps({"job": job}),
    }
    told = (await stand.client.get(PATH, params=params, headers=bearer(keys["one"]))).json()
    assert told == {"data": {"job": {"id": job}}}


async def test_the_words_stay_ours_whatever_dialect_is_asked_for(stand: Stand, keys: dict[str, str], job: str) -> None:
    headers = {**bearer(keys["one"]), "Prefer": "dialect=site"}
    body = {"query": "{ jobs { jobs { status } } }"}
    told = (await stand.client.post(PATH, json=body, headers=headers)).json()
    assert told == {"data": {"jobs": {"jobs": [{"status": "paused"}]}}}


async def test_job_events_are_told_until_the_job_ends(stand: Stand, keys: dict[str, str]) -> None:
    call = {"scraper": "shop/product", "items": ["https://b.example/1"]}
    made = (await stand.client.post("/api/jobs", json=call, headers=bearer(keys["two"]))).json()
    query = "subscription ($job: String!) { job_events(job_id: $job) { event id data } }"
    body = {"query": query, "variables": {"job": made["id"]}}
    plain = await stand.client.post(PATH, json=body, headers=bearer(keys["two"]))
    assert plain.status_code == 400
    assert "text/event-stream" in plain.json()["detail"]
    await stand.client.post(f"/api/jobs/{made['id']}/cancel", headers=bearer(keys["two"]))
    headers = {**bearer(keys["two"]), "Accept": "text/event-stream"}
    told = await stand.client.post(PATH, json=body, headers=headers)
    events = [json.loads(line[6:]) for line in told.text.splitlines() if line.startswith("data: {")]
    kinds = [event["data"]["job_events"]["event"] for event in events]
    assert "status" in kinds
    assert kinds[-1] == "end"
    assert told.text.endswith("event: complete\ndata:\n\n")
    other = {**bearer(keys["one"]), "Accept": "text/event-stream"}
    refused = await stand.client.post(PATH, json=body, headers=other)
    assert '"code":"not_found"' in refused.text
