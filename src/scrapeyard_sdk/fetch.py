"""A script's fetch options, checked and encoded for the wire."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import urlencode

from scrapeyard_sdk.outcomes import FetchError
from scrapeyard_sdk.text import clean

if TYPE_CHECKING:
    from scrapeyard_sdk.page import Page

MAX_URL = 16 * 1024
ENGINES = ("auto", "http", "browser", "light", "solver")
BLOCKABLE = ("image", "media", "font", "stylesheet", "tracker")
LOAD_STATES = ("load", "domcontentloaded", "networkidle", "commit")
SCROLLS = 20
"""Rounds of `scroll=True`."""
_OF_A_BROWSER = {"wait_for": 4096, "device": 200, "locale": 200, "timezone": 200}
"""Texts that only a browser takes, and how long they may be."""
_BODIES = ("json", "form", "files", "body")

Pairs = Mapping[str, Any] | Sequence[tuple[str, Any]]
File = bytes | str | tuple[str, bytes | str] | tuple[str, bytes | str, str]
"""Content, or (file name, content), or (file name, content, content type)."""


class ExtractOptions(TypedDict, total=False):
    """The options of `extract`; what each means is told by the input schema of `builtin/extract`."""

    url: str
    """Address of the page, if only its HTML is given."""
    ai: Mapping[str, Any]
    """`provider`, `model` and `samples`."""
    fallback: Mapping[str, Any]
    """Selectors by field, for what nothing else finds."""
    sure: float
    least: float
    invented: str
    learn: bool


class FetchOptions(TypedDict, total=False):
    """The options of `fetch`. The defaults come from the run's policy or the platform's settings."""

    method: str
    """GET, or POST when there is something to send."""
    params: Pairs
    """Added to the URL's query."""
    headers: Mapping[str, str]
    json: Any
    """Sent as JSON."""
    form: Pairs
    """Sent as a web form does; together with `files`, as its other fields."""
    files: Mapping[str, File] | Sequence[tuple[str, File]]
    """Sent as a web form does that uploads files."""
    body: bytes | str
    """Sent as it is."""
    range: str | tuple[int, int | None]
    """Part of the page: (first, last) byte, last None for the rest, or the header's own words."""
    session: str
    """Cookies are stored under this name, for this scraper, across fetches and runs."""
    profile: str
    """Browser to look like: a family such as `firefox`, or a version such as `chrome131`."""
    proxy: str
    """Name of a pool; `none` for no proxy."""
    engine: str
    """`auto`; `http`: never more than plain HTTP; `browser`, `light` (a small browser) and `solver`: at once."""
    wait_for: str
    """For a browser, as all up to `timezone`: the selector of an element to wait for."""
    wait_until: str
    """`load`, `domcontentloaded`, `networkidle` or `commit`."""
    scroll: bool | int
    """Scroll to the end again and again while the page grows: so many times at most, or True for 20."""
    screenshot: bool | str
    """Save a picture of the page as the artifact `screenshot.png`, or under this name."""
    full_page: bool
    """The picture shows the whole page, not only the window."""
    block: Sequence[str]
    """Kinds of requests that are not made: `image`, `media`, `font`, `stylesheet`, `tracker`."""
    device: str
    """As Playwright names it, such as `iPhone 15`."""
    locale: str
    timezone: str
    certificate: str
    """PEM of a client certificate and its key, where the operator allows it."""
    max_age: float
    """Maximum age in seconds of a cached page; 0 to use none."""
    timeout: float
    """Seconds, for all of it."""
    follow_redirects: bool
    max_bytes: int


def fetch_request(url: str, options: dict[str, Any], keep: str = "") -> tuple[dict[str, Any], bytes]:
    """A fetch frame and its body. `keep` names the artifact that the page goes to. Raises TypeError or ValueError."""
    if not options and not keep:  # most fetches: the worker knows what they ask for
        return {"t": "fetch", "url": _short("url", clean(str(url)), MAX_URL)}, b""
    unknown = sorted(set(options) - set(FetchOptions.__annotations__))
    if unknown:
        raise TypeError(f"fetch() has no option {', '.join(unknown)}")
    url = _with_params(str(url), options.get("params"))
    headers = {str(name): str(value) for name, value in (options.get("headers") or {}).items()}
    body = _body(options, headers)
    if options.get("range") is not None:
        headers.setdefault("range", _range(options["range"]))
    method = str(options.get("method") or ("POST" if body else "GET")).upper()
    head = {
        "t": "fetch",
        "url": _short("url", clean(url), MAX_URL),
        "method": _short("method", clean(method), 200),
        "headers": {_short("header", clean(k), 200): _short(k, clean(v), 64 * 1024) for k, v in headers.items()},
        "timeout_seconds": _number("timeout", options.get("timeout"), 3600.0, float),
        "follow_redirects": bool(options.get("follow_redirects", True)),
        "max_bytes": _number("max_bytes", options.get("max_bytes"), 2**53, int),
        **_wishes(options),
    }
    return ({**head, "keep": keep} if keep else head), body


def _wishes(options: dict[str, Any]) -> dict[str, Any]:
    most = {"session": 64, "profile": 64, "proxy": 64, "certificate": 64 * 1024}
    named: dict[str, Any] = {
        name: _short(name, clean(str(options[name])), most[name]) for name in most if options.get(name)
    }
    if options.get("max_age") is not None:
        named["max_age_seconds"] = _number("max_age", options["max_age"], 1e9, float, least=0)
    engine = options.get("engine", "auto")
    if engine not in ENGINES:
        raise ValueError(f"fetch(): engine is one of {', '.join(ENGINES)}")
    wish = _browser_wish(options)
    if wish and engine not in ("browser", "light"):
        raise ValueError(f'fetch(): {next(iter(wish))} needs engine="browser"')
    if wish:
        named["browser"] = wish
    return named if engine == "auto" else {**named, "engine": engine}


def _browser_wish(options: dict[str, Any]) -> dict[str, Any]:
    """What a browser is asked for."""
    wish: dict[str, Any] = {
        name: _short(name, clean(str(options[name])), most) for name, most in _OF_A_BROWSER.items() if options.get(name)
    }
    if options.get("wait_until"):
        wish["wait_until"] = _one_of("wait_until", options["wait_until"], LOAD_STATES)
    if options.get("block"):
        wish["block"] = [_one_of("block", each, BLOCKABLE) for each in options["block"]]
    if options.get("scroll"):
        wish["scroll"] = SCROLLS if options["scroll"] is True else _number("scroll", options["scroll"], 1000, int)
    if name := options.get("screenshot"):
        wish["screenshot"] = "screenshot.png" if name is True else _short("screenshot", clean(str(name)), 128)
    if options.get("full_page"):
        wish["full_page"] = True
    return wish


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"fetch(): {name} takes {', '.join(known)}")
    return str(value)


def _with_params(url: str, params: Any) -> str:
    if not params:
        return url
    address, hash_sign, fragment = url.partition("#")
    return f"{address}{'&' if '?' in address else '?'}{urlencode(params, doseq=True)}{hash_sign}{fragment}"


def _range(value: Any) -> str:
    if isinstance(value, str):
        return value
    first, last = value
    if not (isinstance(first, int) and first >= 0 and (last is None or (isinstance(last, int) and last >= first))):
        raise ValueError("fetch(): range is (first, last) byte, last not before first, or None for the rest")
    return f"bytes={first}-{'' if last is None else last}"


def _short(name: str, text: str, most: int) -> str:
    if len(text) > most:
        raise ValueError(f"fetch(): {name} has {len(text)} characters and may have {most}")
    return text


def _number(name: str, value: Any, most: float, kind: type, least: float | None = None) -> Any:
    """None stays None; anything else must be a number above zero, or at least `least` if given."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and (value > 0 if least is None else value >= least) and value <= most:
        return kind(value)
    above = "above 0" if least is None else f"at least {least:g}"
    raise ValueError(f"fetch(): {name} must be a number {above} and at most {most:g}")


def _body(options: dict[str, Any], headers: dict[str, str]) -> bytes:
    given = [kind for kind in _BODIES if options.get(kind) is not None]
    if len(given) > 1 and given != ["form", "files"]:
        raise TypeError(f"fetch() takes one of json, form, files and body, not {' and '.join(given)}")
    if "files" in given:
        kind, body = multipart(_pairs(options.get("form") or ()), _pairs(options["files"]))
    elif "json" in given:
        kind, body = "application/json", json.dumps(options["json"]).encode()
    elif "form" in given:
        kind, body = "application/x-www-form-urlencoded", urlencode(options["form"], doseq=True).encode()
    else:
        value = options.get("body") or b""
        return value.encode() if isinstance(value, str) else bytes(value)
    if not any(name.lower() == "content-type" for name in headers):
        headers["content-type"] = kind
    return body


def _pairs(given: Any) -> list[tuple[str, Any]]:
    return list(given.items() if isinstance(given, Mapping) else given)


def multipart(fields: Iterable[tuple[str, Any]], files: Iterable[tuple[str, File]]) -> tuple[str, bytes]:
    """Content type and body of a form with files.

    The boundary is derived from the content, so equal forms give equal bytes, by which recorded pages are matched.
    """
    from hashlib import sha256

    parts = [_part(name, value if isinstance(value, bytes) else str(value).encode()) for name, value in fields]
    parts += [_file_part(name, file) for name, file in files]
    boundary = "form-" + sha256(b"\0".join(parts)).hexdigest()[:40]
    line = f"--{boundary}\r\n".encode()
    body = b"".join(line + part + b"\r\n" for part in parts) + f"--{boundary}--\r\n".encode()
    return f"multipart/form-data; boundary={boundary}", body


def file_parts(file: File, name: str) -> tuple[str, bytes, str]:
    """File name, content and content type; `name` is for a file without one."""
    given = file if isinstance(file, tuple) else (name, file)
    file_name, content, kind = (*given, "application/octet-stream")[:3]
    return str(file_name), content.encode() if isinstance(content, str) else bytes(content), str(kind)


def _file_part(name: str, file: File) -> bytes:
    file_name, raw, kind = file_parts(file, name)
    return _part(name, raw, f'; filename="{_quoted(file_name)}"', f"\r\nContent-Type: {_one_line(kind)}")


def _part(name: str, content: bytes, more: str = "", headers: str = "") -> bytes:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"{more}{headers}\r\n\r\n'
    return head.encode() + content


def _quoted(text: str) -> str:
    """As browsers write names in forms."""
    return str(text).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _one_line(text: str) -> str:
    return str(text).replace("\r", " ").replace("\n", " ")


def extract_request(page: "Page | str", wanted: object, options: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """What `ctx.extract` sends. Raises FetchError (`bad_input`)."""
    given: dict[str, Any] = {"html": page} if isinstance(page, str) else {"html": page.html, "url": page.url}
    is_schema = isinstance(wanted, dict) and ("properties" in wanted or wanted.get("type") == "object")
    given |= {"schema" if is_schema else "fields": wanted} | options
    if not given.get("url"):
        given.pop("url", None)
    try:
        return {"t": "extract"}, json.dumps(given, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FetchError("bad_input", f"ctx.extract: the call is not JSON: {error}") from None
