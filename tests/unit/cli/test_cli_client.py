"""The command line's HTTP client against servers that misbehave."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from scrapeyard.cli.common.client import Refused, RefusedCall, Server, ServerUnreachable
from scrapeyard.cli.runs.runs import logs
from scrapeyard.errors import BadRequest
from tests.services.threads import ThreadedServer

RUN = "run_" + "0" * 32


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[str]]]:
    """Each request gets the next of these raw answers; yields the address and the paths that were asked for."""
    left, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.wfile.write(left.pop(0))
            self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    with ThreadedServer(Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def answer(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://x", "http://", "http://user:secret@x/"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadRequest, match="address"):
        Server(url)


@pytest.mark.parametrize("body", [b"<html>", b"", b"[" * 100_000])
def test_an_answer_that_is_not_json_is_told(body: bytes) -> None:
    with answering(answer("200 OK", body)) as (url, _), pytest.raises(ServerUnreachable, match="JSON"):
        Server(url).get("/")


def test_a_server_that_hangs_up_is_unreachable() -> None:
    with answering(b"") as (url, _), pytest.raises(ServerUnreachable, match="no answer"):
        Server(url).get("/")


def test_redirects_are_not_followed() -> None:
    moved = answer("302 Found", b"", "Location: http://127.0.0.1:1/")
    with answering(moved) as (url, asked), pytest.raises(Refused, match="302"):
        Server(url).get("/")
    assert asked == ["/"]


def test_a_busy_server_says_when_to_come_again() -> None:
    body = b'{"detail": "too many runs wait", "code": "overloaded", "remedy": "Slow down."}'
    with answering(answer("503 Busy", body, "Retry-After: 7")) as (url, _), pytest.raises(Refused) as told:
        Server(url).get("/")
    assert not isinstance(told.value, RefusedCall)
    assert told.value.message == "too many runs wait\nSlow down. (after 7 s)"


def test_wrong_places_stand_on_lines_of_their_own() -> None:
    body = b'{"title": "Wrong", "detail": "x", "code": "invalid", "errors": [{"path": "/a", "message": "bad"}]}'
    with answering(answer("422 No", body)) as (url, _), pytest.raises(RefusedCall, match="Wrong\n  /a: bad"):
        Server(url).get("/")


def test_a_download_that_is_cut_is_not_taken_for_whole() -> None:
    cut = answer("200 OK", b"x" * 10)[:-4]
    with answering(cut) as (url, _), Server(url).download("/") as pieces, pytest.raises(ServerUnreachable, match="4"):
        list(pieces)


def test_a_stream_that_is_cut_is_taken_up_again_and_no_line_shown_twice(capfd: pytest.CaptureFixture[str]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    first = b'id: 1\nevent: log\ndata: {"at_ms": 5.0, "stream": "stdout", "text": "one"}\n\n: still here\n\n'
    second = b'id: 2\nevent: log\ndata: {"at_ms": 1.0, "stream": "stdout", "text": "two"}\n\n'
    end = b'event: end\ndata: {"status": "succeeded", "exit_reason": "succeeded", "error": null}\n\n'
    with answering(head + first, head + first + second + end) as (url, asked):
        logs(RUN, follow=True, url=url)
    assert capfd.readouterr() == ("one\ntwo\n", "scrapeyard: succeeded\n")
    assert asked == [f"/api/scrape/{RUN}/events"] * 2
