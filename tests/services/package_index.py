"""A package index on 127.0.0.1 whose answers can be held back: a build then stands still where a test wants."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.leaks import PATIENCE


class PackageIndex:
    """Serves the wheels of a folder. Close `gate` to keep downloads waiting; `asked` tells that one waits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.downloads: list[str] = []
        self.port = 0
        self.status = 200
        """Answered to everything that is asked; 200 serves the wheels."""

    @property
    def url(self) -> str:
        """For environments.index_url."""
        return f"http://user:hidden-password@127.0.0.1:{self.port}/simple"

    def page(self, name: str) -> bytes:
        """The links of one package."""
        links = [
            f'<a href="/files/{each.name}#sha256={hashlib.sha256(each.read_bytes()).hexdigest()}">{each.name}</a>'
            for each in sorted(self.folder.glob("*.whl"))
            if each.name.split("-")[0].replace("_", "-") == name
        ]
        return "<br>".join(links).encode()


@contextmanager
def serve_packages(folder: Path) -> Iterator[PackageIndex]:
    """An index that is up inside the block."""
    index = PackageIndex(folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if index.status != 200:
                self.send_error(index.status)
                return
            name = self.path.strip("/").rpartition("/")[2]
            if self.path.startswith("/simple/"):
                self._answer(index.page(name), "text/html")
            else:
                index.downloads.append(name)
                index.asked.set()
                index.gate.wait(PATIENCE)
                self._answer((folder / name).read_bytes(), "application/octet-stream")

        def do_HEAD(self) -> None:
            self.send_error(405)

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield index
    finally:
        index.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
