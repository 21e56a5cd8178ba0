"""Git over HTTP: git's own `http-backend` behind a small server on 127.0.0.1 that can count, refuse, stall and die."""

import base64
import contextlib
import gzip
import os
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.leaks import PATIENCE
from tests.services.threads import ThreadedServer

MAX_BODY = 64 << 20


class GitServer:
    """Serves every bare repository in `folder`. The attributes may be changed while it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.login: tuple[str, str] | None = None
        """User and password that are asked for; None: nobody is asked."""
        self.redirect = ""
        """Where every request is sent instead."""
        self.cut_packs: int | None = None
        """Bytes of a pack after which the connection is reset; None: never."""
        self.stall_packs: threading.Event | None = None
        """What the second half of a pack waits for."""
        self.stalled = threading.Event()
        """Set when a pack waits."""
        self.sent = 0
        """Bytes of all answers, headers included."""
        self.packs = 0
        """Requests that ask for objects."""
        self.logins: list[str | None] = []
        """The Authorization header of every request."""
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadedServer(handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def url(self, name: str = "scrapers.git", login: str = "") -> str:
        """Of one repository."""
        return f"http://{login}127.0.0.1:{self.port}/{name}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.stall_packs is not None:
            self.stall_packs.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def expected(self) -> str | None:
        """The Authorization header that is let in; None: any."""
        if self.login is None:
            return None
        return "Basic " + base64.b64encode(":".join(self.login).encode()).decode()


class _Handler(BaseHTTPRequestHandler):
    owner: GitServer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def log_message(self, *_: object) -> None:
        """Tests read what they need from the owner."""

    def _answer(self, body: bytes) -> None:
        self.close_connection = True
        owner = self.owner
        owner.logins.append(self.headers.get("Authorization"))
        if owner.redirect:
            self._say(b"HTTP/1.1 302 Found\r\nLocation: " + (owner.redirect + self.path).encode() + b"\r\n\r\n")
        elif owner.expected() not in (None, self.headers.get("Authorization")):
            self._say(b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="git"\r\nContent-Length: 0\r\n\r\n')
        else:
            self._serve(body)

    def _serve(self, body: bytes) -> None:
        plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        is_pack = b"command=fetch" in plain
        self.owner.packs += is_pack
        environment = self._environment(len(body))
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=environment, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        status = next((line[8:] for line in head.split(b"\r\n") if line.startswith(b"Status: ")), b"200 OK")
        self._say(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n" + head + b"\r\n\r\n")
        if is_pack:
            self._send_pack(content)
        else:
            self._say(content)

    def _send_pack(self, content: bytes) -> None:
        owner = self.owner
        if owner.cut_packs is not None:
            self._say(content[: owner.cut_packs])
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            self.connection.close()
            return
        half = len(content) // 2
        self._say(content[:half])
        if owner.stall_packs is not None:
            owner.stalled.set()
            owner.stall_packs.wait(PATIENCE)
        self._say(content[half:])

    def _say(self, content: bytes) -> None:
        with contextlib.suppress(OSError):
            self.wfile.write(content)
            self.wfile.flush()
            self.owner.sent += len(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(min(int(self.headers.get("Content-Length", 0)), MAX_BODY))
        return b"".join(iter(self._chunk, b""))

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline(), 16)
        content = self.rfile.read(size)
        self.rfile.readline()
        return content

    def _environment(self, length: int) -> dict[str, str]:
        path, _, query = self.path.partition("?")
        return {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.owner.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
