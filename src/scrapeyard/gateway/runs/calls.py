"""Parsing a call: body, Prefer, Idempotency-Key, traceparent."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.gateway.http import dialects
from scrapeyard.gateway.http.patterns import KEY_PATTERN
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.model.identity import Identity
from scrapeyard.settings import GatewaySettings
from scrapeyard.telemetry.spans import new_traceparent, parse_traceparent

if TYPE_CHECKING:
    from starlette.requests import Request


def traceparent(given: str | None, share: float = 0.0) -> str:
    """The caller's if it is valid, otherwise a new one, of which `share` are sampled."""
    if given is not None and given.startswith("00-") and parse_traceparent(given) is not None:
        return given.strip()
    return new_traceparent(share)


MAX_VALUES = 500_000
"""Maximum commas, colons and brackets in a JSON body."""
_KEY = re.compile(KEY_PATTERN)
_HALF_PAIR = re.compile(rb"\\u[dD][89abAB]")
_JSON = re.compile(r"^application/(?:[a-z0-9.+-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
_PREFER_WAIT = re.compile(r"^wait\s*=\s*\"?(\d{1,9})\"?$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ScrapeRequest:
    """A parsed call."""

    call: ScrapeCall
    wait: float
    """Seconds to wait; 0 to answer at once."""
    preference: str
    """The part of the Prefer header that was applied; empty if none."""
    key: str | None
    """The Idempotency-Key, among those of the caller; None if none was given."""
    digest: str
    """Digest of the body, independent of key order; empty without a key."""
    traceparent: str
    identity: Identity
    """Who calls."""
    span: str = ""
    """The `traceparent` of the gateway's own span, under which the runs stand; empty if the call is not traced."""

    @property
    def many(self) -> bool:
        """Whether the answer is a list."""
        return self.call.urls is not None


async def read_call(
    request: "Request",
    settings: GatewaySettings,
    into: Callable[[Any], ScrapeCall] | None = None,
    trace_share: float = 0.0,
) -> ScrapeRequest:
    """Parse a call; `into` turns another body than that of `/api/scrape` into one. Raises BadRequest, Refusal (415) or
    pydantic's ValidationError."""
    headers = request.headers
    if not is_json(headers.get("content-type", "")):
        raise Refusal("not_json", 415, "the body's Content-Type is not application/json")
    body = decode_body(await request.body())
    call = _retried((into or _read_scrape)(body))
    _bounded(call, settings)
    wait, preference = _wait(call, headers.getlist("prefer"), settings)
    key, identity = idempotency_key(headers.get("idempotency-key")), request.scope["identity"]
    return ScrapeRequest(
        call=call,
        wait=wait,
        preference=preference,
        key=identity.scoped(key) if key else None,
        digest=digest_of(body) if key else "",
        traceparent=traceparent(headers.get("traceparent"), trace_share),
        identity=identity,
    )


def _read_scrape(body: Any) -> ScrapeCall:
    return ScrapeCall.model_validate(_in_our_names(body))


def _in_our_names(body: Any) -> Any:
    try:
        return ScrapeCall.in_our_names(body)
    except ValueError as error:
        raise _fault("", str(error), None) from None


def _retried(call: ScrapeCall) -> ScrapeCall:
    """The call, with the retries of its dialect if it does not say."""
    retries = dialects.current().retries
    if retries is None or "retries" in call.policy.model_fields_set:
        return call
    policy = call.policy.model_copy(update={"retries": retries})
    policy.model_fields_set.add("retries")
    return call.model_copy(update={"policy": policy})


def is_json(content_type: str) -> bool:
    """Whether the content type is JSON."""
    return _JSON.match(content_type) is not None


def decode_body(body: bytes) -> Any:
    """Decode a JSON body. Raises Refusal (400, or 413 for so many values that decoding would stall other calls)."""
    if len(body) > MAX_VALUES and sum(body.count(mark) for mark in (b",", b":", b"[", b"{")) > MAX_VALUES:
        raise Refusal("too_many_values", 413, f"the body has more than about {MAX_VALUES:,} values")
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        half = _HALF_PAIR.search(body) is not None and "truncated" in str(error)
        why = "a string has half of a surrogate pair, as \\ud83d without the rest" if half else error
        raise Refusal("bad_json", 400, f"the body is not JSON: {why}") from None


def _bounded(call: ScrapeCall, settings: GatewaySettings) -> None:
    if call.wait is not None and call.wait > settings.max_wait_seconds:
        raise _fault("wait", f"at most {settings.max_wait_seconds:g} seconds", call.wait)
    if call.urls is not None and len(call.urls) > settings.max_urls:
        raise _fault("urls", f"at most {settings.max_urls} in one call", len(call.urls))


def _fault(field: str, message: str, given: Any) -> ValidationError:
    error = {"type": "value_error", "loc": (field,), "input": given, "ctx": {"error": message}}
    return ValidationError.from_exception_data("ScrapeCall", [error])  # type: ignore[list-item]


def _wait(call: ScrapeCall, prefers: list[str], settings: GatewaySettings) -> tuple[float, str]:
    if call.wait is not None:
        return call.wait, ""
    tokens = [token.partition(";")[0].strip() for line in prefers for token in line.split(",")]
    for token in tokens:
        if found := _PREFER_WAIT.match(token):
            seconds = min(float(found[1]), settings.max_wait_seconds)
            return seconds, f"wait={seconds:g}"
    if any(token.lower() == "respond-async" for token in tokens):
        return 0.0, "respond-async"
    if not dialects.current().waits:
        return 0.0, ""
    return min(settings.wait_seconds, settings.max_wait_seconds), ""


def idempotency_key(given: str | None) -> str | None:
    """The Idempotency-Key header, validated. Raises BadRequest."""
    if given is not None and not _KEY.match(given):
        raise BadRequest("Idempotency-Key must be 1 to 255 visible ASCII characters")
    return given


def digest_of(body: Any) -> str:
    """Digest of a body, independent of key order."""
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()
