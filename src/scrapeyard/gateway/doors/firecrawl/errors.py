"""Refusals as Firecrawl tells them: `{success: false, code, error, details}`."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pydantic import ValidationError
from starlette.responses import Response

from scrapeyard.gateway.doors.door import ApiRefused

MAX_DETAILS: Final = 20
_MAX_WORDS: Final = 2000
_CODES: Final = {
    "bad_json": "BAD_REQUEST_INVALID_JSON",
    "fetch_dns": "SCRAPE_DNS_RESOLUTION_ERROR",
    "fetch_tls": "SCRAPE_SSL_ERROR",
    "fetch_timeout": "SCRAPE_TIMEOUT",
    "timeout": "SCRAPE_TIMEOUT",
    "wait_timeout": "SCRAPE_TIMEOUT",
    "browser_timeout": "SCRAPE_ACTION_ERROR",
    "browser_step": "SCRAPE_ACTION_ERROR",
    "fetch_connect": "SCRAPE_SITE_ERROR",
    "fetch_protocol": "SCRAPE_SITE_ERROR",
    "fetch_status": "SCRAPE_SITE_ERROR",
    "fetch_redirects": "SCRAPE_SITE_ERROR",
    "fetch_too_large": "SCRAPE_UNSUPPORTED_FILE_ERROR",
    "fetch_blocked": "SCRAPE_ALL_ENGINES_FAILED",
    "fetch_captcha": "SCRAPE_ALL_ENGINES_FAILED",
    "fetch_robots": "SCRAPE_ROBOTS_BLOCKED",
}
"""By our code: Firecrawl's."""
_STATUSES: Final = {
    **dict.fromkeys(("fetch_timeout", "timeout", "wait_timeout"), 408),
    **dict.fromkeys(("bad_input", "fetch_bad_url", "fetch_private_address", "fetch_not_allowed"), 400),
    "fetch_robots": 403,
    "client_budget": 402,
}
"""By our code: the status that Firecrawl has for it."""
_NAMES: Final = {401: "UNAUTHORIZED", 402: "PAYMENT_REQUIRED", 403: "FORBIDDEN", 404: "NOT_FOUND", 429: "RATE_LIMITED"}
_TLS: Final = " Certificates are always checked here, also with skipTlsVerification."


def refusal(refused: ApiRefused) -> Response:
    """A refusal of the API in Firecrawl's shape and with its status."""
    status = _STATUSES.get(refused.code) or _status(refused.status)
    code = _CODES.get(refused.code) or _NAMES.get(status) or ("BAD_REQUEST" if status < 500 else "UNKNOWN_ERROR")
    words = refused.words + (_TLS if refused.code == "fetch_tls" else "")
    told: dict[str, Any] = {"success": False, "code": code, "error": words[:_MAX_WORDS]}
    if details := _details(refused.problem):
        told["details"] = details
    return respond(told, status, refused.headers)


def _status(ours: int) -> int:
    """422 is 400 there. A failure of a site is 500: clients take 502 for a gateway that is away, and call again."""
    return {422: 400, 415: 400, 410: 404, 502: 500, 504: 408}.get(ours, ours)


def _details(problem: Mapping[str, Any]) -> list[dict[str, Any]]:
    places = [
        {"path": [part for part in str(each.get("path", "")).split("/") if part], "message": each.get("message", "")}
        for each in problem.get("errors", ())
    ]
    return places[:MAX_DETAILS]


def invalid(error: ValidationError) -> ApiRefused:
    """A body that is not valid, as a refusal."""
    faults = [
        {"path": "/" + "/".join(str(part) for part in fault["loc"]), "message": _words(fault)[:500]}
        for fault in error.errors()[:MAX_DETAILS]
    ]
    first = faults[0]
    return ApiRefused(
        400, {"code": "invalid", "detail": f"Bad Request: {first['path']}: {first['message']}", "errors": faults}
    )


def _words(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        return "Unrecognized key in body -- please review the documentation for request body changes"
    if fault["type"] == "none_required":
        return "this option is not available here"
    return str(fault["msg"])


def respond(told: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(told), status, headers, "application/json")
