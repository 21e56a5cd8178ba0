"""A server that answers with given bytes, whatever it is asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.services.threads import ThreadedServer

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass
class RawServer:
    """What it will answer, and what it was asked: method and path, with the headers."""

    url: str = ""
    left: list[bytes] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def raw_answers(*answers: bytes) -> Iterator[RawServer]:
    """Each request gets the next of these, before its body is read, and the connection ends."""
    stand = RawServer(left=list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stand.asked.append((f"{self.command} {self.path}", dict(self.headers)))
            self.wfile.write(stand.left.pop(0))
            self.close_connection = True

        do_POST = do_GET  # noqa: N815  the library's name

        def log_message(self, *_: object) -> None: ...

    with ThreadedServer(Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        stand.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield stand
        finally:
            server.shutdown()
            thread.join()


def answer(status: str, body: bytes, *headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body
