"""Which site a host belongs to."""

from pathlib import Path

import pytest
from publicsuffixlist import PSLFILE, PublicSuffixList

from scrapeyard.engines.http.site import Sites
from scrapeyard.errors import SettingsInvalid


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("shop.example", "shop.example"),
        ("www.shop.example", "shop.example"),
        ("a.b.c.shop.co.uk", "shop.co.uk"),
        ("WWW.Shop.Example.", "shop.example"),
        ("ann.github.io", "ann.github.io"),
        ("www.ann.github.io", "ann.github.io"),
        ("github.io", "github.io"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("intranet", "intranet"),
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("www.xn--9t4b11yi5a.xn--3e0b707e", "xn--9t4b11yi5a.xn--3e0b707e"),
        ("", ""),
    ],
)
def test_a_site_is_a_registrable_domain(host: str, site: str) -> None:
    assert Sites().of(host) == site


def test_hosts_below_a_named_domain_are_sites_by_themselves() -> None:
    sites = Sites(("cdn.example", "*.shop.example"))
    assert sites.of("a.cdn.example") == "a.cdn.example"
    assert sites.of("b.a.cdn.example") == "b.a.cdn.example"
    assert sites.of("cdn.example") == "cdn.example"
    assert sites.of("eu.shop.example") == "eu.shop.example"
    assert sites.of("notcdn.example") == "notcdn.example"
    assert sites.of("www.other.example") == "other.example"


def test_a_setting_that_is_no_domain_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match="whole_hosts"):
        Sites(("not a domain",))


def test_the_list_is_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Sites().of("www.shop.example") == "shop.example"
    monkeypatch.delattr("scrapeyard.engines.http.site.PublicSuffixList")
    assert Sites(("cdn.example",)).of("img.shop.example") == "shop.example"


def test_every_rule_of_the_list_counts_as_the_library_reads_it() -> None:
    whole, sites = PublicSuffixList(), Sites()
    rules = [line.split()[0] for line in Path(PSLFILE).read_text("utf-8").splitlines() if line[:2].strip("/ ")]
    assert len(rules) > 9_000
    for rule in rules:
        host = "a.b." + rule.strip("!*.").encode("idna").decode()
        assert sites.of(host) == (whole.privatesuffix(host) or host)


def test_answers_are_remembered_within_bounds() -> None:
    sites = Sites()
    for number in range(20_000):
        sites.of(f"h{number}.shop.example")
    assert sites.of.cache_info().currsize <= 16_384
