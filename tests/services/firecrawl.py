"""A Firecrawl server of a script, as an outside engine: a server with `/v2/search` that answers as it is told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any

from tests.services.threads import ThreadedServer

KEY = "fc-secret-key"


class SearchServer(ThreadedServer):
    """Change its attributes to change what it does."""

    def __init__(self) -> None:
        super().__init__(_Answering)
        self.status = 200
        self.body: bytes | dict[str, Any] = {"success": True, "data": {}}
        self.gate = Event()
        """Closed: answers wait."""
        self.gate.set()
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answering(BaseHTTPRequestHandler):
    server: SearchServer

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        server.asked.append({"path": self.path, "key": self.headers.get("authorization"), **call})
        server.gate.wait(60)
        is_search = self.path == "/v2/search"
        told = server.body if is_search else {"success": False, "error": "only searches"}
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(server.status if is_search else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def serving() -> Iterator[SearchServer]:
    """One that answers until the end."""
    with SearchServer() as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.gate.set()
            server.shutdown()
            thread.join()
