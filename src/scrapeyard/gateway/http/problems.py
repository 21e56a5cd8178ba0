"""Errors as `application/problem+json`, with a stable code and a remedy."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from msgspec import UNSET, Meta, Struct, UnsetType
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from scrapeyard.errors import (
    BadRequest,
    InputInvalid,
    NotFound,
    Refusal,
    ScraperInvalid,
    ScrapeyardError,
    Swept,
    Unavailable,
)
from scrapeyard.gateway.http import languages
from scrapeyard.gateway.http.paths import allowed_methods, nearest_path
from scrapeyard.gateway.http.patterns import FORMS
from scrapeyard.model import ExitReason

PROBLEMS: dict[str, tuple[str, str]] = {
    "bad_request": ("The request cannot be taken", "Correct the part that `detail` names."),
    "bad_host": ("The request does not say whom it is for", "Send one Host header, as every HTTP/1.1 client does."),
    "bad_json": ("The body is not JSON", "Send one JSON object, encoded as UTF-8."),
    "bad_list": ("The list cannot be read", "Correct what `detail` names, and send the list again."),
    "bad_range": ("Nothing lies in that range", "Ask for a range within the file, or for all of it."),
    "bad_rows": (
        "Rows of the list cannot be used",
        "Correct the rows in `rows`, or send `bad_rows: skip` to leave them out.",
    ),
    "bad_input": (
        "The input does not fit the scraper's schema",
        "Correct the places listed in `errors`; GET /api/scrapers/{site}/{task} shows the schema.",
    ),
    "invalid": (
        "The request is not valid",
        "Correct the places listed in `errors`; /api/openapi.json is the contract.",
    ),
    "idempotency_conflict": (
        "This Idempotency-Key was used with another body",
        "Use a new key for a new request, or send the first body again.",
    ),
    "not_found": (
        "Not found",
        "Check the id: GET /api/runs, /api/jobs and /api/schedules list what there is. Runs and jobs are removed when "
        "their retention ends.",
    ),
    "swept": (
        "Removed by retention",
        "Run it again if it is still wanted; policy.retention says how long the next one is kept.",
    ),
    "no_such_path": ("There is no such path", "GET /docs or /api/openapi.json shows every path."),
    "scraper_not_found": ("No such scraper", "GET /api/scrapers lists what there is."),
    "scraper_invalid": (
        "The scraper cannot be run",
        "Its author must correct the fault that `detail` names.",
    ),
    "conflict": ("That cannot be changed", "`detail` says why."),
    "hook_refused": (
        "The hook does not know the secret",
        "Give the Git host the same secret as repository.hook_secret.",
    ),
    "method_not_allowed": ("Method not allowed", "Use one of the methods in the Allow header."),
    "too_large": (
        "The request body is too large",
        "Send less, or raise gateway.max_body_mb, for uploads gateway.max_upload_mb, or the client's limit body_mb.",
    ),
    "not_a_list": (
        "The body is neither JSON nor a list",
        "Send application/json, text/csv, application/x-ndjson, text/plain or multipart/form-data.",
    ),
    "unauthenticated": (
        "The caller is not known",
        "Send a key, as `Authorization: Bearer sy_…` or `X-API-Key: sy_…`; an admin makes one with "
        "`scrapeyard keys create`.",
    ),
    "forbidden": (
        "The caller may not do that",
        "Ask an admin for a key with another role; docs/permissions.md lists what each role may do.",
    ),
    "csrf_refused": (
        "The change does not prove that our page asks for it",
        "Send the csrf_token of GET /api/session as X-CSRF-Token, or send a key instead of the cookie.",
    ),
    "sign_in_failed": (
        "The sign-in did not succeed",
        "Begin again at /api/session/oidc/start; if it fails again, `detail` tells the operator why.",
    ),
    "client_budget": (
        "The client's budget is used up",
        "Wait until the next day or month begins (Retry-After), or ask an admin for a larger budget.",
    ),
    "too_many_calls": (
        "The client calls too often",
        "Try again after Retry-After; an admin may raise the rate or concurrency of the key.",
    ),
    "queue_share": (
        "Too many runs of the client wait",
        "Try again after Retry-After, when some of them have begun; the operator may raise clients.queue_share.",
    ),
    "origin_refused": (
        "Pages from there may not call",
        "The operator names the page's origin in gateway.cors_origins.",
    ),
    "host_refused": (
        "This gateway has another name",
        "The operator adds the name to gateway.hosts; an IP address and localhost always work.",
    ),
    "head_too_large": ("The request's head is too large", "Send fewer and shorter headers, and a shorter URL."),
    "too_many_values": (
        "The JSON body has too many values",
        "Send fewer in one call; a list of items can be uploaded as a file.",
    ),
    "not_json": ("The body must be JSON", "Send `Content-Type: application/json`."),
    "unavailable": ("Something we depend on is away", "Try again after the seconds in Retry-After."),
    "overloaded": ("Too many runs wait", "Slow down and try again after Retry-After, or add workers."),
    "too_many_waiting": ("Too many calls wait", 'Try again after Retry-After, or send `"wait": 0` and poll.'),
    "queue_unavailable": (
        "The queue does not answer",
        "Try again after Retry-After; the operator checks REDIS_URL or queue.url.",
    ),
    "store_unavailable": (
        "The database does not answer",
        "Try again after Retry-After; the operator checks DATABASE_URL.",
    ),
    "blobs_unavailable": (
        "The blob store does not answer",
        "Try again after Retry-After; the operator checks its disk.",
    ),
    "source_unavailable": (
        "A repository of scrapers does not answer",
        "Try again after Retry-After; what is cached goes on serving.",
    ),
    "maybe_accepted": (
        "It is not known whether the call was taken",
        "GET `links.self` tells what became of the run. Repeat the call with an Idempotency-Key, which runs it once.",
    ),
    "wait_timeout": (
        "The run did not finish in time and was cancelled",
        "Wait longer, or leave `on_timeout` at `continue` and look the run up later.",
    ),
    "not_alone": ("Not alone in its process", "Drain it without `exit`, and stop its process yourself."),
    "not_installed": ("This server lacks a package for that", "The operator runs the command in `detail`."),
    "not_ready": ("Not ready", "Try again after Retry-After."),
    "internal_error": ("Something went wrong on our side", "Try again; if it lasts, look at the gateway's log."),
}
"""Title and remedy by code."""

EXITS: dict[ExitReason, str] = {
    ExitReason.SUCCEEDED: "Nothing to do.",
    ExitReason.GONE: "Nothing to do: the site has no such page.",
    ExitReason.SCRIPT_ERROR: "Read `error.traceback` and the run's logs, and correct the script.",
    ExitReason.FAILED: "The script gave up on purpose; `error.message` is its reason.",
    ExitReason.SKIPPED: "Nothing to do: the script found nothing to get here.",
    ExitReason.RETRY: "Try again later, or allow more attempts with policy.retries.",
    ExitReason.BLOCKED: "The site refuses us: slow down, or use another engine or address.",
    ExitReason.BAD_INPUT: "Correct the input; GET /api/scrapers/{site}/{task} shows its schema.",
    ExitReason.BAD_RESULT: "The script must return JSON that fits its output schema.",
    ExitReason.TIMEOUT: "Make the script quicker, or raise limits.wall_seconds in its manifest.",
    ExitReason.CPU_LIMIT: "Make the script do less, or raise limits.cpu_seconds in its manifest.",
    ExitReason.MEMORY_LIMIT: "Keep less in memory, or raise limits.memory_mb in its manifest.",
    ExitReason.DISK_LIMIT: "Write less to disk, or raise limits.disk_mb in its manifest.",
    ExitReason.OUTPUT_LIMIT: "Return less, keep large things as artifacts, or raise limits.output_mb in its manifest.",
    ExitReason.PROCESS_LIMIT: "Start fewer threads, or raise limits.threads in its manifest.",
    ExitReason.CRASHED: "The child died without a word; a native library is the usual cause. Look at its logs.",
    ExitReason.PROTOCOL_ERROR: "The script must not touch the child's own sockets.",
    ExitReason.CANCELLED: "It was cancelled; submit it again if it is still wanted.",
    ExitReason.LOST_WORKER: "Its worker was lost; submit it again, and look at that worker's log.",
    ExitReason.SCRAPER_NOT_FOUND: "GET /api/scrapers lists what there is.",
    ExitReason.SCRAPER_INVALID: "Its author mends the fault in `error.message`; the operator grants missing secrets.",
    ExitReason.SOURCE_UNAVAILABLE: "Try again later; the operator checks the repository and the package index.",
    ExitReason.INTERNAL_ERROR: "This is our fault: submit it again, and look at the worker's log.",
    ExitReason.FETCH_DNS: "Check the host's name; if it is right, try again later.",
    ExitReason.FETCH_CONNECT: "The site did not take a connection; try again later.",
    ExitReason.FETCH_TLS: "The site's certificate or TLS is not accepted; check the address.",
    ExitReason.FETCH_TIMEOUT: "The site was too slow; try again, or raise http.total_seconds.",
    ExitReason.FETCH_PROTOCOL: "The site broke the protocol; try again later.",
    ExitReason.FETCH_TOO_LARGE: "The page is larger than http.max_body_mb allows.",
    ExitReason.FETCH_DECODE: "The page could not be decoded; look at it as bytes.",
    ExitReason.FETCH_STATUS: "The site answered with `error.site_status`; check the address or the session.",
    ExitReason.FETCH_REDIRECTS: "The site redirects in a circle, or too often.",
    ExitReason.FETCH_BAD_URL: "Correct the URL.",
    ExitReason.FETCH_PRIVATE_ADDRESS: (
        "Private and loopback addresses are refused. The operator allows them with `scrapeyard up --allow-private`, or "
        "single hosts with http.allow_hosts."
    ),
    ExitReason.FETCH_NOT_ALLOWED: "Add the host to allowed_hosts in the scraper's manifest.",
    ExitReason.FETCH_RATE_LIMITED: "The site wants fewer requests: lower its rate at /api/sites, or try again later.",
    ExitReason.FETCH_SITE_DOWN: "The site failed too often and is left alone; GET /api/sites says until when.",
    ExitReason.FETCH_BLOCKED: "The site takes us for a machine: allow another profile, proxy or the solver by policy.",
    ExitReason.FETCH_CAPTCHA: "The site asks for a captcha: allow another proxy or the solver by policy.",
    ExitReason.FETCH_PROXY: "The proxy failed, not the site: check its address, credentials and balance.",
    ExitReason.FETCH_ROBOTS: "robots.txt forbids this page; policy.robots decides whether it counts.",
    ExitReason.FETCH_LIMIT: "The run fetched as many pages as it may; raise limits.fetches in the manifest.",
    ExitReason.FETCH_BUDGET: "The run or job has used up its budget; raise policy.budget if it should go on.",
    ExitReason.AI_UNAVAILABLE: "The model is away, busy or too slow; try again later, or name another in `ai`.",
    ExitReason.BROWSER_STEP: "A step in the browser cannot be done; look at the artifact failure.png, and correct it.",
    ExitReason.BROWSER_TIMEOUT: "A step in the browser took too long; raise its timeout, or wait for something else.",
    ExitReason.BROWSER_CRASHED: "The page or the browser died; try again, block images, or open fewer pages.",
    ExitReason.BROWSER_UNAVAILABLE: "No browser is installed on the worker; run scrapeyard browser install there.",
}
"""The remedy for each exit reason."""


MEDIA_TYPE = "application/problem+json"
TYPE = "urn:scrapeyard:problem:"
_BEARER = 'Bearer realm="scrapeyard"'
MAX_ERRORS = 20
MAX_MESSAGE = 500
MAX_PATH = 200


class Problem(Struct, frozen=True, kw_only=True):
    """Why a call was not answered as asked (RFC 9457). `code` is stable."""

    SCHEMA: ClassVar[dict[str, Any]] = {
        "additionalProperties": True,
        "example": {
            "type": TYPE + "bad_input",
            "title": PROBLEMS["bad_input"][0],
            "status": 422,
            "detail": '"url" is a required property',
            "code": "bad_input",
            "retryable": False,
            "remedy": PROBLEMS["bad_input"][1],
            "errors": [{"path": "/url", "message": '"url" is a required property'}],
        },
    }

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    remedy: str
    errors: Annotated[list[dict[str, str]], Meta(description="Places that are not valid.")] | UnsetType = UNSET
    rows: Annotated[list[dict[str, Any]], Meta(description="Rows that cannot be used.")] | UnsetType = UNSET
    count: Annotated[int, Meta(description="How many rows cannot be used.")] | UnsetType = UNSET


def texts_of(code: str) -> tuple[str, str]:
    """Title and remedy of a problem, in the language of the request."""
    translated = languages.translated()
    english = PROBLEMS.get(code, ("", ""))
    return english if translated is None else translated.problems.get(code, english)


def remedy_of(reason: ExitReason) -> str:
    """The remedy for an exit reason, in the language of the request."""
    translated = languages.translated()
    return EXITS[reason] if translated is None else translated.exits.get(reason, EXITS[reason])


def problem(
    code: str, status: int, detail: str, *, retryable: bool = False, kind: type[Problem] = Problem, **more: Any
) -> Problem:
    """A problem with the title and remedy of its code."""
    title, remedy = texts_of(code)
    return kind(
        type=TYPE + code,
        title=title,
        status=status,
        detail=detail,
        code=code,
        retryable=retryable,
        remedy=remedy,
        **more,
    )


def respond(told: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The problem as a response with its status."""
    return Response(msgspec.json.encode(told), told.status, headers, MEDIA_TYPE)


def from_error(error: ScrapeyardError) -> Response:
    """Any of our errors as a response."""
    if isinstance(error, Refusal):
        retryable = error.retry_after is not None
        document = problem(error.refusal_code, error.status, error.message, retryable=retryable)
        ways = {"WWW-Authenticate": _BEARER} if error.refusal_code == "unauthenticated" else {}
        return respond(document, retry_after(error.retry_after) | ways)
    more = {name: error.details[name] for name in ("errors", "rows", "count") if name in error.details}
    document = problem(error.code, _status(error), error.message, retryable=error.retryable, **more)
    return respond(document, retry_after(getattr(error, "retry_after", None)))


def invalid(faults: Sequence[Mapping[str, Any]]) -> Response:
    """Validation errors as 422. Names and messages are truncated: they may repeat what the caller sent."""
    first = faults[:MAX_ERRORS]
    errors = [{"path": _pointer(fault["loc"]), "message": _words(fault)[:MAX_MESSAGE]} for fault in first]
    detail = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
    return respond(problem("invalid", 422, detail, errors=errors))


_WORDS = {
    "dict_type": "must be a JSON object",
    "extra_forbidden": "unknown field",
    "missing": "is required",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "too_long": "must have at most {max_length} item(s)",
    "too_short": "must have at least {min_length} item(s)",
    "value_error": "{error}",
}
"""Instead of pydantic's messages that speak of Python or of pydantic."""


def _words(fault: Mapping[str, Any]) -> str:
    """The message for people: without pydantic's own words, and with the description of a pattern instead of the
    pattern, since most people cannot read patterns."""
    context = fault.get("ctx", {})
    if form := FORMS.get(context.get("pattern", "")):
        return f"must be {form}"
    words = _WORDS.get(fault.get("type", ""))
    return words.format_map(context) if words else str(fault["msg"])


def unexpected() -> Response:
    """The response to an internal error. It does not reveal the cause, which is in the log."""
    return respond(problem("internal_error", 500, "the gateway failed to answer", retryable=True))


def install(app: FastAPI) -> None:
    """Make the app answer every error with a problem document."""
    app.add_exception_handler(ScrapeyardError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(ValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_ours(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ScrapeyardError)  # noqa: S101  registered for this class alone
    return from_error(error)


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | ValidationError)  # noqa: S101  registered for these alone
    return invalid(error.errors())


async def _on_http(request: Request, error: Exception) -> Response:
    """What Starlette refuses itself. A missing thing is our NotFound, so that its 404 is a path without a route."""
    assert isinstance(error, HTTPException)  # noqa: S101  registered for this class alone
    path, routes = request.scope["path"][:MAX_PATH], request.app.routes
    if error.status_code == 404:
        near = nearest_path(routes, path)
        detail = f"this gateway has no path {path}" + (f"; did you mean {near}?" if near else "")
        return respond(problem("no_such_path", 404, detail))
    if error.status_code == 405:
        allowed = ", ".join(allowed_methods(routes, request.scope))
        detail = f"{path} does not take {request.method[:20]}; it takes {allowed}"
        return respond(problem("method_not_allowed", 405, detail), {"Allow": allowed})
    return respond(problem("bad_request", error.status_code, str(error.detail)), error.headers)


def _status(error: ScrapeyardError) -> int:
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, Swept):
        return 410
    if isinstance(error, Unavailable):
        return 503
    if isinstance(error, InputInvalid | ScraperInvalid) or error.code == "idempotency_conflict":
        return 422
    return 400 if isinstance(error, BadRequest) else 500


def retry_after(seconds: float | None) -> dict[str, str]:
    """The header that says after how many seconds to try again; none if that is not known."""
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def _pointer(place: Sequence[Any]) -> str:
    return "".join(f"/{part}" for part in place)[:MAX_PATH] or "/"
