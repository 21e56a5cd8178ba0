"""The forward proxy reaches no private address and no port of another protocol, whatever it is asked."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.services.forward_proxy import ProxyStand, forward_proxy
from tests.sites.site import Site, page

NAMES = {
    "loop.example": [["127.0.0.1"]],
    "mixed.example": [["93.184.216.34", "10.0.0.1"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "nat64.example": [["64:ff9b::7f00:1"]],
    "metadata.example": [["169.254.169.254"]],
    "localhost": [["127.0.0.1", "::1"]],
    "www.localhost": [["127.0.0.1"]],
    "open.example": [["127.0.0.1"]],
    "two.example": [["127.0.0.99", "127.0.0.1"]],
    "six.example": [["::1", "127.0.0.1"]],
}
HOSTS = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::7f00:1]",
    "[fe80::1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    *(name for name in NAMES if name not in ("open.example", "two.example", "six.example")),
]
ODD = ["2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.1", "[::1%25lo]", "[fe80::1%eth0]", "127.0.0.1.",
       "a@127.0.0.1", "127.0.0.1%00.example", "\uff11\uff12\uff17.0.0.1", "loop.example:80:80", ""]  # fmt: skip


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as opened:
        opened.otherwise = page(b"private")
        yield opened


@pytest.fixture
async def stand() -> AsyncIterator[ProxyStand]:
    async with forward_proxy(allow_private=False, names=NAMES) as opened:
        yield opened


@pytest.mark.parametrize("host", HOSTS)
async def test_private_addresses_are_refused(host: str, stand: ProxyStand, site: Site) -> None:
    context = stand.admit()
    assert (await context.refused(host, site.port)).startswith("fetch_private_address: ")
    assert stand.proxy.count(context.user).connections == 0
    assert site.asked == []


@pytest.mark.parametrize("host", ODD)
async def test_odd_spellings_are_refused(host: str, stand: ProxyStand, site: Site) -> None:
    context = stand.admit()
    for first in (f"GET http://{host}:{site.port}/ HTTP/1.1", f"CONNECT {host}:{site.port} HTTP/1.1"):
        answer = await context.ask(first)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))
    assert site.asked == []


@pytest.mark.parametrize("port", [0, 1, 22, 25, 53, 81, 445, 1023, 2049, 6000, 6667, 10080, 65536])
async def test_ports_of_other_protocols_are_refused(port: int) -> None:
    async with forward_proxy() as stand:
        answer = await stand.admit().ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1")
        assert answer.startswith(b"HTTP/1.1 403 ")


async def test_the_servers_own_port_is_never_reached(site: Site) -> None:
    async with forward_proxy(own_port=site.port) as stand:
        assert "this server's own API" in await stand.admit().refused("127.0.0.1", site.port)
    assert site.asked == []


async def test_a_name_that_changes_its_mind_changes_nothing(site: Site) -> None:
    """The address that was checked is the one that is reached; the next time it is checked anew."""
    names = {"moves.example": [["127.0.0.1"], ["10.0.0.1"]]}
    async with forward_proxy(allow_private=False, names=names, http={"allow_hosts": ("127.0.0.0/8",)}) as stand:
        context = stand.admit()
        assert (await context.get(site.url("/", host="moves.example"))).endswith(b"private")
        stand.proxy._dns._names._known.clear()  # as half a minute later
        assert "fetch_private_address" in await context.refused("moves.example", site.port)
    assert len(site.asked) == 1


async def test_what_the_operator_allows_is_reached(site: Site) -> None:
    async with forward_proxy(allow_private=False, names=NAMES, http={"allow_hosts": ("open.example",)}) as stand:
        context = stand.admit()
        assert (await context.get(site.url("/", host="open.example"))).endswith(b"private")
        assert "fetch_private_address" in await context.refused("loop.example", site.port)


@pytest.mark.parametrize("name", ["two.example", "six.example"])
async def test_the_next_address_serves_when_one_does_not(name: str, site: Site) -> None:
    async with forward_proxy(names=NAMES) as stand:
        answers = await asyncio.gather(*(stand.admit().get(site.url("/", host=name)) for _ in range(5)))
        assert {answer[-7:] for answer in answers} == {b"private"}
