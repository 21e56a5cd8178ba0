"""Connections to sites: to an address that the guard has passed, straight or through an exit."""

import asyncio
import os
import ssl
import struct
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import IPv4Address
from itertools import zip_longest
from pathlib import Path

from scrapeyard.engines.browser.proxy.heads import (
    ANSWER_END,
    MAX_REQUEST,
    AnswerHead,
    BadHead,
    basic,
    read_answer,
    write_head,
)
from scrapeyard.engines.browser.proxy.peer import HeadTooLong, Peer, PeerGone
from scrapeyard.engines.http.checks import connect_limit
from scrapeyard.engines.http.clients import proxy_target
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.failures import refused_by_proxy
from scrapeyard.engines.http.hops import PROXY_ERRORS
from scrapeyard.engines.http.url import Address, Target
from scrapeyard.engines.port import Caller, Proxy
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.model.fetching import ProxyAddress, read_proxy_url
from scrapeyard.settings import HttpSettings

_STAGGER_SECONDS = 0.25
"""Between one address of a name and the next, as RFC 8305 has it."""
_MOST_ADDRESSES = 8
_WEB_PORTS = frozenset({80, 443})
_NO_WEB_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
)
"""From 1024 on, as browsers refuse them: other protocols listen there that a page could talk to."""


class Connector:
    """Opens connections for the contexts of a worker."""

    def __init__(self, settings: HttpSettings, dns: GuardedDns) -> None:
        self._settings = settings
        self._dns = dns

    async def connect(self, target: Target, caller: Caller, way: Proxy | None, *, tunnel: bool) -> Peer:
        """A connection to the target. Without `tunnel`, one through an HTTP proxy ends there: it takes whole URLs.

        Raises FetchFailed. What fails on the way to an exit, or at it, is `fetch_proxy`.
        """
        seconds = connect_limit(caller.policy, self._settings)
        try:
            async with asyncio.timeout(seconds):
                return await self._connect(target, way, tunnel)
        except TimeoutError:
            where = f"{target.host}:{target.port}"
            if way is not None:
                raise exit_failed(way, target, f"no connection within {seconds:g} s") from None
            message = f"no connection to {where} within {seconds:g} s; is it up? Or raise http.connect_seconds"
            raise FetchFailed(ExitReason.FETCH_TIMEOUT, message, host=target.host) from None

    async def _connect(self, target: Target, way: Proxy | None, tunnel: bool) -> Peer:
        check_web_port(target)
        addresses = await self._dns.addresses(target)
        if way is not None:
            return await self._through(way, target, addresses, tunnel)
        try:
            return await _first_of(addresses, lambda address: _open(address, target.port))
        except OSError as error:
            message = f"cannot connect to {target.host}:{target.port} ({_cause(error)}); check that the site is up"
            raise FetchFailed(ExitReason.FETCH_CONNECT, message, host=target.host) from None

    async def _through(self, way: Proxy, target: Target, addresses: tuple[Address, ...], tunnel: bool) -> Peer:
        try:
            at, login = proxy_target(way.url), read_proxy_url(way.url)
            reached = await (self._dns.addresses(at) if way.guarded else self._dns.unchecked(at))
            tls = trusting(way.ca_file, self._settings.ca_bundle) if login.scheme == "https" else None
            peer = await _first_of(reached, lambda address: _open(address, at.port, tls, at.host))
        except (OSError, ValueError) as error:
            raise exit_failed(way, target, _cause(error)) from None
        except FetchFailed as failure:
            if failure.reason is not ExitReason.FETCH_DNS:
                raise
            raise exit_failed(way, target, "its name does not resolve") from None
        try:
            if login.scheme in ("socks5", "socks5h"):
                await _ask_socks(peer, login, target, addresses)
            elif tunnel:
                await _ask_tunnel(peer, target, way)
        except (PeerGone, HeadTooLong, BadHead, ValueError) as error:
            peer.abort()
            raise exit_failed(way, target, _cause(error)) from None
        except BaseException:
            peer.abort()
            raise
        return peer


def login_fields(way: Proxy) -> tuple[tuple[bytes, bytes], ...]:
    """What an HTTP proxy wants to see of us; empty: nothing."""
    login = read_proxy_url(way.url)
    return (basic(login.user, login.password),) if login.user or login.password else ()


def check_web_port(target: Target) -> None:
    """Raises FetchFailed (fetch_not_allowed) where no site can be expected."""
    port = target.port
    if port in _WEB_PORTS or (port >= 1024 and port not in _NO_WEB_PORTS):
        return
    message = f"{target.host}:{port} is no port of the web; browsers reach 80, 443 and most from 1024 on"
    raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message, host=target.host)


def check_exit_answer(answer: AnswerHead, way: Proxy, target: Target) -> None:
    """Raises FetchFailed (fetch_proxy) for an answer that is the exit's own and not the site's."""
    if answer.status == 407:
        raise refused_by_proxy(target, way.name or "in use")
    said = next((value for name in PROXY_ERRORS if (value := answer.get(name.encode()))), b"")
    if answer.status >= 400 and said:
        raise exit_failed(way, target, said.decode("latin-1")[:200])


async def _ask_tunnel(peer: Peer, target: Target, way: Proxy) -> None:
    """By CONNECT. The proxy gets the name and resolves it for itself."""
    host = (b"Host", target.endpoint.encode())
    peer.write(write_head(f"CONNECT {target.endpoint} HTTP/1.1".encode(), (host, *login_fields(way))))
    answer = read_answer(await peer.read_head(ANSWER_END, MAX_REQUEST))
    check_exit_answer(answer, way, target)
    if not 200 <= answer.status < 300:
        raise BadHead(f"it answers {answer.status}")


async def _ask_socks(peer: Peer, login: ProxyAddress, target: Target, addresses: tuple[Address, ...]) -> None:
    """RFC 1928 and 1929. `socks5` gets the first address that passed, `socks5h` the name."""
    has_login = bool(login.user or login.password)
    peer.write(b"\x05\x01\x02" if has_login else b"\x05\x01\x00")
    if await peer.read(2) != (b"\x05\x02" if has_login else b"\x05\x00"):
        raise BadHead("it wants another way to log in")
    if has_login:
        user, password = login.user.encode()[:255], login.password.encode()[:255]
        peer.write(b"\x01" + _counted(user) + _counted(password))
        if (await peer.read(2))[1] != 0:
            raise BadHead("it does not take our credentials; correct them in its pool")
    where = target.literal or (addresses[0] if login.scheme == "socks5" else None)
    peer.write(b"\x05\x01\x00" + _socks_address(where, target.host) + struct.pack("!H", target.port))
    version, code, _, kind = await peer.read(4)
    if version != 5 or code != 0:
        raise BadHead(_SOCKS_WORDS.get(code, f"it answers {code}"))
    size = {1: 4, 4: 16}.get(kind) or (await peer.read(1))[0]
    await peer.read(size + 2)


_SOCKS_WORDS = {
    1: "it failed",
    2: "its rules forbid it",
    3: "the network cannot be reached",
    4: "the host cannot be reached",
    5: "the connection was refused",
    6: "the connection timed out",
    7: "it knows no CONNECT",
    8: "it knows no such addresses",
}


def _socks_address(where: Address | None, name: str) -> bytes:
    if where is None:
        return b"\x03" + _counted(name.encode())
    return (b"\x01" if isinstance(where, IPv4Address) else b"\x04") + where.packed


def _counted(text: bytes) -> bytes:
    return bytes((len(text),)) + text


@lru_cache(maxsize=64)
def trusting(ca_file: Path | None, bundle: Path | None) -> ssl.SSLContext:
    """The usual authorities and those of two files. Raises OSError or ssl.SSLError."""
    context = ssl.create_default_context()
    for path in filter(None, (ca_file, bundle)):
        context.load_verify_locations(path)
    return context


async def _open(address: Address, port: int, tls: ssl.SSLContext | None = None, host: str = "") -> Peer:
    loop = asyncio.get_running_loop()
    name = host if tls else None
    _, peer = await loop.create_connection(Peer, str(address), port, ssl=tls, server_hostname=name)
    return peer


async def _first_of(addresses: tuple[Address, ...], connect: Callable[[Address], Awaitable[Peer]]) -> Peer:
    """Happy eyeballs: each address gets a moment before the next is tried beside it. Raises the first OSError."""
    waiting = _in_turns(addresses)
    if len(waiting) == 1:
        return await connect(waiting[0])
    running: set[asyncio.Task[Peer]] = set()
    failed: list[BaseException] = []
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(connect(waiting.pop(0))))
            patience = _STAGGER_SECONDS if waiting else None
            done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.discard(task)
                error = task.exception()
                if error is None:
                    return task.result()
                failed.append(error)
        raise failed[0]
    finally:
        await _give_up(running)


async def _give_up(running: set["asyncio.Task[Peer]"]) -> None:
    for task in running:
        task.cancel()
    for late in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(late, Peer):
            late.abort()


def _in_turns(addresses: tuple[Address, ...]) -> list[Address]:
    """The families alternate, beginning with that of the first address."""
    first = type(addresses[0])
    same = [address for address in addresses if isinstance(address, first)]
    other = [address for address in addresses if not isinstance(address, first)]
    pairs = zip_longest(same, other)
    return [address for pair in pairs for address in pair if address is not None][:_MOST_ADDRESSES]


def exit_failed(way: Proxy, target: Target, cause: str) -> FetchFailed:
    """The exit is to blame."""
    name = way.name or "in use"
    message = f"the proxy {name} failed on the way to {target.host}:{target.port} ({cause}); the site is not at fault"
    return FetchFailed(ExitReason.FETCH_PROXY, message, host=target.host, cause=cause)


def _cause(error: Exception) -> str:
    """Without addresses: a page must not learn how names resolve."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or "no TLS"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, PeerGone):
        return "it closed the connection"
    return str(error)[:200] or type(error).__name__
