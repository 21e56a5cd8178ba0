"""A static web server on a free loopback port, with entity tags, dates, conditions, PUT, a token, and bad habits."""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.leaks import PATIENCE
from tests.services.ports import free_port

Habit = Callable[["_Handler", bytes], None]
"""Answers a GET of a file with this content, badly."""


class StaticSite:
    """Serves a folder until stopped; `stop` and `start` keep the port. Counts what it sends and is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = ""
        """Asked for as a bearer when it is not empty."""
        self.etags = True
        self.dates = True
        self.heeds_conditions = True
        """Whether PUT heeds If-Match and If-None-Match."""
        self.habits: dict[str, Habit] = {}
        """By path: how a GET is answered."""
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers, names in lower case."""
        self.sent = 0
        """Bytes of answers, head and body."""
        self.closing = threading.Event()
        """Set when the server ends; a stalled answer waits on it."""
        self.connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.lock = threading.Lock()
        self.port = free_port()

    @property
    def url(self) -> str:
        """With a slash at the end."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> "StaticSite":
        """Listens when it returns."""
        if self._server is None:
            self.closing.clear()
            handler = type("Handler", (_Handler,), {"site": self})
            self._server = _Server(("127.0.0.1", self.port), handler)
            self.port = self._server.server_address[1]
            self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Hangs up on everyone. May be called twice."""
        server, self._server = self._server, None
        if server is not None and self._thread is not None:
            self.closing.set()
            server.shutdown()
            with self.lock:
                for connection in self.connections:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
            server.server_close()
            self._thread.join()

    def paths(self, method: str = "GET") -> list[str]:
        """What was asked for so."""
        return [path for asked, path, _ in self.asked if asked == method]

    def forget(self) -> None:
        """Begin counting anew."""
        self.asked.clear()
        self.sent = 0


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: ClassVar[StaticSite]
    timeout = PATIENCE

    def setup(self) -> None:
        """Known to the site, which hangs up on it when it ends."""
        super().setup()
        with self.site.lock:
            self.site.connections.add(self.connection)

    def finish(self) -> None:
        """As it began."""
        with self.site.lock:
            self.site.connections.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Silent."""

    def do_GET(self) -> None:
        """A file, or how the site misbehaves for it."""
        if not self._admitted():
            return
        habit = self.site.habits.get(self.path)
        file = self._file()
        content = file.read_bytes() if (is_here := file.is_file()) else b""
        if habit is not None:
            habit(self, content)
        elif not is_here:  # looked at once: a file that comes meanwhile would be told as empty
            self.answer(404, b"not here")
        elif self._is_known(file, content):
            self.answer(304, b"", self._marks(file, content))
        else:
            self.answer(200, content, self._marks(file, content))

    def do_PUT(self) -> None:
        """Write a file, whose folders are made."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._admitted():
            return
        file = self._file()
        with self.site.lock:
            if self.site.heeds_conditions and not self._may_write(file):
                self.answer(412, b"")
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = file.with_name(f".{file.name}.new")
            fresh.write_bytes(body)
            fresh.replace(file)
        self.answer(201, b"")

    def answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        """An answer, right unless `length` says otherwise."""
        lines = {**(headers or {}), "Content-Length": str(len(body) if length is None else length)}
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        self.send(head.encode() + body)

    def send(self, data: bytes) -> None:
        """Raw bytes, each piece counted before a client can have it."""
        for at in range(0, len(data), 65536):
            piece = data[at : at + 65536]
            self.site.sent += len(piece)
            self.wfile.write(piece)

    def hang_up(self) -> None:
        """Close the connection, in the middle of whatever it was."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _admitted(self) -> bool:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.site.asked.append((self.command, self.path, headers))
        if self.site.token and headers.get("authorization") != f"Bearer {self.site.token}":
            self.answer(401, b"show your token")
            return False
        return True

    def _file(self) -> Path:
        return self.site.folder / self.path.partition("?")[0].lstrip("/")

    def _marks(self, file: Path, content: bytes) -> dict[str, str]:
        marks = {"ETag": _etag(content)} if self.site.etags else {}
        return marks | ({"Last-Modified": formatdate(file.stat().st_mtime, usegmt=True)} if self.site.dates else {})

    def _is_known(self, file: Path, content: bytes) -> bool:
        if self.site.etags and "If-None-Match" in self.headers:
            return bool(self.headers["If-None-Match"] == _etag(content))
        if self.site.dates and "If-Modified-Since" in self.headers:
            since = parsedate_to_datetime(self.headers["If-Modified-Since"]).timestamp()
            return int(file.stat().st_mtime) <= since
        return False

    def _may_write(self, file: Path) -> bool:
        if "If-Match" in self.headers:
            return file.is_file() and self.headers["If-Match"] == _etag(file.read_bytes())
        return not ("If-None-Match" in self.headers and file.is_file())


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def stalls(handler: _Handler, content: bytes) -> None:
    """Sends half and then nothing, until the server ends."""
    handler.answer(200, content[: len(content) // 2], length=len(content))
    handler.site.closing.wait(PATIENCE)
    handler.hang_up()


def dies(handler: _Handler, content: bytes) -> None:
    """Sends half and hangs up."""
    handler.answer(200, content[: len(content) // 2], length=len(content))
    handler.hang_up()


def goes_on(handler: _Handler, content: bytes) -> None:
    """A body without end, in chunks."""
    handler.send(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not handler.site.closing.is_set():
        handler.send(b"10000\r\n" + b" " * 65536 + b"\r\n")


def boasts(handler: _Handler, content: bytes) -> None:
    """Announces ten gigabytes, and begins to send them."""
    handler.answer(200, b"", length=10 * 1024**3)
    while not handler.site.closing.is_set():
        handler.send(b" " * 65536)


def says_too_little(handler: _Handler, content: bytes) -> None:
    """Announces ten bytes less than it sends."""
    handler.answer(200, content, length=len(content) - 10)
    handler.hang_up()


def breaks_down(handler: _Handler, content: bytes) -> None:
    """500."""
    handler.answer(500, b"<b>secret inner workings</b>")


def goes_round(handler: _Handler, content: bytes) -> None:
    """Redirects to itself."""
    handler.answer(302, b"", {"Location": handler.path})


def sends_to(url: str) -> Habit:
    """Redirects elsewhere."""
    return lambda handler, content: handler.answer(302, b"", {"Location": url})


@pytest.fixture
def static_site(tmp_path: Path) -> Iterator[StaticSite]:
    """A server of the test's own, over an empty folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = StaticSite(folder).start()
    yield site
    site.stop()
