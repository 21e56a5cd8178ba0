"""Heads of requests: only what can be read in one way."""

import pytest

from scrapeyard.engines.browser.proxy.heads import BadHead, read_answer, read_request

GOOD = b"GET http://shop.example/a?b HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3"


def test_a_request_is_read() -> None:
    head = read_request(GOOD + b"\r\nProxy-Authorization: basic dXNlcjpwYTpzcw==\r\n\r\n")
    assert (head.method, head.target, head.body_size) == ("GET", "http://shop.example/a?b", 3)
    assert head.credentials == ("user", "pa:ss")
    assert head.plain_url() == ("shop.example", "/a?b")


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("http://shop.example", ("shop.example", "/")),
        ("HTTP://shop.example?x", ("shop.example", "/?x")),
        ("http://[::1]:8000/%2e%2e/", ("[::1]:8000", "/%2e%2e/")),
    ],
)
def test_urls_are_taken_apart(target: str, parts: tuple[str, str]) -> None:
    assert read_request(f"GET {target} HTTP/1.1\r\n\r\n".encode()).plain_url() == parts


@pytest.mark.parametrize(
    "target", ["/", "*", "https://a/", "ftp://a/", "ws://a/", "http:/a", "//a/", "a:80", "http://a/#b", "file:///etc"]
)
def test_other_targets_are_not(target: str) -> None:
    with pytest.raises(BadHead):
        read_request(f"GET {target} HTTP/1.1\r\n\r\n".encode()).plain_url()


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\r\n\r\n",
        b"GET http://a/ HTTP/2.0\r\n\r\n",
        b"GET http://a/\r\n\r\n",
        b"GET  http://a/ HTTP/1.1\r\n\r\n",
        b"GET\thttp://a/ HTTP/1.1\r\n\r\n",
        b" GET http://a/ HTTP/1.1\r\n\r\n",
        b"GET http://a/ b HTTP/1.1\r\n\r\n",
        b"GET http://a/\x80 HTTP/1.1\r\n\r\n",
        b"G(T http://a/ HTTP/1.1\r\n\r\n",
        b"GET http://a/ HTTP/1.1\nHost: b\r\n\r\n",
        b"GET http://a/ HTTP/1.1\rHost: b\r\n\r\n",
        GOOD + b"\nTransfer-Encoding: chunked\r\n\r\n",
        GOOD + b"\r\n folded\r\n\r\n",
        GOOD + b"\r\nX : y\r\n\r\n",
        GOOD + b"\r\nno colon\r\n\r\n",
        GOOD + b"\r\n: empty\r\n\r\n",
        GOOD + b"\r\nX: a\x00b\r\n\r\n",
        GOOD + b"\r\nX: a\rb\r\n\r\n",
        GOOD + b"\r\nhost: other.example\r\n\r\n",
        GOOD + b"\r\ncontent-length: 3\r\n\r\n",
        GOOD + b"\r\nTransfer-Encoding: chunked\r\n\r\n",
        GOOD + b"\r\nTransfer-Encoding: identity\r\n\r\n",
        GOOD.replace(b": 3", b": +3") + b"\r\n\r\n",
        GOOD.replace(b": 3", b": 3, 3") + b"\r\n\r\n",
        GOOD.replace(b": 3", b": -1") + b"\r\n\r\n",
        GOOD.replace(b": 3", b": 0x3") + b"\r\n\r\n",
        GOOD.replace(b": 3", b": 1" + b"0" * 15) + b"\r\n\r\n",
        GOOD + b"\r\nX: y" * 300 + b"\r\n\r\n",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(head: bytes) -> None:
    with pytest.raises(BadHead):
        read_request(head)


def test_answers_are_read_as_browsers_do() -> None:
    head = read_answer(b"HTTP/1.1 200\nX: a\n  b\nno colon\nBad Name: 1\nY:2 \r\n\n")
    assert (head.status, head.reason) == (200, b"")
    assert head.fields == ((b"X", b"a b"), (b"Y", b"2"))
    for bad in (b"", b"HTTP/2 200 OK\r\n\r\n", b"<html>\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n"):
        with pytest.raises(BadHead):
            read_answer(bad)


@pytest.mark.parametrize(
    ("fields", "is_chunked", "size"),
    [
        (b"", False, None),
        (b"Content-Length: 5", False, 5),
        (b"Content-Length: five", False, None),
        (b"Content-Length: 5\nTransfer-Encoding: Chunked", True, None),
        (b"Transfer-Encoding: chunked, identity", True, None),
        (b"Transfer-Encoding: gzip\nTransfer-Encoding: chunked", True, None),
        (b"Transfer-Encoding: gzip", False, None),
    ],
)
def test_where_an_answer_ends(fields: bytes, is_chunked: bool, size: int | None) -> None:
    head = read_answer(b"HTTP/1.1 200 OK\n" + fields + b"\n\n")
    assert (head.is_chunked, head.body_size) == (is_chunked, size)


def test_connection_cannot_name_the_length_away() -> None:
    head = read_request(GOOD + b"\r\nConnection: content-length, x\r\nX: 1\r\n\r\n")
    sent = head.forwarded("shop.example", "/a?b")
    assert sent == b"GET /a?b HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
