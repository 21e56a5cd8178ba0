"""A site that speaks HTTP/2 over TLS, as most of the web does."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.leaks import PATIENCE


@dataclass
class Http2Site:
    """Answers every path with the version it was asked in, and remembers the requests and their connections."""

    port: int
    asked: list[dict[str, Any]] = field(default_factory=list)
    clients: set[Any] = field(default_factory=set)

    def url(self, path: str = "/") -> str:
        """A path of this site."""
        return f"https://shop.test:{self.port}{path}"

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """The application."""
        if scope["type"] != "http":
            return
        self.asked.append(scope)
        self.clients.add(tuple(scope["client"]))
        headers = [(b"content-type", b"text/plain"), (b"set-cookie", b"seen=1; Secure")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": scope["http_version"].encode()})


@asynccontextmanager
async def http2_site(authority: trustme.CA, folder: Path) -> AsyncIterator[Http2Site]:
    """Up inside the block."""
    certificate = authority.issue_cert("shop.test")
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(str(key))
    listening = socket.create_server(("127.0.0.1", 0))
    site = Http2Site(listening.getsockname()[1])
    config = Config.from_mapping(
        bind=f"fd://{listening.detach()}",
        certfile=str(chain),
        keyfile=str(key),
        errorlog=None,
        accesslog=None,
        keep_alive_timeout=PATIENCE,
        ssl_handshake_timeout=PATIENCE,
    )
    stop = asyncio.Event()
    server = asyncio.create_task(serve(site, config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
    try:
        yield site
    finally:
        stop.set()
        await _ended(server)


async def _ended(server: asyncio.Task[None]) -> None:
    try:
        await server
    except ssl.SSLError as error:
        # TLS 1.3 lets a client speak on after our goodbye, as one does that is just hanging up; hypercorn does not
        if error.reason != "APPLICATION_DATA_AFTER_CLOSE_NOTIFY":
            raise
