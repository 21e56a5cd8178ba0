"""Proxies that want a user and a password: pproxy for tunnels and SOCKS5, and one of plain HTTP that we play."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.sites.site import Asked, Site, page

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its source has escapes that Python warns of
    import pproxy  # type: ignore[import-untyped]  # it ships no types

USER = "me"
PASSWORD = "secr:et/@"
LOGIN = "me:secr%3Aet%2F%40"


@asynccontextmanager
async def proxy(scheme: str) -> AsyncIterator[int]:
    """A proxy of `http` (for tunnels) or `socks5` on a free port, which is given."""
    server = pproxy.Server(f"{scheme}://127.0.0.1:0#{USER}:{PASSWORD}")
    # authtime 0: it forgets at once who has logged in from where
    handler = await server.start_server({"rserver": [], "verbose": lambda *_: None, "authtime": 0})
    try:
        yield handler.sockets[0].getsockname()[1]
    finally:
        handler.close()
        await handler.wait_closed()


@asynccontextmanager
async def plain_proxy(authorization: str) -> AsyncIterator[Site]:
    """Answers requests for whole URLs itself, with the URL; 407 without this Proxy-Authorization."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.headers.get("proxy-authorization") != authorization:
            await page(b"who are you", status=407, proxy_authenticate="Basic")(asked, writer)
        else:
            await page(b"by proxy: " + asked.path.encode())(asked, writer)

    async with Site(otherwise=answer) as site:
        yield site
