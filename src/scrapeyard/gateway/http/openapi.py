"""The parts of the OpenAPI document that routes share."""

from typing import Any

from scrapeyard.gateway.http import problems

Responses = dict[int | str, dict[str, Any]]

_MEANINGS = {
    400: "The request cannot be taken as it is; `detail` names the part.",
    401: "The caller is not known: no key, or one that is not valid. `WWW-Authenticate` names the ways.",
    403: "The role or the scrapers of the caller's key do not allow it, or a web page from elsewhere asks for it.",
    404: "There is no such thing.",
    409: "What is there does not allow it; `detail` says why.",
    410: "It was there; retention has removed it. `detail` says when.",
    413: "The body is too large.",
    415: "The body is not declared as something that is taken here.",
    416: "The range is not within the file.",
    422: "Some part is not valid; `errors` lists each place.",
    429: "Too many calls wait already, or the client calls too often; try again after Retry-After.",
    500: "A fault of ours.",
    501: "The server lacks a package that this needs.",
    503: "Too many runs wait, or a dependency is away; nothing was accepted. Try again after Retry-After.",
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
HEADERS: dict[str, Any] = {
    "traceparent": {"description": "The caller's, or a new one.", "schema": {"type": "string"}},
    "Preference-Applied": {"description": "What of Prefer was followed.", "schema": {"type": "string"}},
    "Idempotency-Replayed": {"description": "`true` on a replay.", "schema": {"type": "string"}},
}
LOCATION = {"Location": {"description": "Where to look the run up.", "schema": {"type": "string"}}}


def refusals(*statuses: int) -> Responses:
    """The problem answers of an operation, 500 included."""
    return {status: _problem(_MEANINGS[status], status in (429, 503)) for status in (*statuses, 500)}


def bad_ends() -> Responses:
    """Responses of a waiting call whose run ended badly."""
    return {
        502: _problem("The run ended badly; `exit_reason` says how.", schema="RunProblem"),
        504: _problem("A time limit ended the run, or the wait was over and it was cancelled.", schema="RunProblem"),
    }


def _problem(description: str, retry: bool = False, schema: str = "Problem") -> dict[str, Any]:
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content, **({"headers": _RETRY_AFTER} if retry else {})}


def parameter(name: str, place: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that the route parses itself."""
    return {"name": name, "in": place, "required": False, "description": description, "schema": schema}


TRACEPARENT = parameter("traceparent", "header", "W3C trace context; one is made when absent.", {"type": "string"})
