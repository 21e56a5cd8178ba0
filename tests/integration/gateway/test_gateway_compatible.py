"""Compatible doors: whatever the API asks of its callers holds at every door, told in the door's own shape."""

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
from scrapeyard.settings import GatewaySettings, Settings
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
    async with open_stand(tmp_path, Settings(gateway=GatewaySettings(max_body_mb=0.1))) as opened:
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


async def test_a_door_that_is_not_open_is_no_path(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings(gateway=GatewaySettings(doors=()))) as stand:
        for work in WORK:
            answer = await stand.client.post(work.path, json=work.body)
            assert (answer.status_code, answer.json()["code"]) == (404, "no_such_path")
    with pytest.raises(ValueError, match="doors"):
        GatewaySettings(doors=("window",))
