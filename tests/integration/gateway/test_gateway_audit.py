"""The audit at the gateway's door: changes with who, where and what; refusals; floods; nothing secret."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Scope

from scrapeyard.gateway.audit import log as audit_log
from scrapeyard.gateway.audit.addresses import CallerAddresses
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.model.audit import AuditEntry
from scrapeyard.model.identity import Identity, Role
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import Stand, open_stand

ADMIN = {"X-API-Key": "admin"}
POOL = {"urls": ["http://user:hidden1@proxy.example:8080"]}


class Names:
    """Credentials for the test: the key is the name of a role."""

    in_use = True

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        if token is None:
            return None
        if token not in list(Role):
            raise unauthenticated("no such key")
        return Identity(client=f"{token}-1", role=Role(token), key_id=f"k-{token}")


async def rows(stand: Stand, **where: Any) -> Sequence[dict[str, Any]]:
    """The audit in the order in which it was written."""
    answer = await stand.client.get("/api/audit", params=where, headers=ADMIN)
    assert answer.status_code == 200, answer.text
    return list(reversed(answer.json()["rows"]))


async def test_a_change_is_written_before_its_answer_with_who_where_and_what(tmp_path: Path) -> None:
    settings = Settings(gateway=GatewaySettings(trusted_proxies=["127.0.0.1"]))
    async with open_stand(tmp_path, settings) as stand:
        stand.gateway.authenticator._kinds = (Names(),)
        client = stand.client
        far = {"X-API-Key": "operator", "X-Forwarded-For": "6.6.6.6, 203.0.113.9", "X-Request-Id": "mine-1"}
        first = await client.put("/api/sites/shop.example", json={"rate": 2.0}, headers=far)
        assert first.headers["x-request-id"] == "mine-1"
        (row,) = await rows(stand)
        assert {
            name: row[name] for name in ("client", "role", "key_id", "address", "action", "resource", "status")
        } == {
            "client": "operator-1",
            "role": "operator",
            "key_id": "k-operator",
            "address": "203.0.113.9",
            "action": "put_site",
            "resource": "/api/sites/shop.example",
            "status": 200,
        }
        assert (row["request_id"], row["before"], row["after"]["rate"], row["code"]) == ("mine-1", None, 2.0, "")
        await client.put("/api/sites/shop.example", json={"rate": 3.0}, headers=ADMIN)
        await client.delete("/api/sites/shop.example", headers=ADMIN)
        changes = [(row["before"], row["after"]) for row in (await rows(stand))[1:]]
        assert [(before["rate"], after and after["rate"]) for before, after in changes] == [(2.0, 3.0), (3.0, None)]
        check = await stand.store.audit.verify()
        assert (check.rows, check.fault) == (3, None)


async def test_refused_calls_are_written_and_reads_and_use_are_not(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (Names(),)
        stand.gateway.audit._clock = lambda: 0.0  # no window ends, however long the calls take
        client, viewer = stand.client, {"X-API-Key": "viewer"}
        await client.get("/api/jobs", headers=ADMIN)
        made = await client.post(
            "/api/scrape",
            json={"scraper": "shop/product", "input": {"url": "http://a.example"}, "wait": 0},
            headers=ADMIN,
        )
        assert made.status_code == 202
        assert (await client.get("/api/jobs")).status_code == 401
        assert (await client.get("/api/jobs", headers={"X-API-Key": "sy_wrong"})).status_code == 401
        assert (await client.put("/api/sites/a.example", json={"rate": 1.0}, headers=viewer)).status_code == 403
        assert (await client.head("/api/audit", headers=viewer)).status_code == 403
        assert (await client.post("/jobs/none/cancel/", headers=ADMIN)).status_code == 404
        assert (await client.get("/api/jobs", headers={**ADMIN, "Host": "evil.example"})).status_code == 421
        foreign = {**ADMIN, "Origin": "http://evil.example"}
        assert (await client.post("/api/cache/invalidate", json={"all": True}, headers=foreign)).status_code == 403
        assert (await client.post("/api/nothing", headers=ADMIN)).status_code == 404
        await stand.gateway.audit._flush()
        told = [(row["client"], row["action"], row["status"], row["code"]) for row in await rows(stand, refused="true")]
        assert told == [
            ("", "list_jobs", 401, "unauthenticated"),
            ("viewer-1", "put_site", 403, "forbidden"),
            ("viewer-1", "list_audit", 403, "403"),  # HEAD has no body to tell the code
            ("admin-1", "cancel_job", 404, "not_found"),
            ("", "list_jobs", 421, "host_refused"),
            ("", "invalidate_cache", 403, "origin_refused"),
        ]
        assert await rows(stand, refused="false") == []


async def test_a_flood_of_refusals_becomes_few_rows_that_count_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_KINDS", 3)
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (Names(),)
        stand.gateway.audit._clock = lambda: 0.0  # no window ends before all calls are made
        for path in ("/api/jobs", "/api/scrape", "/api/workers", "/api/sites", "/api/cache"):
            for _ in range(20):
                await stand.client.get(path)
        stand.gateway.audit._close_windows(everything=True)
        await stand.gateway.audit._flush()
        told = [(row["action"], row["count"]) for row in await rows(stand)]
        assert sum(count for _, count in told) == 100
        assert len(told) == 8, told


async def test_no_secret_reaches_the_audit(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        await stand.client.put("/api/proxies/home", json=POOL)
        await stand.client.put("/api/proxies/home", json={"rotation": "site"})
        await stand.client.delete("/api/proxies/home")
        made = await stand.client.post(
            "/api/schedule", json={"every_seconds": 60, "scrape": {"url": "http://user:hidden2@shop.example/"}}
        )
        assert made.status_code == 201, made.text
        await stand.client.patch(made.json()["links"]["self"], json={"paused": True})
        found = await rows(stand)
        assert [row["action"] for row in found] == [
            *("put_proxies", "put_proxies", "remove_proxies", "create_schedule", "change_schedule"),
        ]
        assert [row["after"] and row["after"].get("rotation") for row in found[:3]] == ["request", "site", None]
        assert (found[4]["before"]["paused"], found[4]["after"]["paused"]) == (False, True)
        assert "hidden" not in json.dumps(found)


async def test_an_entry_is_written_once_when_two_flushes_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (Names(),)
        append, began, gate = stand.store.audit.append, asyncio.Event(), asyncio.Event()

        async def slow(entries: Sequence[AuditEntry]) -> None:
            began.set()
            await gate.wait()
            await append(entries)

        monkeypatch.setattr(stand.store.audit, "append", slow)
        assert (await stand.client.get("/api/jobs")).status_code == 401
        await began.wait()  # the background writes
        again = asyncio.create_task(stand.gateway.audit._flush())
        await asyncio.sleep(0)
        gate.set()
        await again
        assert [row["action"] for row in await rows(stand)] == ["list_jobs"]


async def test_the_audit_survives_a_database_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "PATIENCE_SECONDS", 0.2)
    async with open_stand(tmp_path) as stand:
        append = stand.store.audit.append

        async def away(_: object) -> None:
            from scrapeyard.errors import StoreUnavailable

            raise StoreUnavailable("away")

        monkeypatch.setattr(stand.store.audit, "append", away)
        assert (await stand.client.put("/api/sites/a.example", json={"rate": 1.0})).status_code == 200
        assert await rows(stand) == []
        monkeypatch.setattr(stand.store.audit, "append", append)
        assert (await stand.client.put("/api/sites/b.example", json={"rate": 1.0})).status_code == 200
        await stand.gateway.audit._flush()
        assert [row["resource"] for row in await rows(stand)] == ["/api/sites/a.example", "/api/sites/b.example"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("10.0.0.1", "1.2.3.4, 10.0.0.9", "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.9", "1.2.3.4"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "1.2.3.4:5678", "1.2.3.4"),
        ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
        ("::ffff:10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("9.9.9.9", "1.2.3.4", "9.9.9.9"),
        ("", "1.2.3.4", ""),
    ],
)
def test_only_a_trusted_proxy_tells_where_a_call_comes_from(peer: str, forwarded: str, address: str) -> None:
    scope = {"client": (peer, 1), "headers": [(b"x-forwarded-for", forwarded.encode())]}
    assert CallerAddresses(["10.0.0.0/8"]).of(scope) == address
    assert CallerAddresses([]).of(scope) == peer.removeprefix("::ffff:")
