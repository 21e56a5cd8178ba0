"""Errors as `application/problem+json`, with a stable code and what to do."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from scrapeyard.errors import BadRequest, InputInvalid, NotFound, ScraperInvalid, ScrapeyardError, Unavailable
from scrapeyard.gateway.http.remedies import PROBLEMS
from scrapeyard.gateway.runs.schemas import FORMS

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 20
MAX_MESSAGE = 500
MAX_PATH = 200


class Refusal(ScrapeyardError):
    """A call refused at the door for a reason of HTTP's own; carries its code, status and perhaps Retry-After."""

    def __init__(self, code: str, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.refusal_code = code
        self.status = status
        self.retry_after = retry_after


def problem(code: str, status: int, detail: str, *, retryable: bool = False, **more: Any) -> dict[str, Any]:
    """The document. A code without words of its own, such as an exit reason, must bring `title` and `remedy`."""
    title, remedy = PROBLEMS.get(code, ("", ""))
    return {
        "type": f"urn:scrapeyard:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "retryable": retryable,
        "remedy": remedy,
        **more,
    }


def respond(document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """The document as an answer with its own status."""
    return Response(msgspec.json.encode(document), document["status"], headers, MEDIA_TYPE)


def from_error(error: ScrapeyardError) -> Response:
    """Any of our errors as an answer."""
    if isinstance(error, Refusal):
        retryable = error.retry_after is not None
        document = problem(error.refusal_code, error.status, error.message, retryable=retryable)
        return respond(document, _retry_after(error.retry_after))
    more = {name: error.details[name] for name in ("errors", "rows", "count") if name in error.details}
    document = problem(error.code, _status(error), error.message, retryable=error.retryable, **more)
    return respond(document, _retry_after(getattr(error, "retry_after", None)))


def invalid(faults: Sequence[Mapping[str, Any]]) -> Response:
    """What validation found, as 422. Names and messages are cut: they may repeat what the caller sent."""
    first = faults[:MAX_ERRORS]
    errors = [{"path": _pointer(fault["loc"]), "message": _words(fault)[:MAX_MESSAGE]} for fault in first]
    detail = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
    return respond(problem("invalid", 422, detail, errors=errors))


def _words(fault: Mapping[str, Any]) -> str:
    """A pattern says nothing to most people, so what it wants is told in words."""
    form = FORMS.get(fault.get("ctx", {}).get("pattern", ""))
    return f"must be {form}" if form else str(fault["msg"])


def unexpected() -> Response:
    """The answer to a fault of ours. Says nothing of its cause, which is in the log."""
    return respond(problem("internal_error", 500, "the gateway failed to answer", retryable=True))


def install(app: FastAPI) -> None:
    """Answer every error of the app with a problem."""
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


async def _on_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  registered for this class alone
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
    return respond(problem(code, error.status_code, str(error.detail)), error.headers)


def _status(error: ScrapeyardError) -> int:
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, Unavailable):
        return 503
    if isinstance(error, InputInvalid | ScraperInvalid) or error.code == "idempotency_conflict":
        return 422
    return 400 if isinstance(error, BadRequest) else 500


def _retry_after(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def _pointer(place: Sequence[Any]) -> str:
    return "".join(f"/{part}" for part in place)[:MAX_PATH] or "/"
