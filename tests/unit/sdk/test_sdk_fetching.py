"""What a script asks for, as it goes over the wire."""

import json
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import msgspec
import pytest

from scrapeyard.engines.port import BrowserWish, FetchRequest
from scrapeyard.sandbox.handles.frames import FetchFrame, parse, request_of
from scrapeyard_sdk.fetch import FetchOptions, fetch_request, multipart
from scrapeyard_sdk.page import Page

URL = "http://shop.example/p"


def asked(url: str = URL, **options: Any) -> tuple[dict[str, Any], bytes]:
    return fetch_request(url, options)


def test_a_plain_request_says_little() -> None:
    head, body = asked()
    assert body == b""
    assert head == {"t": "fetch", "url": URL}
    frame = parse(json.dumps({**head, "n": 1}).encode())
    assert isinstance(frame, FetchFrame)
    assert request_of(frame, body) == FetchRequest(url=URL)
    assert frame.method == "GET"
    assert frame.headers == {}
    assert frame.timeout_seconds is None
    assert frame.follow_redirects is True
    assert frame.max_bytes is None


@pytest.mark.parametrize(
    ("url", "params", "expected"),
    [
        (URL, {"q": "a b", "n": [1, 2]}, URL + "?q=a+b&n=1&n=2"),
        (URL + "?x=1", [("q", "é")], URL + "?x=1&q=%C3%A9"),
        (URL + "#part", {"q": 1}, URL + "?q=1#part"),
        (URL, {}, URL),
    ],
)
def test_params(url: str, params: Any, expected: str) -> None:
    assert asked(url, params=params)[0]["url"] == expected


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        ({"json": {"a": 1}}, "application/json", b'{"a": 1}'),
        ({"json": 0}, "application/json", b"0"),
        ({"form": {"a": "b c"}}, "application/x-www-form-urlencoded", b"a=b+c"),
        ({"body": "é"}, None, "é".encode()),
        ({"body": b"\0"}, None, b"\0"),
    ],
)
def test_bodies(options: dict[str, Any], kind: str | None, expected: bytes) -> None:
    head, body = asked(**options)
    assert (head["method"], head["headers"].get("content-type"), body) == ("POST", kind, expected)
    typed, _ = asked(headers={"Content-Type": "x/y"}, method="put", **options)
    assert (typed["method"], typed["headers"]) == ("PUT", {"Content-Type": "x/y"})


def test_a_form_with_files_is_what_servers_read() -> None:
    files = {"doc": ('a"\r\n.pdf', b"%PDF\0\r\n--", "application/pdf"), "note": "plain", "two": ("n.txt", "é")}
    head, body = asked(form={"name": "Kettle", "n": 2}, files=files)
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + head["headers"]["content-type"].encode() + b"\r\n\r\n" + body
    )
    parts = list(message.iter_parts())
    names = [part.get_param("name", header="content-disposition") for part in parts]
    assert names == ["name", "n", "doc", "note", "two"]
    assert [part.get_payload(decode=True) for part in parts] == [
        b"Kettle",
        b"2",
        b"%PDF\0\r\n--",
        b"plain",
        "é".encode(),
    ]
    assert parts[2].get_filename() == "a%22%0D%0A.pdf"
    assert parts[2].get_content_type() == "application/pdf"
    assert parts[3].get_content_type() == "application/octet-stream"


def test_equal_forms_are_equal_bytes() -> None:
    assert multipart([("a", "1")], [("f", b"x")]) == multipart([("a", "1")], [("f", b"x")])
    assert multipart([("a", "1")], [("f", b"x")]) != multipart([("a", "2")], [("f", b"x")])


@pytest.mark.parametrize(
    ("given", "expected"),
    [((0, 99), "bytes=0-99"), ((500, None), "bytes=500-"), ([5, 5], "bytes=5-5"), ("bytes=-10", "bytes=-10")],
)
def test_ranges(given: Any, expected: str) -> None:
    assert asked(range=given)[0]["headers"] == {"range": expected}


def test_wishes_travel_when_they_are_there() -> None:
    wishes = {"session": "me", "profile": "firefox", "proxy": "home", "engine": "http", "certificate": "PEM"}
    head, _ = asked(**wishes, max_age=0, timeout=2, max_bytes=10, follow_redirects=False)
    assert {name: head[name] for name in wishes} == wishes
    assert (head["max_age_seconds"], head["timeout_seconds"], head["max_bytes"]) == (0.0, 2.0, 10)
    assert head["follow_redirects"] is False


def test_what_a_browser_is_asked_for_reaches_the_engine() -> None:
    wishes = {
        "wait_for": "h1",
        "wait_until": "networkidle",
        "device": "iPhone 15",
        "locale": "de-DE",
        "block": ["font"],
    }
    head, body = asked(**wishes, engine="browser", scroll=True, screenshot=True, full_page=True, timezone="UTC")
    frame = parse(msgspec.json.encode({**head, "n": 1}))
    assert isinstance(frame, FetchFrame)
    assert frame.browser is not None
    assert frame.browser.screenshot == "screenshot.png"
    request = request_of(frame, body)
    assert request.engine == "browser"
    assert request.browser == BrowserWish(
        wait_for="h1", wait_until="networkidle", scroll=20, screenshot=True, full_page=True, device="iPhone 15",
        locale="de-DE", timezone="UTC", block=("font",),
    )  # fmt: skip
    named = asked(engine="browser", scroll=3, screenshot="top.png")[0]["browser"]
    assert named == {"scroll": 3, "screenshot": "top.png"}
    assert "browser" not in asked(engine="browser", scroll=False, screenshot=False)[0]


@pytest.mark.parametrize(
    "options",
    [
        *({"timeout": value} for value in (0, -1, "x", float("nan"), 1e9)),
        *({"max_age": value} for value in (-1, "x", float("inf"))),
        *({"range": value} for value in ((5, 4), (-1, 2), ("a", "b"))),
        {"engine": "telepathy"},
        {"wait_for": "h1"},
        {"engine": "http", "screenshot": True},
        *({"engine": "browser", **wrong} for wrong in ({"block": ["x"]}, {"wait_until": "x"}, {"scroll": 1001})),
        {"session": "x" * 65},
        {"headers": {"x": "y" * 70_000}},
        {"max_bytes": 0},
    ],
)
def test_values_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"fetch\(\)"):
        asked(**options)


def test_options_that_do_not_go_together_or_are_none() -> None:
    for options in ({"json": 1, "form": {}}, {"json": 1, "body": b"x"}, {"files": {}, "json": 1}, {"colour": "red"}):
        with pytest.raises(TypeError, match=r"fetch\(\)"):
            asked(**options)


def test_the_list_of_options() -> None:
    assert sorted(FetchOptions.__annotations__) == [
        *("block", "body", "certificate", "device", "engine", "files", "follow_redirects", "form", "full_page"),
        *("headers", "json", "locale", "max_age", "max_bytes", "method", "params", "profile", "proxy", "range"),
        *("screenshot", "scroll", "session", "timeout", "timezone", "wait_for", "wait_until"),
    ]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("120", 120.0), ("0", 0.0), ("999999999999", 86_400.0), ("", None), ("soon", None), ("-5", None)],
)
def test_retry_after_in_seconds(said: str, seconds: float | None) -> None:
    assert Page(url=URL, status=503, headers={"Retry-After": said}).retry_after() == seconds


def test_retry_after_as_a_date() -> None:
    past = Page(url=URL, status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    assert past.retry_after() == 0.0
    future = Page(url=URL, status=503, headers={"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"})
    assert future.retry_after() == 86_400.0
