"""A running server, over HTTP. The standard library's client: nothing starts faster, and Ctrl-C ends a wait."""

import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from scrapeyard import __version__
from scrapeyard.cli.common.server_address import DEFAULT_URL, key_for
from scrapeyard.errors import BadRequest, ScrapeyardError


class _Hearing(HTTPConnection):
    """Gives up connecting soon, however long the response may take. Reads the response of a server that refuses an
    upload and closes the connection in the middle of it."""

    def connect(self) -> None:
        patience = self.timeout
        self.timeout = CONNECT_SECONDS if patience is None else min(CONNECT_SECONDS, patience)
        _check_name(self.host, self.port, self.timeout)
        try:
            super().connect()
        except TimeoutError:
            raise NotConnected(f"no connection within {self.timeout:g} s") from None
        finally:
            self.timeout = patience
        self.sock.settimeout(patience)

    def request(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().request(*args, **kwargs)
        except (BrokenPipeError, ConnectionResetError):
            if self.sock is None:
                raise


class _HearingTls(_Hearing, HTTPSConnection):
    """The same over TLS."""


class PlainHandler(HTTPHandler):
    """Calls by http."""

    def http_open(self, req: Request) -> HTTPResponse:
        """Called by urllib."""
        return self.do_open(_Hearing, req)


class TlsHandler(HTTPSHandler):
    """Calls by https."""

    def https_open(self, req: Request) -> HTTPResponse:
        """Called by urllib."""
        context = getattr(self, "_context", None)
        return self.do_open(_HearingTls, req, context=context)


PATIENCE_SECONDS = 30.0
CONNECT_SECONDS = 5.0
"""For finding and reaching a server: with a wrong name or port, nobody waits longer."""
UPLOAD_SECONDS = 600.0
"""For uploads: the server checks a long list while it arrives and may pause reading meanwhile."""
SILENCE_SECONDS = 60.0
"""For event streams: the server sends a keep-alive four times as often."""
MAX_ANSWER = 512 * 1024 * 1024
_PIECE = 256 * 1024
_PLACES = 20
"""Maximum errors shown."""


class NotConnected(OSError):
    """There was no connection in time."""


class ServerUnreachable(ScrapeyardError):
    """No answer from the server. Start it with `scrapeyard up`, or give its address with --server."""

    code = "server_unreachable"


class Refused(ScrapeyardError):
    """The server answered that it cannot: try again later, or read its log."""

    code = "refused"

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: str | None = None) -> None:
        super().__init__(_words(status, problem) + (f" (after {retry_after} s)" if retry_after else ""))
        self.status = status
        self.document = problem


class RefusedCall(Refused, BadRequest):
    """The server answered that the call is wrong: correct what the message names."""


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    data: Any
    number: int | None = None
    """The id from which the stream can be resumed; None if the event is not repeated."""


class Server:
    """One server by its address. Raises BadRequest if the address is invalid."""

    def __init__(self, url: str, key: str | None = None) -> None:
        """Without a `key`, the one of the environment or of `scrapeyard login` is sent."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise BadRequest(f"{url[:200]!r} is not a server's address; write {DEFAULT_URL}")
        self.url = url.rstrip("/")
        self._key = key_for(self.url) if key is None else key
        self._opener = _opener(parts.hostname)

    def get(self, path: str, *, patience: float = PATIENCE_SECONDS, **query: Any) -> Any:
        """The document at a path. Raises Refused or ServerUnreachable."""
        return self.call("GET", path, patience=patience, **query)[1]

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        patience: float = PATIENCE_SECONDS,
        **query: Any,
    ) -> tuple[int, Any]:
        """Status and document of a successful response; the document is None if there is none (204). Raises Refused or
        ServerUnreachable."""
        with self._answer(self._request(method, path, query, body, headers), patience) as answer:
            data = answer.read(MAX_ANSWER + 1)
            return answer.status, None if answer.status == 204 else self._document(data)

    def upload(
        self, path: str, pieces: Iterable[bytes], length: int | None, headers: Mapping[str, str], **query: Any
    ) -> Any:
        """Stream bytes and return the document of the response; `length` is None if it is not known in advance.
        Raises Refused, possibly before all was sent, or ServerUnreachable."""
        request = self._request("POST", path, query, headers=headers)
        request.data = pieces  # this drops a length that was set before
        size = ("Transfer-Encoding", "chunked") if length is None else ("Content-Length", str(length))
        request.add_header(*size)
        with self._answer(request, UPLOAD_SECONDS) as answer:
            return self._document(answer.read(MAX_ANSWER + 1))

    @contextmanager
    def download(self, path: str) -> Iterator[Iterator[bytes]]:
        """The bytes at a path, in chunks. Also raises ServerUnreachable if fewer arrive than were announced."""
        with self._answer(self._request("GET", path), PATIENCE_SECONDS) as answer:
            yield self._pieces(answer)

    @contextmanager
    def rest(self, path: str, first: int, tag: str) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The offset and the bytes from there: `first` if the file still has this tag, otherwise 0."""
        headers = {"Range": f"bytes={first}-", "If-Range": tag} if first else {}
        with self._answer(self._request("GET", path, headers=headers), PATIENCE_SECONDS) as answer:
            yield first if answer.status == 206 else 0, self._pieces(answer)

    @contextmanager
    def events(self, path: str, after: int | None = None) -> Iterator[Iterator[Event]]:
        """Each server-sent event until the stream ends; those numbered higher than `after`."""
        more = {} if after is None else {"Last-Event-ID": str(after)}
        request = self._request("GET", path, headers={"Accept": "text/event-stream", **more})
        with self._answer(request, SILENCE_SECONDS) as answer:
            if answer.headers.get_content_type() != "text/event-stream":
                raise ServerUnreachable(f"{self.url} did not answer with events; is it a Scrapeyard server?")
            yield self._events(answer)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Request:
        asked = {key: value for key, value in (query or {}).items() if value is not None}
        url = f"{self.url}{path}" + (f"?{urlencode(asked, doseq=True)}" if asked else "")
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, method=method)  # noqa: S310  the scheme was checked
        request.add_header("User-Agent", f"scrapeyard/{__version__}")
        request.add_header("Accept", "application/json")
        request.add_header("Prefer", "dialect=own")
        if self._key:
            request.add_header("Authorization", f"Bearer {self._key}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        return request

    @contextmanager
    def _answer(self, request: Request, patience: float) -> Iterator[HTTPResponse]:
        with self._reaching():
            try:
                answer = self._opener.open(request, timeout=patience)
            except HTTPError as error:
                with error:
                    raise _refused(error.code, error.read(MAX_ANSWER), error.headers.get("Retry-After")) from None
            with answer:
                yield answer

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (TimeoutError, HTTPException, ConnectionError, ssl.SSLError, socket.gaierror, URLError) as error:
            if isinstance(error, BrokenPipeError) and not isinstance(error, URLError):
                raise
            raise ServerUnreachable(_unreachable(self.url, getattr(error, "reason", None) or error)) from None

    def _document(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise ServerUnreachable(f"{self.url} did not answer with JSON; is it a Scrapeyard server?") from None

    def _pieces(self, answer: HTTPResponse) -> Iterator[bytes]:
        left = answer.length
        while piece := answer.read(_PIECE):
            left = None if left is None else left - len(piece)
            yield piece
        if left:
            raise ServerUnreachable(f"{self.url} hung up {left} bytes before the end; try again")

    def _events(self, answer: HTTPResponse) -> Iterator[Event]:
        name, number = "", None
        while line := answer.readline(MAX_ANSWER):
            field, _, value = line.rstrip(b"\r\n").partition(b": ")
            if field == b"id":
                number = int(value) if value.isdigit() else None
            elif field == b"event":
                name = value.decode("utf-8", "replace")
            elif field == b"data":
                yield Event(name, self._document(value), number)
                number = None


def _check_name(host: str, port: int, seconds: float) -> None:
    """Look the name up in a thread: a resolver that nobody answers may take half a minute. Raises NotConnected or what
    the resolver raises."""
    found: list[object] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=look_up, name="look-up", daemon=True)
    thread.start()
    thread.join(seconds)
    if not found:
        raise NotConnected(f"the name {host} was not found within {seconds:g} s")
    if isinstance(found[0], OSError):
        raise found[0]


def _unreachable(url: str, reason: object) -> str:
    """Why there is no answer and what to do, in a line."""
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    if isinstance(reason, socket.gaierror):
        return f"no host named {urlsplit(url).hostname} ({words}); name another with --server or `scrapeyard login URL`"
    return f"no answer from {url} ({words}); start one with `scrapeyard up`, or name another with --server"


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects: the API sends none, and another host must not receive the call."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener(host: str) -> OpenerDirector:
    """An opener that uses the environment's proxies for every host except this machine."""
    return build_opener(_NoRedirects, PlainHandler, TlsHandler, *([ProxyHandler({})] if is_loopback(host) else []))


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _refused(status: int, body: bytes, retry_after: str | None) -> Refused:
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        problem = None
    kind = RefusedCall if 400 <= status < 500 and status != 429 else Refused
    return kind(status, problem if isinstance(problem, dict) else {}, retry_after)


def _words(status: int, problem: Mapping[str, Any]) -> str:
    """One line for each error, then the remedy."""
    if "detail" not in problem:
        return f"the server answered {status} without saying why; is it a Scrapeyard server?"
    places = [f"  {error.get('path')}: {error.get('message')}" for error in _tables(problem, "errors")]
    places += [f"  line {row.get('line')}: {row.get('reason')}" for row in _tables(problem, "rows")]
    head = problem.get("title") if places else problem["detail"]
    remedy = _REMEDIES.get(str(problem.get("code")), str(problem.get("remedy") or ""))
    return "\n".join([str(head), *places, remedy]).rstrip()


def _tables(problem: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = problem.get(name)
    return [each for each in found if isinstance(each, dict)][:_PLACES] if isinstance(found, list) else []


_REMEDIES = {
    "bad_list": "",
    "bad_request": "",
    "bad_rows": "Correct them, or give --bad-rows skip to leave them out.",
    "bad_input": "`scrapeyard scrapers show SITE/TASK` shows the schema.",
    "conflict": "",
    "unauthenticated": "Set SCRAPEYARD_KEY, or run `scrapeyard login URL --key -`.",
    "invalid": "",
    "scraper_not_found": "`scrapeyard scrapers` lists what there is.",
}
"""Remedies for commands, where the API's own text speaks of requests."""
