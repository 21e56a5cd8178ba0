"""The least an HTTP server can do, to know what the load generator itself can reach."""

import asyncio
import sys
from typing import cast

import httptools
import uvloop

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + b'{"ok":true}'


class Echo(asyncio.Protocol):
    """Answers each whole request with the same bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._transport.write(_ANSWER)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
