"""The guard and the strict reading of URLs: every spelling of a private address that we know of is refused."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.engines.http.guard import Guard, HostPatterns, Kind, kind_of
from scrapeyard.engines.http.url import MAX_URL, Address, join_target, parse_target, spell_url
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason

BAD_URL, PRIVATE = ExitReason.FETCH_BAD_URL, ExitReason.FETCH_PRIVATE_ADDRESS


def verdict(url: str, guard: Guard | None = None) -> ExitReason | None:
    """Why a URL with an address for a host is refused; None when it may be fetched."""
    try:
        target = parse_target(url)
        assert target.literal is not None, f"{url} was read as a name"
        (guard or Guard()).check(target.host, [target.literal])
    except FetchFailed as failure:
        return failure.reason
    return None


REFUSED = [
    ("http://127.0.0.1/", PRIVATE),
    ("http://127.0.0.1:8000/", PRIVATE),
    ("https://127.255.255.254/", PRIVATE),
    ("http://127.0.0.1./", PRIVATE),
    ("http://0.0.0.0/", PRIVATE),
    ("http://10.0.0.1/", PRIVATE),
    ("http://172.16.0.1/", PRIVATE),
    ("http://172.31.255.255/", PRIVATE),
    ("http://192.168.1.1/", PRIVATE),
    ("http://169.254.169.254/latest/meta-data/", PRIVATE),
    ("http://169.254.170.2/", PRIVATE),
    ("http://169.254.1.1/", PRIVATE),
    ("http://100.64.0.1/", PRIVATE),
    ("http://100.100.100.200/", PRIVATE),
    ("http://168.63.129.16/", PRIVATE),
    ("http://192.0.0.192/", PRIVATE),
    ("http://192.0.2.1/", PRIVATE),
    ("http://198.18.0.1/", PRIVATE),
    ("http://198.51.100.1/", PRIVATE),
    ("http://203.0.113.1/", PRIVATE),
    ("http://224.0.0.1/", PRIVATE),
    ("http://240.0.0.1/", PRIVATE),
    ("http://255.255.255.255/", PRIVATE),
    ("http://[::]/", PRIVATE),
    ("http://[::1]/", PRIVATE),
    ("http://[0:0:0:0:0:0:0:1]/", PRIVATE),
    ("http://[::ffff:127.0.0.1]/", PRIVATE),
    ("http://[::ffff:7f00:1]/", PRIVATE),
    ("http://[::ffff:a9fe:a9fe]/", PRIVATE),
    ("http://[::127.0.0.1]/", PRIVATE),
    ("http://[::8.8.8.8]/", PRIVATE),
    ("http://[::ffff:0:127.0.0.1]/", PRIVATE),
    ("http://[64:ff9b::127.0.0.1]/", PRIVATE),
    ("http://[64:ff9b::a9fe:a9fe]/", PRIVATE),
    ("http://[64:ff9b:1::1]/", PRIVATE),
    ("http://[2002:7f00:1::]/", PRIVATE),
    ("http://[2002:a9fe:a9fe::1]/", PRIVATE),
    ("http://[2001::1]/", PRIVATE),
    ("http://[2001:0:7f00:1::]/", PRIVATE),
    ("http://[2001:4860:4860::5efe:10.0.0.1]/", PRIVATE),
    ("http://[2001:db8::1]/", PRIVATE),
    ("http://[fe80::1]/", PRIVATE),
    ("http://[fec0::1]/", PRIVATE),
    ("http://[fc00::1]/", PRIVATE),
    ("http://[fd00:ec2::254]/", PRIVATE),
    ("http://[fd20:ce::254]/", PRIVATE),
    ("http://[ff02::1]/", PRIVATE),
    ("http://[100::1]/", PRIVATE),
    ("http://[4000::1]/", PRIVATE),
    ("http://\uff11\uff12\uff17.0.0.1/", PRIVATE),
    ("http://127。0。0。1/", PRIVATE),
    ("http://①②⑦.0.0.1/", PRIVATE),
    ("http://1\u00ad27.0.0.\u200b1/", PRIVATE),
    ("http://127.1/", BAD_URL),
    ("http://127.0.1/", BAD_URL),
    ("http://0177.0.0.1/", BAD_URL),
    ("http://0x7f.0.0.1/", BAD_URL),
    ("http://0x7f000001/", BAD_URL),
    ("http://0x/", BAD_URL),
    ("http://2130706433/", BAD_URL),
    ("http://017700000001/", BAD_URL),
    ("http://127.0.0.01/", BAD_URL),
    ("http://0/", BAD_URL),
    ("http://256.256.256.256/", BAD_URL),
    ("http://1.2.3.4.5/", BAD_URL),
    ("http://evil.example.0x7f/", BAD_URL),
    ("http://%31%32%37.0.0.1/", BAD_URL),
    ("http://127.0.0.1%00.example.com/", BAD_URL),
    ("http://[fe80::1%25eth0]/", BAD_URL),
    ("http://[fe80::1%eth0]/", BAD_URL),
    ("http://[127.0.0.1]/", BAD_URL),
    ("http://[::1/", BAD_URL),
    ("http://::1/", BAD_URL),
    ("http://user@127.0.0.1/", BAD_URL),
    ("http://example.com@127.0.0.1/", BAD_URL),
    ("http://example.com:80@127.0.0.1/", BAD_URL),
    ("http://127.0.0.1\\@example.com/", BAD_URL),
    ("http:\\\\127.0.0.1/", BAD_URL),
    ("http:/127.0.0.1/", BAD_URL),
    ("http:127.0.0.1", BAD_URL),
    ("//127.0.0.1/", BAD_URL),
    ("http://127.0.0.1:99999/", BAD_URL),
    ("http://127.0.0.1:0/", BAD_URL),
    ("http://127.0.0.1:\uff18\uff10/", BAD_URL),
    ("http://127.0.0.1\t/", BAD_URL),
    ("http://exam\nple.com/", BAD_URL),
    ("http://127.0.0.1 /", BAD_URL),
    ("http:///path", BAD_URL),
    ("http://", BAD_URL),
    ("", BAD_URL),
    ("ftp://127.0.0.1/", BAD_URL),
    ("file:///etc/passwd", BAD_URL),
    ("javascript:alert(1)", BAD_URL),
    ("http://-bad-.example/", BAD_URL),
    ("http://a..b/", BAD_URL),
    ("http://" + "a" * 64 + ".example/", BAD_URL),
    ("http://" + "a." * 130 + "example/", BAD_URL),
    ("http://example.com/\ud800", BAD_URL),
    ("http://example.com/" + "a" * MAX_URL, BAD_URL),
]


@pytest.mark.parametrize(("url", "reason"), REFUSED, ids=[repr(url)[:60] for url, _ in REFUSED])
def test_refused_spellings(url: str, reason: ExitReason) -> None:
    assert verdict(url) is reason


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/",
        "http://172.15.0.1/",
        "http://172.32.0.1/",
        "http://100.63.255.255/",
        "http://100.128.0.1/",
        "http://169.253.1.1/",
        "http://223.255.255.255/",
        "http://[2606:4700::1111]/",
        "http://[2001:4860:4860::8888]/",
        "http://[::ffff:8.8.8.8]/",
        "http://[64:ff9b::8.8.8.8]/",
    ],
)
def test_public_addresses_pass(url: str) -> None:
    assert verdict(url) is None


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com.:443/a?b#c", "https://example.com/a?b"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("  http://example.com/ ", "http://example.com/"),
        ("http://bücher.example/ü?q=ü b", "http://xn--bcher-kva.example/%C3%BC?q=%C3%BC%20b"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://xn--bcher-kva.example/%c3%bc", "http://xn--bcher-kva.example/%c3%bc"),
        ("http://under_score.example/", "http://under_score.example/"),
        ("http://[2606:4700:0:0::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("http://example.com?q=1", "http://example.com/?q=1"),
        ("http://example.com/a|b[c]{d}", "http://example.com/a|b[c]%7Bd%7D"),
        ("http://3com.example/", "http://3com.example/"),
        ("http://example.com/x/../private/a", "http://example.com/private/a"),
        ("http://example.com/x/%2E%2e/private/./a", "http://example.com/private/a"),
        ("http://example.com/../..?q=/../a", "http://example.com/?q=/../a"),
        ("http://example.com/a/b/..", "http://example.com/a/"),
        ("http://example.com/a/b/.", "http://example.com/a/b/"),
        ("http://example.com/.well-known/..x/a...b", "http://example.com/.well-known/..x/a...b"),
        ("http://example.com//a//../b", "http://example.com//a/b"),
        ("\x00 http://example.com/\x1f", "http://example.com/"),
        ("http://1e100.net/", "http://1e100.net/"),
    ],
)
def test_one_plain_spelling(url: str, plain: str) -> None:
    target = parse_target(url)
    assert target.url == plain
    assert parse_target(plain) == target


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "http://example.com/b"),
        ("b?x=1", "http://example.com/a/b?x=1"),
        ("//other.example/b", "http://other.example/b"),
        ("https://example.com/", "https://example.com/"),
        ("", "http://example.com/a/"),
        ("../../../c", "http://example.com/c"),
        ("/caf\u00e9 x", "http://example.com/caf%C3%A9%20x"),
        ("\\b\\c?d\\e", "http://example.com/b/c?d%5Ce"),
        ("http:\\\\other.example\\b", "http://other.example/b"),
        ("\\\\127.0.0.1\\b", "http://127.0.0.1/b"),
    ],
)
def test_redirects_join(location: str, url: str) -> None:
    assert join_target(parse_target("http://example.com/a/"), location).url == url


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        (" http://example.com/a ", "http://example.com/a"),
        ("HTTP://Example.com/Stra\u00dfe/1", "http://example.com/Stra%C3%9Fe/1"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("http://Example.com/a#top", "http://Example.com/a#top"),
        ("http://user@example.com/\u00e9", "http://user@example.com/\u00e9"),
        ("no URL", "no URL"),
    ],
)
def test_a_url_is_spelled_as_a_browser_does_and_only_where_it_must_be(written: str, spelled: str) -> None:
    assert spell_url(written) == spelled


def test_metadata_is_refused_even_where_private_networks_are_allowed() -> None:
    guard = Guard(allow_private=True)
    assert verdict("http://127.0.0.1/", guard) is None
    assert verdict("http://[fd00::1]/", guard) is None
    for url in ("http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[::ffff:169.254.169.254]/"):
        assert verdict(url, guard) is PRIVATE
    for url in ("http://0.0.0.0/", "http://224.0.0.1/", "http://255.255.255.255/", "http://[2002:7f00:1::]/"):
        assert verdict(url, guard) is PRIVATE


def test_a_network_opens_what_is_in_it_and_nothing_else() -> None:
    guard = Guard(allow_hosts=("10.1.0.0/16", "::1", "169.254.169.254"))
    for url in ("http://10.1.2.3/", "http://[::1]/", "http://169.254.169.254/", "http://[::ffff:10.1.2.3]/"):
        assert verdict(url, guard) is None
    for url in ("http://10.2.0.1/", "http://127.0.0.1/", "http://[fd00:ec2::254]/"):
        assert verdict(url, guard) is PRIVATE


def test_a_name_opens_its_private_addresses_but_not_metadata() -> None:
    guard = Guard(allow_hosts=("intranet.example", "*.lab.example"))
    guard.check("intranet.example", [ip_address("10.0.0.1")])
    guard.check("a.lab.example", [ip_address("127.0.0.1")])
    for host, address in (
        ("lab.example", "10.0.0.1"),
        ("notintranet.example", "10.0.0.1"),
        ("intranet.example", "169.254.169.254"),
    ):
        with pytest.raises(FetchFailed, match=host) as failure:
            guard.check(host, [ip_address(address)])
        assert failure.value.reason is PRIVATE
        assert address not in failure.value.message


def test_every_address_of_a_name_must_pass() -> None:
    guard = Guard()
    guard.check("ok.example", [ip_address("8.8.8.8"), ip_address("2606:4700::1111")])
    with pytest.raises(FetchFailed):
        guard.check("mixed.example", [ip_address("8.8.8.8"), ip_address("10.0.0.1")])


def test_a_name_that_passed_is_refused_as_soon_as_it_moves() -> None:
    guard = Guard(allow_hosts=("intranet.example",))
    public, private = ip_address("8.8.8.8"), ip_address("10.0.0.1")
    for _ in range(2):
        guard.check("moves.example", (public,))
        guard.check("intranet.example", (private,))
        for found in ((private,), (public, private), (private, public)):
            with pytest.raises(FetchFailed):
                guard.check("moves.example", found)


@pytest.mark.parametrize("entry", ["", "a b", "*.*.example", "http://x/", "*"])
def test_settings_that_are_neither_host_nor_network(entry: str) -> None:
    with pytest.raises(SettingsInvalid, match="allow_hosts"):
        Guard(allow_hosts=(entry,))


def test_host_patterns() -> None:
    patterns = HostPatterns(["Shop.Example.", "*.bücher.example", "[::1]"])
    assert patterns.match("shop.example")
    assert patterns.match("a.xn--bcher-kva.example")
    assert patterns.match("::1")
    assert not patterns.match("xn--bcher-kva.example")
    assert not patterns.match("a.shop.example")


PRIVATE_V4 = [ip_network(n) for n in ("10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")]
private_v4 = st.sampled_from(PRIVATE_V4).flatmap(
    lambda network: st.integers(int(network.network_address), int(network.broadcast_address)).map(IPv4Address)
)


def spellings(address: IPv4Address) -> list[str]:
    """One address in the ways that clients have been known to read."""
    number, (a, b, c, d) = int(address), address.packed
    wide = str(address).translate({ord("0") + i: 0xFF10 + i for i in range(10)})
    hexes = f"{number >> 16:x}:{number & 0xFFFF:x}"
    return [
        *(str(address), f"{address}.", wide, wide.replace(".", "。"), f"user@{address}", f"{a}.{b}.{c * 256 + d}"),
        *(f"{a}.{number & 0xFFFFFF}", str(number), hex(number), f"0{number:o}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        *(f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}", f"[::ffff:{address}]", f"[::{address}]", f"[64:ff9b::{address}]"),
        *(f"[2002:{hexes}::1]", f"[2001:0:{hexes}::]", f"[::ffff:{hexes}]", f"[2606:4700::5efe:{hexes}]"),
    ]


@given(address=private_v4, which=st.integers(0, 18), scheme=st.sampled_from(["http", "https", "HTTP"]))
def test_no_spelling_of_a_private_address_passes(address: IPv4Address, which: int, scheme: str) -> None:
    assert verdict(f"{scheme}://{spellings(address)[which]}/x") in (PRIVATE, BAD_URL)


@given(address=st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_passes_is_global_by_the_registry(address: Address) -> None:
    if kind_of(address) is Kind.PUBLIC:
        inner = address.ipv4_mapped if isinstance(address, IPv6Address) and address.ipv4_mapped else address
        assert inner.is_global
        assert not inner.is_multicast


@given(url=st.one_of(st.text(max_size=60), st.from_regex(r"https?://[^/]{0,30}/.{0,10}", fullmatch=True)))
def test_any_text_is_taken_apart_or_refused(url: str) -> None:
    try:
        target = parse_target(url)
    except FetchFailed:
        return
    assert parse_target(target.url) == target
    assert target.url.isascii()
    assert (urlsplit(target.url).hostname or "") == target.host


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "127.9.9.9", "[::ffff:127.0.0.1]"])
def test_our_own_gateway_is_refused_whatever_is_allowed(host: str) -> None:
    guard = Guard(allow_private=True, allow_hosts=("127.0.0.0/8", "::1"), own_port=8000)
    address = parse_target(f"http://{host}/").literal
    assert address is not None
    with pytest.raises(FetchFailed) as caught:
        guard.check_port(host, 8000, [address])
    assert caught.value.reason is PRIVATE
    guard.check_port(host, 8001, [address])


def test_the_gateways_port_of_another_machine_is_not_ours() -> None:
    Guard(own_port=8000).check_port("shop.example", 8000, [IPv4Address("93.184.216.34")])
