"""A web site of linked pages on a free loopback port, some of which can be held back."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.services.threads import ThreadedServer


class LinkedSite(ThreadedServer):
    """Serves pages that link to each other, and files. Counts what is asked for."""

    def __init__(self, pages: Mapping[str, Sequence[str]], files: Mapping[str, bytes]) -> None:
        super().__init__(_Handler)
        self.pages = pages
        self.files = files
        self.asked: Counter[str] = Counter()
        self.held: frozenset[str] = frozenset()
        """Pages that are answered only after `released`."""
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """Without a slash at the end."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LinkedSite
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path
        self.server.asked[path] += 1
        if path in self.server.held:
            self.server.released.wait()
        links = self.server.pages.get(path)
        body = self.server.files.get(path, b"")
        if links is not None and not body:
            anchors = "".join(f'<p><a href="{link}">to {link}</a></p>' for link in links)
            body = f"<html><head><title>Page {path}</title></head><body><h1>{path}</h1>{anchors}</body></html>".encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if links is not None else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def linked_site(pages: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None = None) -> Iterator[LinkedSite]:
    """Serve until the block ends."""
    site = LinkedSite(pages, files or {})
    thread = threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        site.shutdown()
        site.server_close()
        thread.join()
