"""What the tests of the HTTP engine share."""

import socket
from collections.abc import Awaitable
from ipaddress import IPv4Address

import pytest

from scrapeyard.engines.http.url import Address
from scrapeyard.engines.port import FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, Scraper, ScraperRef

MB = 1024 * 1024
HTML = {"content_type": "text/html"}


async def resolve(host: str, port: int) -> list[Address]:
    """Every name of ours is on loopback; the others are unknown."""
    if host.endswith(".test"):
        return [IPv4Address("127.0.0.1")]
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def failure_of(answer: Awaitable[FetchResponse]) -> FetchFailed:
    """The failure that this fetch must end in."""
    with pytest.raises(FetchFailed) as failure:
        await answer
    assert failure.value.message
    return failure.value


async def reason_of(answer: Awaitable[FetchResponse]) -> ExitReason:
    """Why this fetch, which must fail, failed."""
    return (await failure_of(answer)).reason


def scraper(*allowed_hosts: str) -> Scraper:
    ref = ScraperRef(id="shop/product", version="1.0.0")
    return Scraper(ref=ref, folder=None, allowed_hosts=allowed_hosts)
