"""`/api/proxies`: keeping pools, never showing secrets, and what is told of use and health."""

import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from scrapeyard.engines.budget.meters import Meters, day_of
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.proxies.stored import StoredPools, in_tiers
from scrapeyard.errors import FetchFailed, StoreUnavailable
from scrapeyard.settings import HttpSettings, ProxyPool, ProxySettings, Settings
from scrapeyard.store.ports.overrides import KeptPool
from scrapeyard.store.sql import SqlStore
from tests.integration.gateway_stand import open_stand
from tests.services.sqlite import migrated

SECRETS = ("hidden1", "hidden2", "hidden3")
LIST = {"urls": ["http://user:hidden1@proxy.example:8080", "socks5h://user:hidden2@other.example:1080"]}
VENDOR = {
    "kind": "brightdata",
    "proxy_class": "residential",
    "customer": "hl_1",
    "zone": "z1",
    "password": "hidden3",
    "rotation": "session",
}
OWN = ProxyPool(name="own", urls=["http://own.example:3128"])


async def test_a_pool_is_kept_shown_without_secrets_changed_and_removed(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with open_stand(tmp_path, Settings(proxies=ProxySettings(pools=(OWN,)))) as stand:
            made = await stand.client.put("/api/proxies/plain", json=LIST)
            assert made.status_code == 200, made.text
            assert made.json()["endpoints"] == ["proxy.example:8080", "other.example:1080"]
            assert (made.json()["source"], made.json()["exits"], made.json()["tier"]) == ("api", 2, 2)
            await stand.client.put("/api/proxies/home", json=VENDOR)
            shown = await stand.client.get("/api/proxies")
            assert [(pool["name"], pool["source"]) for pool in shown.json()["pools"]] == [
                ("own", "settings"),
                ("plain", "api"),
                ("home", "api"),
            ]
            gone = await stand.client.delete("/api/proxies/plain")
            assert [pool["name"] for pool in gone.json()["pools"]] == ["own", "home"]
            assert (await stand.client.delete("/api/proxies/plain")).status_code == 404
            told = made.text + shown.text + gone.text + repr(stand.gateway.proxies.pools.tiers)
    assert not any(secret in told + repr(logs) for secret in SECRETS)


async def test_what_is_secret_and_not_given_stays(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        await stand.client.put("/api/proxies/home", json=VENDOR)
        without = {name: value for name, value in VENDOR.items() if name != "password"}
        changed = await stand.client.put("/api/proxies/home", json={**without, "country": "de"})
        assert (changed.status_code, changed.json()["country"]) == (200, "de")
        assert "hidden3" in stand.gateway.proxies.pools.choose("home").url
        await stand.client.put("/api/proxies/plain", json=LIST)
        await stand.client.put("/api/proxies/plain", json={"rotation": "site"})
        assert "hidden" in stand.gateway.proxies.pools.choose("plain").url


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("none", LIST, "stands for no proxy"),
        ("Bad", LIST, "pattern"),
        ("p", {}, "set urls"),
        ("p", {"urls": []}, "at least 1"),
        ("p", {"urls": ["ftp://user:hidden1@h:1"]}, "urls.0: 'ftp' is not known"),
        ("p", {"urls": ["http://user:hidden1@h"]}, "host:port"),
        ("p", {**VENDOR, "password": ""}, "set customer, zone and password"),
        ("p", {**VENDOR, "zone": "a-session-b"}, "pattern"),
        ("p", {**VENDOR, "host": "x"}, "host:port"),
        ("p", {**LIST, "colour": "red"}, "unknown field"),
        ("p", {**LIST, "cooldown_seconds": 0}, "greater than 0"),
    ],
)
async def test_what_is_not_valid_is_refused_and_not_repeated(
    tmp_path: Path, name: str, body: dict[str, Any], words: str
) -> None:
    async with open_stand(tmp_path) as stand:
        response = await stand.client.put(f"/api/proxies/{name}", json=body)
        assert (response.status_code, response.json()["code"]) == (422, "invalid")
        assert words in response.text
        assert not any(secret in response.text for secret in SECRETS)
        assert (await stand.client.get("/api/proxies")).json()["pools"] == []


PRIVATE = [
    ({"urls": ["http://proxy.example:1", "socks5h://user:hidden1@10.1.2.3:1080"]}, "/body/urls/1"),
    ({"urls": ["http://169.254.169.254:80"]}, "/body/urls/0"),
    ({"urls": ["https://[::1]:3128"]}, "/body/urls/0"),
    ({"urls": ["http://localhost:3128"]}, "/body/urls/0"),
    ({"urls": ["http://127.1:3128"]}, "/body/urls/0"),
    ({**VENDOR, "host": "192.168.0.1:22225"}, "/body/host"),
]


@pytest.mark.parametrize(("body", "path"), PRIVATE)
async def test_a_private_address_is_refused_at_once(tmp_path: Path, body: dict[str, Any], path: str) -> None:
    async with open_stand(tmp_path) as stand:
        response = await stand.client.put("/api/proxies/p", json=body)
        assert (response.status_code, response.json()["code"]) == (422, "invalid")
        assert [error["path"] for error in response.json()["errors"]] == [path]
        assert not any(secret in response.text for secret in SECRETS)
        assert (await stand.client.get("/api/proxies")).json()["pools"] == []


async def test_a_private_address_that_may_be_fetched_is_taken(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings(http=HttpSettings(allow_hosts=("10.0.0.0/8", "localhost")))) as stand:
        for url in ("http://10.1.2.3:3128", "http://localhost:3128"):
            assert (await stand.client.put("/api/proxies/p", json={"urls": [url]})).status_code == 200
        assert (await stand.client.put("/api/proxies/p", json={"urls": ["http://127.0.0.1:1"]})).status_code == 422


async def test_the_settings_pools_cannot_be_changed_here(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings(proxies=ProxySettings(pools=(OWN,)))) as stand:
        for response in (
            await stand.client.put("/api/proxies/own", json=LIST),
            await stand.client.delete("/api/proxies/own"),
        ):
            assert (response.status_code, response.json()["code"]) == (409, "conflict")


async def test_another_process_takes_what_is_kept_and_its_health_is_shown(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        pools = ProxyPools()
        worker = StoredPools(stand.store.proxies, (), pools, worker_id="worker_1")
        await worker.start()
        await stand.client.put("/api/proxies/plain", json=LIST)
        await worker.refresh()
        dead = pools.choose("plain")
        for _ in range(2):
            pools.report(dead, ok=False)
        await worker.refresh()
        (pool,) = (await stand.client.get("/api/proxies")).json()["pools"]
        assert pool["health"] == [{"worker": "worker_1", "exits": 2, "resting": 1, "names": [dead.name]}]
        await stand.client.delete("/api/proxies/plain")
        await worker.refresh()
        with pytest.raises(FetchFailed, match="no proxy pool"):
            pools.choose("plain")
        await worker.stop()
        await worker.stop()


async def test_use_is_shown_by_pool_class_and_site(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings(proxies=ProxySettings(pools=(OWN,)))) as stand:
        meters = Meters(stand.store.meters)
        meters.count(site="shop.example", pool="own", proxy_class="datacenter", size=100)
        meters.count(site="shop.example", pool="own", proxy_class="datacenter", size=5, requests=2, failures=1)
        meters.count(site="shop.example", size=7)
        await meters.flush()
        document = (await stand.client.get("/api/proxies")).json()
        wanted = {"requests": 3, "failures": 1, "bytes": 105}
        assert document["pools"][0]["today"] == document["pools"][0]["month"] == wanted
        assert document["by_class"] == [
            {"proxy_class": "datacenter", **wanted},
            {"proxy_class": "direct", "requests": 1, "failures": 0, "bytes": 7},
        ]
        site = (await stand.client.get("/api/sites/shop.example")).json()
        assert site["more"]["received"] == {
            "datacenter": wanted,
            "direct": {"requests": 1, "failures": 0, "bytes": 7},
        }


async def test_a_store_that_is_away_leaves_what_is_known_in_force(tmp_path: Path) -> None:
    store = SqlStore(migrated(tmp_path / "pools.db"))
    await store.start()
    pools = ProxyPools()
    kept = StoredPools(store.proxies, (), pools)
    await kept.put(ProxyPool(name="plain", urls=["http://h.example:1"]))
    await store.stop()
    with capture_logs() as logs:
        await kept.refresh()
        await kept.refresh()
    assert [line["event"] for line in logs] == ["proxies.pools_unknown"]
    assert pools.choose("plain").name == "plain/h.example:1"
    with pytest.raises(StoreUnavailable):
        await kept.put(ProxyPool(name="other", urls=["http://h.example:1"]))
    assert [pool.name for pool in pools.tiers] == ["plain"]


@pytest.mark.parametrize("definition", [b"", b"[]", b'{"name":"odd","urls":["x://hidden1"]}', b'{"of":"tomorrow"}'])
async def test_a_definition_that_cannot_be_read_is_left_out(tmp_path: Path, definition: bytes) -> None:
    store = SqlStore(migrated(tmp_path / "pools.db"))
    await store.start()
    pools = ProxyPools()
    kept = StoredPools(store.proxies, (), pools)
    await store.proxies.put_pool(KeptPool(name="odd", definition=definition, changed_at=time.time()))
    await store.proxies.put_pool(
        KeptPool(name="good", definition=b'{"name":"good","urls":["http://h:1"]}', changed_at=1)
    )
    with capture_logs() as logs:
        await kept.refresh()
    assert [pool.name for pool in pools.tiers] == ["good"]
    assert [line["event"] for line in logs] == ["proxies.pool_unreadable"]
    assert "hidden1" not in repr(logs)
    await store.stop()


def test_kept_pools_stand_behind_the_last_that_is_no_dearer() -> None:
    def pool(name: str, proxy_class: str) -> ProxyPool:
        return ProxyPool(name=name, proxy_class=proxy_class, urls=["http://h:1"])

    own = [pool("a", "datacenter"), pool("b", "residential"), pool("c", "unlocker")]
    kept = [pool("d", "datacenter"), pool("e", "unlocker"), pool("f", "residential")]
    assert [each.name for each in in_tiers(own, kept)] == ["a", "d", "b", "f", "c", "e"]
    assert [each.name for each in in_tiers(own[1:], kept[:1])] == ["d", "b", "c"]
    assert [each.name for each in in_tiers([], kept)] == ["d", "f", "e"]


def test_a_day_is_a_day_in_utc() -> None:
    assert (day_of(0), day_of(86_399.9), day_of(86_400)) == ("1970-01-01", "1970-01-01", "1970-01-02")
