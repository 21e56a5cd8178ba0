"""TLS in front of a real server that speaks none: what comes in is decrypted and passed on, as stunnel does."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trustme

_SSL_REQUEST = bytes.fromhex("0000000804d2162f")


class Authority:
    """A certificate authority of the test's own, and a server's certificate for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.file = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.file))
        self.wrong_file = folder / "wrong.pem"
        trustme.CA().cert_pem.write_to_path(str(self.wrong_file))

    def certificate(self, name: str = "127.0.0.1") -> Path:
        """A PEM file with a certificate for this name, and its key."""
        path = self.file.with_name(f"{name}.pem")
        self.authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(path))
        return path

    def context(self, name: str = "127.0.0.1") -> ssl.SSLContext:
        """For a server of this name."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert(name).configure_cert(context)
        return context


@asynccontextmanager
async def encrypted(port: int, context: ssl.SSLContext, *, postgres: bool = False) -> AsyncIterator[int]:
    """A port that speaks TLS for a server on this machine; with `postgres`, after the client has asked for it."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, EOFError, asyncio.CancelledError):
            if postgres:
                assert await reader.readexactly(8) == _SSL_REQUEST
                writer.write(b"S")
                await writer.start_tls(context)
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_pass(reader, inner_writer), _pass(inner_reader, writer))
        writer.transport.abort()
        tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=None if postgres else context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.transport.abort()
