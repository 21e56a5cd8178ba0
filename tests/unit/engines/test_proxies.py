"""Which exit serves: turns, keys, places, rests. Time is moved by hand."""

from collections import Counter
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from structlog.testing import capture_logs

from scrapeyard.engines.port import Proxy
from scrapeyard.engines.proxies.pool import LONGEST_SECONDS, ExitHealth
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.model.fetching import read_proxy_url
from scrapeyard.settings import ProxyPool, ProxySettings


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def listed(name: str = "plain", count: int = 3, **more: Any) -> ProxyPool:
    urls = [f"http://user:pass{n}@10.0.0.{n}:8080" for n in range(1, count + 1)]
    return ProxyPool(name=name, urls=urls, **more)


def vendor(name: str = "home", **more: Any) -> ProxyPool:
    fields = {"proxy_class": "residential", "customer": "hl_12ab", "zone": "zone1", "password": "s3cret/:@"}
    return ProxyPool(name=name, kind="brightdata", **{**fields, **more})


def every(pools: ProxyPools, name: str = "plain") -> list[Proxy]:
    """All exits of a list, by name."""
    chosen = {proxy.name: proxy for proxy in (pools.choose(name) for _ in range(20))}
    return [chosen[name] for name in sorted(chosen)]


def user(url: str) -> str:
    return unquote(urlsplit(url).username or "")


class TestTurns:
    def test_requests_spread_evenly_over_a_list(self) -> None:
        pools = ProxyPools([listed()])
        chosen = Counter(pools.choose("plain").name for _ in range(300))
        assert chosen == dict.fromkeys(("plain/10.0.0.1:8080", "plain/10.0.0.2:8080", "plain/10.0.0.3:8080"), 100)

    def test_requests_spread_evenly_over_a_vendors_exits(self) -> None:
        pools = ProxyPools([vendor(exits=4)])
        chosen = Counter(user(pools.choose("home").url) for _ in range(40))
        assert sorted(chosen.values()) == [10, 10, 10, 10]

    def test_two_with_one_address_are_told_apart(self) -> None:
        pool = ProxyPool(name="p", urls=["socks5://a:1@h.example:1080", "socks5://b:2@h.example:1080"])
        pools = ProxyPools([pool])
        assert {pools.choose("p").name for _ in range(2)} == {"p/h.example:1080", "p/h.example:1080~2"}


class TestKeys:
    @pytest.mark.parametrize("make", [listed, vendor])
    def test_a_session_stays_at_its_exit_in_every_process(self, make: Any) -> None:
        pool = make(rotation="session")
        here, there = ProxyPools([pool]), ProxyPools([pool])
        for session in map(str, range(50)):
            wanted = here.choose(pool.name, session=session, site="a.example")
            assert wanted == here.choose(pool.name, session=session, site="b.example")
            assert wanted == there.choose(pool.name, session=session)
        assert len({here.choose(pool.name, session=str(n)).url for n in range(50)}) > 1

    def test_without_a_session_exits_take_turns(self) -> None:
        pools = ProxyPools([listed(rotation="session")])
        assert len({pools.choose("plain", site="a.example").name for _ in range(3)}) == 3

    def test_a_site_stays_at_its_exit(self) -> None:
        pools = ProxyPools([listed(rotation="site")])
        assert len({pools.choose("plain", site="a.example", session=str(n)).name for n in range(20)}) == 1

    @pytest.mark.parametrize("at", ["10.0.0.{n}:8080", "gate.example:8080"], ids=["own-address", "one-address"])
    @pytest.mark.parametrize("count", [2, 3, 20])
    def test_an_exit_that_goes_takes_only_its_own_keys_along(self, count: int, at: str) -> None:
        urls = [f"http://user{n}:pass@{at.format(n=n)}" for n in range(count)]
        before = ProxyPools([ProxyPool(name="plain", urls=urls, rotation="site")])
        for lost in urls:
            left = [url for url in urls if url != lost]
            after = ProxyPools([ProxyPool(name="plain", urls=left, rotation="site")])
            for n in range(30):
                was, now = (pools.choose("plain", site=f"s{n}").url for pools in (before, after))
                assert was in (lost, now)

    def test_the_vendor_is_not_told_names(self) -> None:
        pools = ProxyPools([vendor(rotation="session")])
        assert "basket-7" not in pools.choose("home", session="basket-7").url


class TestPlaces:
    def test_bright_data_is_told_by_the_user_name(self) -> None:
        proxy = ProxyPools([vendor(rotation="session")]).choose(
            "home", session="a", country="US", state="NY", city="New York"
        )
        address = read_proxy_url(proxy.url)
        name, _, session = address.user.partition("-session-")
        assert name == "brd-customer-hl_12ab-zone-zone1-country-us-state-ny-city-newyork"
        assert session.isalnum()
        assert (address.endpoint, address.password) == ("brd.superproxy.io:33335", "s3cret/:@")
        assert (address.scheme, proxy.proxy_class) == ("http", "residential")

    def test_a_place_cannot_say_more_than_a_place(self) -> None:
        proxy = ProxyPools([vendor()]).choose("home", country="u-s", city="x-session-1-ip-9.9.9.9")
        assert user(proxy.url).startswith("brd-customer-hl_12ab-zone-zone1-country-us-city-xsession1ip9999-session-")

    def test_a_datacenter_zone_takes_the_country_and_warns_once_of_the_rest(self) -> None:
        pools = ProxyPools([vendor(proxy_class="datacenter"), vendor("other")])
        with capture_logs() as logs:
            for _ in range(3):
                proxy = pools.choose("home", country="us", state="ny", city="albany")
            pools.choose("other", country="us", state="ny")
        assert "-country-us-session-" in user(proxy.url)
        assert [(line["event"], line["pool"]) for line in logs] == [("proxies.place_ignored", "home")]

    def test_an_exit_tells_where_it_is(self) -> None:
        pools = ProxyPools([vendor(), listed(country="KR"), listed("other")])
        assert pools.choose("home", country="US").country == "us"
        assert pools.choose("plain", country="us").country == "kr", "a list is where it is"
        assert pools.choose("other").country == ""

    def test_the_country_of_the_pool_serves_until_a_policy_names_another(self) -> None:
        pools = ProxyPools([vendor(country="DE")])
        assert "-country-de-" in user(pools.choose("home").url)
        assert "-country-fr-city-paris-" in user(pools.choose("home", country="fr", city="Paris").url)

    def test_a_city_without_a_country_is_left_out_with_a_warning(self) -> None:
        with capture_logs() as logs:
            proxy = ProxyPools([vendor()]).choose("home", city="paris")
        assert "city" not in user(proxy.url)
        assert "needs a country" in logs[0]["why"]

    @pytest.mark.parametrize(("country", "warns"), [("de", False), ("", False), ("us", True)])
    def test_a_list_is_where_it_is(self, country: str, warns: bool) -> None:
        with capture_logs() as logs:
            ProxyPools([listed(country="DE")]).choose("plain", country=country)
        assert bool(logs) is warns


class TestRests:
    def test_one_that_failed_twice_rests_and_comes_back(self) -> None:
        clock = Clock()
        pools = ProxyPools([listed(count=2, cooldown_seconds=60)], clock=clock)
        dead, alive = every(pools)
        pools.report(dead, ok=False)
        assert dead.name in {pools.choose("plain").name for _ in range(2)}
        with capture_logs() as logs:
            pools.report(dead, ok=False)
        assert (logs[0]["event"], logs[0]["seconds"]) == ("proxies.rests", 60)
        assert {pools.choose("plain").name for _ in range(4)} == {alive.name}
        assert pools.standing() == {"plain": (2, [dead.name])}
        clock.now += 60
        assert dead.name in {pools.choose("plain").name for _ in range(2)}
        pools.report(dead, ok=True)
        assert pools.standing() == {"plain": (2, [])}

    def test_a_key_goes_to_another_exit_while_its_own_rests(self) -> None:
        clock = Clock()
        pools = ProxyPools([listed(rotation="site")], clock=clock)
        own = pools.choose("plain", site="a.example")
        for _ in range(2):
            pools.report(own, ok=False)
        other = pools.choose("plain", site="a.example")
        assert other.name != own.name
        assert pools.choose("plain", site="a.example") == other
        clock.now += 60
        assert pools.choose("plain", site="a.example") == own

    def test_a_vendors_exit_is_replaced_at_once(self) -> None:
        pools = ProxyPools([vendor(rotation="session")])
        own = pools.choose("home", session="a")
        for _ in range(2):
            pools.report(own, ok=False)
        assert pools.choose("home", session="a").url != own.url
        assert pools.choose("home", session="a") == pools.choose("home", session="a")

    def test_when_all_rest_the_one_that_rests_shortest_serves(self) -> None:
        clock = Clock()
        pools = ProxyPools([listed()], clock=clock)
        for proxy in every(pools):
            pools.report(proxy, ok=False)
            pools.report(proxy, ok=False)
            clock.now += 1
        assert {pools.choose("plain").name for _ in range(5)} == {"plain/10.0.0.1:8080"}

    def test_rests_double_up_to_an_hour_and_a_success_begins_anew(self) -> None:
        clock = Clock()
        health = ExitHealth(600, clock)
        lengths = [health.bad("x"), health.bad("x"), health.bad("x")]
        for _ in range(4):
            clock.now = health.rests_until("x")
            lengths.append(health.bad("x"))
        assert lengths == [0, 600, 0, 1200, 2400, LONGEST_SECONDS, LONGEST_SECONDS]
        assert health.good("x")
        assert [health.bad("x"), health.bad("x")] == [0, 600]

    def test_a_failure_between_successes_means_nothing(self) -> None:
        pools = ProxyPools([listed(count=1)])
        proxy = pools.choose("plain")
        for ok in (False, True, False, None, True, False):
            pools.report(proxy, ok=ok)
        assert pools.standing() == {"plain": (1, [])}

    def test_what_is_remembered_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("scrapeyard.engines.proxies.pool.KEPT", 5)
        health = ExitHealth(60, Clock())
        for n in range(10):
            health.bad(str(n))
            health.bad(str(n))
        assert health.resting() == ["5", "6", "7", "8", "9"]


class TestChanges:
    def test_a_pool_that_stays_keeps_what_was_learnt(self) -> None:
        pools = ProxyPools([listed(count=1)])
        proxy = pools.choose("plain")
        for _ in range(2):
            pools.report(proxy, ok=False)
        pools.adopt([listed(count=1), vendor()])
        assert pools.standing()["plain"] == (1, ["plain/10.0.0.1:8080"])
        pools.adopt([listed(count=1, cooldown_seconds=5)])
        assert pools.standing() == {"plain": (1, [])}

    def test_a_pool_that_is_gone_is_not_chosen_and_not_missed(self) -> None:
        pools = ProxyPools([listed()])
        proxy = pools.choose("plain")
        pools.adopt([vendor()])
        pools.report(proxy, ok=False)
        with pytest.raises(FetchFailed, match="known are: home") as failed:
            pools.choose("plain")
        assert failed.value.reason is ExitReason.FETCH_PROXY


class TestDefinitions:
    def test_secrets_hide(self) -> None:
        pools = ProxyPools([vendor(), listed()])
        shown = repr([*pools.tiers, pools.choose("home"), pools.choose("plain"), read_proxy_url("http://a:pw@h:1")])
        assert not any(secret in shown for secret in ("s3cret", "pass1", "pass2", "pass3", "pw"))

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "ftp://h:1",
            "h:1",
            "http://h",
            "http://h:0",
            "http://h:65536",
            "http://h:x",
            "http://:80",
            "http://h:80/path",
            "http://h:80?q=1",
            "http://h:80#f",
            "http://h h:80",
            "http://h\n:80",
            "http://[::1:80",
            "http://" + "h" * 3000 + ":80",
        ],
    )
    def test_what_is_no_proxy_is_refused_without_being_told(self, url: str) -> None:
        secret = url.replace("://", "://user:hidden@")
        with pytest.raises(ValidationError) as refused:
            ProxyPool(name="p", urls=[secret])
        assert refused.value.errors()[0]["msg"].startswith("Value error, urls.0: ")
        assert "hidden" not in refused.value.errors()[0]["msg"]

    @pytest.mark.parametrize(
        "fields",
        [
            {"name": "none", "urls": ["http://h:1"]},
            {"name": "Bad", "urls": ["http://h:1"]},
            {"name": "p"},
            {"name": "p", "urls": ["http://h:1"], "zone": "z"},
            {"name": "p", "urls": ["http://h:1"], "country": "usa"},
            {"name": "p", "urls": ["http://h:1"] * 10_001},
            {"name": "p", "kind": "brightdata", "customer": "c", "zone": "z"},
            {"name": "p", "kind": "brightdata", "customer": "c-1", "zone": "z", "password": "x"},
            {"name": "p", "kind": "brightdata", "customer": "c", "zone": "z", "password": "x", "host": "a@b:1"},
            {"name": "p", "kind": "brightdata", "customer": "c", "zone": "z", "password": "x", "host": "h"},
            {"name": "p", "kind": "brightdata", "customer": "c", "zone": "z", "password": "x", "urls": ["http://h:1"]},
        ],
    )
    def test_a_pool_that_is_not_whole_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            ProxyPool(**fields)

    def test_two_pools_of_one_name_are_refused(self) -> None:
        with pytest.raises(ValidationError, match="two pools are called plain"):
            ProxySettings(pools=(listed(), listed()))

    @given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Z", "Cf", "Co", "Cn")), min_size=1, max_size=20))
    def test_credentials_come_back_as_they_were(self, text: str) -> None:
        address = read_proxy_url("socks5h://u:p@[::1]:1080")
        written = address.__class__(scheme="http", host="h", port=1, user=text, password=text)
        assert read_proxy_url(written.url) == written
        assert address.url == "socks5h://u:p@[::1]:1080"
