"""Jobs over HTTP, by a client that costs little: one connection, the standard library, nothing kept."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import urlencode

from benchmarks.load import LoadFailed

_ROWS_IN_A_PIECE = 2000


class Caller:
    """One connection to a gateway, opened again when it was lost. Not for several threads."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[Any, float]:
        """The answer's document and how long it took in seconds. Raises LoadFailed for an answer that is none."""
        began = time.perf_counter()
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {"Content-Type": "application/json"} if sent else {})
        document = self._answer(method, path)
        return document, time.perf_counter() - began

    def upload(self, items: int, scraper: str, *, site: str = "", **options: Any) -> str:
        """A job of so many rows of CSV, made while they are sent. Its id. `site` is the URL of a site whose pages they
        are; empty: some that nobody fetches."""
        query = {
            name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in options.items()
        }
        path = "/api/jobs?" + urlencode({"scraper": scraper, **query})
        headers = {"Content-Type": "text/csv", "Transfer-Encoding": "chunked"}
        self._connection.request("POST", path, csv_rows(items, site), headers, encode_chunked=True)
        return str(self._answer("POST", path)["id"])

    def _answer(self, method: str, path: str) -> Any:
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise LoadFailed(f"{method} {path}: {answer.status} {data[:500].decode('utf-8', 'replace')}")
        return json.loads(data)


def csv_rows(items: int, site: str = "") -> Iterator[bytes]:
    """A list of addresses, those of no site with numbers, in pieces."""
    yield b"url\n" if site else b"url,n\n"
    for first in range(0, items, _ROWS_IN_A_PIECE):
        rows = range(first, min(items, first + _ROWS_IN_A_PIECE))
        if site:
            yield "".join([f"{site}p{n}.html\n" for n in rows]).encode()
        else:
            yield "".join([f"https://shop{n % 7}.example/p/{n},{n}\n" for n in rows]).encode()
