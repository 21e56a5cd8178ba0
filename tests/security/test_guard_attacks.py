"""Attacks on the guard through the whole engine: whatever the trick, nobody connects to a listener on loopback.

Each attack aims at a listener that counts connections. Names are resolved by the resolver that the engine's real
connect path uses, so that what a name says at one moment and at the next is the attacker's to choose.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Any

import pytest

from scrapeyard.engines.http.dns import Resolve
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.url import Address
from scrapeyard.engines.port import Caller, FetchRequest, Proxy, Route
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings
from tests.leaks import PATIENCE
from tests.sites.site import Site, page, redirect

REFUSALS = {ExitReason.FETCH_PRIVATE_ADDRESS, ExitReason.FETCH_BAD_URL, ExitReason.FETCH_DNS}
OUTSIDE = IPv4Address("93.184.215.14")


@pytest.fixture
async def inside() -> AsyncIterator[Site]:
    """What must not be reached."""
    async with Site() as site:
        site.routes["/"] = page(b"secret")
        yield site
        assert site.open == 0
        assert site.asked == []


@pytest.fixture
async def make_engine() -> AsyncIterator[Callable[..., WreqEngine]]:
    engines: list[WreqEngine] = []

    def make(resolve: Resolve, **settings: Any) -> WreqEngine:
        engine = WreqEngine(
            HttpSettings(**{"total_seconds": PATIENCE, "connect_seconds": PATIENCE, **settings}), resolve=resolve
        )
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        await engine.stop()


def always(*answers: str) -> Resolve:
    async def resolve(host: str, port: int) -> list[Address]:
        return [ip_address(answer) for answer in answers]

    return resolve


async def attack(engine: WreqEngine, url: str, way: Route | None = None, **options: Any) -> ExitReason:
    with pytest.raises(FetchFailed) as failure:
        await engine.fetch(FetchRequest(url=url, **options), Caller(), way or Route())
    assert "secret" not in failure.value.message
    return failure.value.reason


SPELLINGS = [
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.00.00.01:{port}/",
    "http://127.0.0.001:{port}/",
    "http://0127.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0.0.01:{port}/",
    "http://0177.1:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0x7F.0x0.0x0.0x1:{port}/",
    "http://0x7f.1:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f000001.:{port}/",
    "http://2130706433:{port}/",
    "http://2130706433.:{port}/",
    "http://017700000001:{port}/",
    "http://00000000017700000001:{port}/",
    "http://4294967296:{port}/",
    "http://6425673729:{port}/",
    "http://127.0.0.1e0:{port}/",
    "http://127.0.0.1:0{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0x0:{port}/",
    "http://000.000.000.000:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://localhost.localdomain:{port}/",
    "http://ip6-localhost:{port}/",
    "http://app.localhost:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{port}/",
    "http://[::0001]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[::7f00:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::FFFF:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
    "http://[::ffff:0:127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2002:7f00:0001::1]:{port}/",
    "http://[2001::7f00:1]:{port}/",
    "http://[2001:0:53aa:64c:0:fffe:80ff:fffe]:{port}/",
    "http://[fe80::5efe:127.0.0.1]:{port}/",
    "http://[2606:4700::5efe:127.0.0.1]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[::1%lo]:{port}/",
    "http://[fe80::1%25eth0]:{port}/",
    "http://[::1].example.com:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[[::1]]:{port}/",
    "http://::1:{port}/",
    "http://\uff11\uff12\uff17.\uff10.\uff10.\uff11:{port}/",
    "http://127\u30020\u30020\u30021:{port}/",
    "http://127\uff0e0\uff0e0\uff0e1:{port}/",
    "http://\u2460\u2461\u2466.0.0.1:{port}/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://loc\u00adalhost:{port}/",
    "http://local\u200bhost:{port}/",
    "http://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54:{port}/",
    "http://%31%32%37%2e%30%2e%30%2e%31:{port}/",
    "http://127.0.0.1%2f:{port}/",
    "http://%6c%6f%63%61%6c%68%6f%73%74:{port}/",
    "http://127.0.0.1%00.example.com:{port}/",
    "http://example.com@127.0.0.1:{port}/",
    "http://user:password@127.0.0.1:{port}/",
    "http://example.com:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@127.0.0.1:{port}/",
    "http://example.com#@127.0.0.1:{port}/",
    "http://example.com?@127.0.0.1:{port}/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "http:\\\\127.0.0.1:{port}\\",
    "http:/\\127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\t/",
    "http://127.0.\t0.1:{port}/",
    "http://127.0.0.1\n:{port}/",
    "ht\ntp://127.0.0.1:{port}/",
    "http://127.0.0.1\r\nHost: x:{port}/",
    "http://127.0.0.1 :{port}/",
    "http://127.0.0.1\u3000:{port}/",
    "http://127.0.0.1\x00:{port}/",
    "http:// 127.0.0.1:{port}/",
    "http://127.0.0.1,example.com:{port}/",
    "http://127.0.0.1;example.com:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1:+{port}/",
    "http://127.0.0.1:\uff11\uff12\uff13\uff14/",
    "http://127.0.0.1:65536{port}/",
    "HTTP://127.0.0.1:{port}/",
    "hTTps://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "file://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "ftp://127.0.0.1:{port}/",
    "dict://127.0.0.1:{port}/",
    "ldap://127.0.0.1:{port}/",
    "tftp://127.0.0.1:{port}/",
    "ws://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "data:text/html,hello",
    "javascript:fetch('http://127.0.0.1:{port}/')",
    "jar:http://127.0.0.1:{port}/!/",
    "view-source:http://127.0.0.1:{port}/",
    "url:http://127.0.0.1:{port}/",
    "http+unix://127.0.0.1:{port}/",
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=[ascii(spelling)[:60] for spelling in SPELLINGS])
async def test_spellings(inside: Site, make_engine: Callable[..., WreqEngine], spelling: str) -> None:
    """`localhost` and its kin are names here, which an unkind resolver answers for."""
    engine = make_engine(always("127.0.0.1"))
    assert await attack(engine, spelling.replace("{port}", str(inside.port))) in REFUSALS


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.255", "169.254.169.254"),
        *("169.254.170.2", "100.100.100.200", "168.63.129.16", "172.16.0.1", "192.0.0.192", "192.168.0.1"),
        *("192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
        *("255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1"),
        *("100::1", "2001::1", "2001:db8::1", "2002:a00:1::", "3fff::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254"),
        *("fe80::1", "fec0::1", "ff02::1", "5f00::1", "2606:4700::5efe:a00:1"),
    ],
)
async def test_names_that_lead_to_special_addresses(make_engine: Callable[..., WreqEngine], address: str) -> None:
    engine = make_engine(always(address))
    assert await attack(engine, "http://innocent.example/") is ExitReason.FETCH_PRIVATE_ADDRESS
    mixed = make_engine(always("93.184.215.14", address))
    assert await attack(mixed, "http://mixed.example/") is ExitReason.FETCH_PRIVATE_ADDRESS


LOCATIONS = [
    "http://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http://inside.example:{port}/",
    "//inside.example:{port}/",
    "http://[::1]:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://127.0.0.1:{port}@gate.example/",
    "http://gate.example@127.0.0.1:{port}/",
    "\\\\127.0.0.1:{port}\\",
    "/\\127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}/",
    "\thttp://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/\x0b",
    "HTTP://LOCALHOST:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
    "data:text/html,hello",
]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", LOCATIONS, ids=[ascii(location)[:50] for location in LOCATIONS])
async def test_redirects(inside: Site, make_engine: Callable[..., WreqEngine], location: str, status: int) -> None:
    """`gate.example` may be fetched though it is private, so that there is a site to redirect from."""

    async def resolve(host: str, port: int) -> list[Address]:
        return [IPv4Address("127.0.0.1")]

    async with Site() as gate:
        gate.routes["/"] = redirect(location.replace("{port}", str(inside.port)), status)
        engine = make_engine(resolve, allow_hosts=("gate.example",), max_redirects=3)
        reason = await attack(engine, gate.url("/", "gate.example"), method="POST", body=b"x")
        assert reason in {*REFUSALS, ExitReason.FETCH_PROTOCOL}
        assert {asked.headers["host"] for asked in gate.asked} == {f"gate.example:{gate.port}"}


async def test_a_chain_of_redirects(inside: Site, make_engine: Callable[..., WreqEngine]) -> None:
    async with Site() as gate:
        gate.routes |= {
            "/": redirect("/1"),
            "/1": redirect(gate.url("/2", "other.gate.example")),
            "/2": redirect(inside.url("/")),
        }
        engine = make_engine(always("127.0.0.1"), allow_hosts=("gate.example", "*.gate.example"))
        assert await attack(engine, gate.url("/", "gate.example")) is ExitReason.FETCH_PRIVATE_ADDRESS
        assert len(gate.asked) == 3


class Fickle:
    """A name that says something else each time it is asked."""

    def __init__(self, answers: Sequence[Address]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.asked += 1
        return [self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]]


async def test_rebinding_between_check_and_connection(inside: Site, make_engine: Callable[..., WreqEngine]) -> None:
    """The first answer is harmless and checked; the connection goes there, and the second answer is never asked for."""
    async with Site(host="127.0.0.2") as harmless:
        harmless.routes["/"] = page(b"harmless")
        fickle = Fickle([IPv4Address("127.0.0.2"), IPv4Address("127.0.0.1")])
        engine = make_engine(fickle, allow_hosts=("127.0.0.2/32",))
        url = f"http://rebind.example:{harmless.port}/"
        answer = await engine.fetch(FetchRequest(url=url), Caller())
        assert (answer.body, fickle.asked) == (b"harmless", 1)


async def test_rebinding_of_a_name_that_is_known_already(
    inside: Site, make_engine: Callable[..., WreqEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a name has changed its mind, the connection that was made before is not used under the new address."""
    async with Site(host="127.0.0.2") as harmless:
        harmless.routes["/"] = page(b"harmless")
        fickle = Fickle([IPv4Address("127.0.0.2"), IPv4Address("127.0.0.1")])
        engine = make_engine(fickle, allow_hosts=("127.0.0.2/32",))
        await engine.fetch(FetchRequest(url=f"http://rebind.example:{harmless.port}/"), Caller())
        monkeypatch.setattr(engine._dns._names, "_keep_seconds", -1.0)
        engine._dns._names._known.clear()
        assert await attack(engine, f"http://rebind.example:{inside.port}/") is ExitReason.FETCH_PRIVATE_ADDRESS


async def test_rebinding_by_redirect_to_oneself(inside: Site, make_engine: Callable[..., WreqEngine]) -> None:
    async with Site(host="127.0.0.2") as harmless:
        harmless.routes["/"] = redirect(f"http://rebind.example:{inside.port}/")
        fickle = Fickle([IPv4Address("127.0.0.2"), IPv4Address("127.0.0.1")])
        engine = make_engine(fickle, allow_hosts=("127.0.0.2/32",))
        with pytest.raises(FetchFailed):
            await engine.fetch(FetchRequest(url=f"http://rebind.example:{harmless.port}/"), Caller())


async def test_a_name_beyond_another(inside: Site, make_engine: Callable[..., WreqEngine]) -> None:
    """However many names stand in between, only the addresses at the end count."""

    async def resolve(host: str, port: int) -> list[Address]:
        chain = {"a.example": "b.example", "b.example": "c.example", "c.example": "127.0.0.1"}
        while host in chain:
            host = chain[host]
        return [ip_address(host)]

    engine = make_engine(resolve)
    assert await attack(engine, f"http://a.example:{inside.port}/") is ExitReason.FETCH_PRIVATE_ADDRESS


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:{port}/", "http://inside.example:{port}/", "https://inside.example:{port}/", "http://[::1]/"],
)
async def test_through_a_proxy(inside: Site, make_engine: Callable[..., WreqEngine], scheme: str, url: str) -> None:
    """A proxy in a private network, as many are, is not the way to its neighbours."""
    async with Site(otherwise=page(b"secret")) as proxy:
        way = Route(proxy=Proxy(url=f"{scheme}://127.0.0.1:{proxy.port}", name="p"))
        engine = make_engine(always("10.0.0.1"))
        assert await attack(engine, url.replace("{port}", str(inside.port)), way) is ExitReason.FETCH_PRIVATE_ADDRESS
        assert (proxy.open, proxy.asked) == (0, [])


async def test_a_redirect_through_a_proxy(inside: Site, make_engine: Callable[..., WreqEngine]) -> None:
    async def resolve(host: str, port: int) -> list[Address]:
        return [OUTSIDE if host == "outside.example" else IPv4Address("10.0.0.1")]

    async with Site(otherwise=redirect(f"http://inside.example:{inside.port}/")) as proxy:
        way = Route(proxy=Proxy(url=f"http://127.0.0.1:{proxy.port}", name="p"))
        assert await attack(make_engine(resolve), "http://outside.example/", way) is ExitReason.FETCH_PRIVATE_ADDRESS
        assert len(proxy.asked) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1"},
        {"host": "inside.example"},
        {"X": "1\r\nHost: 127.0.0.1"},
        {"Transfer-Encoding": "chunked"},
        {"Proxy-Connection": "x"},
    ],
)
async def test_headers_that_would_choose_another_site(
    make_engine: Callable[..., WreqEngine], headers: dict[str, str]
) -> None:
    async with Site() as gate:
        engine = make_engine(always("127.0.0.1"), allow_hosts=("gate.example",))
        reason = await attack(engine, gate.url("/", "gate.example"), headers=headers)
        assert reason is ExitReason.FETCH_NOT_ALLOWED
        assert gate.asked == []


async def test_allowing_a_name_does_not_allow_metadata_or_other_names(
    inside: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    engine = make_engine(always("169.254.169.254"), allow_private=True)
    assert await attack(engine, "http://metadata.example/") is ExitReason.FETCH_PRIVATE_ADDRESS
    assert await attack(engine, "http://169.254.169.254/latest/") is ExitReason.FETCH_PRIVATE_ADDRESS
    named = make_engine(always("127.0.0.1"), allow_hosts=("intranet.example",))
    for host in ("intranet.example.evil.example", "evilintranet.example", "127.0.0.1", "intranet"):
        assert await attack(named, inside.url("/", host)) is ExitReason.FETCH_PRIVATE_ADDRESS


async def test_a_refusal_tells_nothing_of_the_address(make_engine: Callable[..., WreqEngine]) -> None:
    with pytest.raises(FetchFailed) as failure:
        await make_engine(always("10.20.30.40")).fetch(FetchRequest(url="http://db.internal.example/"), Caller())
    assert "10.20.30.40" not in failure.value.message + repr(failure.value.details)


async def test_many_attacks_at_once_on_one_name(inside: Site, make_engine: Callable[..., WreqEngine]) -> None:
    """Answers that flip between public and private: whichever is used was checked, and the private one is refused."""
    flips = [IPv4Address("127.0.0.2"), IPv4Address("127.0.0.1")] * 20

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.2", inside.port))  # and does not listen: who comes there is turned away
        engine = make_engine(Fickle(flips), allow_hosts=("127.0.0.2/32",))
        requests = [FetchRequest(url=f"http://flip{number}.example:{inside.port}/") for number in range(40)]
        answers = await asyncio.gather(*(engine.fetch(r, Caller()) for r in requests), return_exceptions=True)
    reasons = {answer.reason for answer in answers if isinstance(answer, FetchFailed)}
    assert len([answer for answer in answers if isinstance(answer, FetchFailed)]) == 40
    assert reasons == {ExitReason.FETCH_PRIVATE_ADDRESS, ExitReason.FETCH_CONNECT}


def test_there_are_enough() -> None:
    assert len(SPELLINGS) >= 80
