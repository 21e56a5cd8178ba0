"""`/api/forget`: for admins alone, audited by a hash."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post

URL = "https://shop.example/person/quagga-5531"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def test_a_url_is_forgotten_and_the_audit_keeps_its_hash_alone(stand: Stand) -> None:
    await post(stand.client, "/api/scrape", url=URL, wait=0)
    delivery = await stand.take()
    refused = await stand.client.post("/api/forget", json={"url": URL})
    assert refused.status_code == 409
    assert delivery.run_id in refused.json()["detail"]
    await stand.finish(delivery)
    dry = await post(stand.client, "/api/forget", url=URL, dry_run=True)
    assert (dry["counts"]["runs"], dry["dry_run"]) == (1, True)
    done = await post(stand.client, "/api/forget", url=URL)
    assert (done["counts"]["runs"], done["restoring"]) == (1, [])
    assert (await stand.client.get(f"/api/scrape/{delivery.run_id}")).status_code == 404
    audit = await stand.client.get("/api/audit")
    assert URL not in audit.text
    assert hashlib.sha256(URL.encode()).hexdigest() in audit.text


@pytest.mark.parametrize(
    "body", [{}, {"url": URL, "client": "a"}, {"url": "no url at all"}, {"site": "not a host!"}, {"client": ""}]
)
async def test_what_to_forget_must_be_told(stand: Stand, body: dict[str, str]) -> None:
    assert (await stand.client.post("/api/forget", json=body)).status_code in (400, 422)


async def test_nothing_about_it_is_no_error(stand: Stand) -> None:
    assert set((await post(stand.client, "/api/forget", site="nowhere.example"))["counts"].values()) == {0}
    assert (await get(stand.client, "/api/scrape"))["runs"] == []
