"""How a built-in scraper asks for its page: the input's `headers`, `cookies`, `method`, `body`,
`engine` and `browser`."""

from typing import Any

import msgspec

from scrapeyard.engines.http.checks import METHODS
from scrapeyard.engines.port import BrowserWish, FetchRequest
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard_sdk.fetch import fetch_request

MAX_HEADERS = 50
MAX_COOKIES = 50
MAX_BODY = 200_000
"""Characters of a body that is text."""
_NAME = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$"

URL: dict[str, Any] = {
    "type": "string",
    "format": "uri",
    "pattern": "^https?://",
    "maxLength": 8192,
    "description": "The page to fetch.",
}
REQUEST: dict[str, Any] = {
    "headers": {
        "type": "object",
        "maxProperties": MAX_HEADERS,
        "propertyNames": {"format": "request-header", "maxLength": 128},
        "additionalProperties": {"type": "string", "maxLength": 8192, "pattern": "^[\\t\\x20-\\x7e\\x80-\\xff]*$"},
        "description": "Headers of the request. Those that the engine sets itself, such as `Host`, are refused.",
    },
    "cookies": {
        "type": "object",
        "maxProperties": MAX_COOKIES,
        "propertyNames": {"pattern": _NAME},
        "additionalProperties": {"type": "string", "maxLength": 4096, "pattern": "^[\\x20-\\x3a\\x3c-\\x7e]*$"},
        "description": "Cookies of the request, by name. Not together with a `Cookie` header.",
    },
    "method": {
        "type": "string",
        "enum": list(METHODS),
        "description": "Default: `GET`, or `POST` if there is a `body`.",
    },
    "body": {
        "if": {"type": "object"},
        "then": {
            "properties": {
                "json": {"description": "Sent as JSON."},
                "form": {
                    "type": "object",
                    "maxProperties": 500,
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                    "description": "Sent as a web form does.",
                },
            },
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
        "else": {"type": "string", "maxLength": MAX_BODY},
        "description": 'What is sent: text as it is, `{"json": …}` or `{"form": {…}}`.',
    },
    "engine": {
        "type": "string",
        "enum": ["auto", "http", "browser", "light", "solver"],
        "description": "How the page is had. Default: `auto`, plain HTTP, and a browser only where that does not do; "
        "`light` is a small browser without layout. "
        "`browser` if `browser` says how.",
    },
    "browser": {
        "type": "object",
        "description": "What a browser does with the page before it is read.",
        "additionalProperties": False,
        "properties": {
            "wait_for": {"type": "string", "maxLength": 4096, "description": "Selector of an element to wait for."},
            "wait_until": {
                "type": "string",
                "enum": ["load", "domcontentloaded", "networkidle", "commit"],
                "description": "State of loading to wait for. Default: `load`.",
            },
            "scroll": {
                "type": "integer",
                "minimum": 0,
                "maximum": 1000,
                "description": "Times that the page is scrolled to its end, at most, while it grows.",
            },
            "screenshot": {"type": "boolean", "description": "Keep the artifact `screenshot.png`."},
            "full_page": {"type": "boolean", "description": "Of the screenshot: the whole page, not the window."},
            "device": {"type": "string", "maxLength": 200, "description": "Device to look like, as `iPhone 15`."},
            "locale": {"type": "string", "maxLength": 35, "description": "Language, as `de-DE`."},
            "timezone": {"type": "string", "maxLength": 64, "description": "Time zone, as `Europe/Berlin`."},
            "block": {
                "type": "array",
                "maxItems": 5,
                "items": {"type": "string", "enum": ["image", "media", "font", "stylesheet", "tracker"]},
                "description": "Kinds of requests that are not made.",
            },
        },
    },
}
"""The parts of an input that say how the page is asked for."""


def request_of(given: dict[str, Any]) -> FetchRequest:
    """The request for the page of a valid input. Raises FetchFailed (`fetch_not_allowed`)."""
    if REQUEST.keys().isdisjoint(given):
        return FetchRequest(url=given["url"])
    options: dict[str, Any] = {"headers": _headers(given), "method": given.get("method")}
    body = given.get("body")
    options |= body if isinstance(body, dict) else {"body": body}
    if isinstance(form := options.get("form"), dict):
        options["form"] = {name: _field(value) for name, value in form.items()}
    head, raw = fetch_request(given["url"], options)
    wish = msgspec.convert(given["browser"], BrowserWish) if "browser" in given else None
    return FetchRequest(
        url=given["url"],
        method=head["method"],
        headers=head["headers"],
        body=raw,
        engine=given.get("engine") or ("auto" if wish is None else "browser"),
        browser=wish,
    )


def _headers(given: dict[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = given.get("headers") or {}
    cookies: dict[str, str] = given.get("cookies") or {}
    if not cookies:
        return headers
    if any(name.lower() == "cookie" for name in headers):
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, "cookies and a Cookie header are given; give one of them")
    return {**headers, "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def _field(value: Any) -> Any:
    """As JSON writes it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else value
