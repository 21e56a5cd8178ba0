"""The built-in scraper `builtin/select`: fields of a page by selectors, without a script."""

from typing import Any

from scrapeyard.builtin.fetching import Fetch, read
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.requests import REQUEST, URL, request_of
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard_sdk.extract.selectors import MAX_SELECTOR

MAX_FIELDS = 100
"""Fields of one record."""
MAX_DEPTH = 4
"""Levels of records in records."""
TYPES = ("text", "number", "price", "date", "url", "bool", "html", "markdown", "json")
_SELECTOR = {"type": "string", "maxLength": MAX_SELECTOR}
_NAME = r"^[^\x00-\x1f\x7f]{1,100}$"


def _fields(depth: int) -> dict[str, Any]:
    """The schema of a record's fields."""
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": MAX_FIELDS,
        "propertyNames": {"pattern": _NAME, "not": {"const": "warnings"}},
        "additionalProperties": {
            "if": {"type": "string"},
            "then": {**_SELECTOR, "format": "selector"},
            "else": _rule(depth),
        },
    }


def _rule(depth: int) -> dict[str, Any]:
    """The schema of one field in its long form."""
    nested = (
        {"each": {**_SELECTOR, "minLength": 1, "format": "selector"}, "fields": _fields(depth - 1)} if depth else {}
    )
    return {
        "type": "object",
        "properties": {
            "css": {**_SELECTOR, "format": "css-selector"},
            "xpath": {**_SELECTOR, "minLength": 1, "format": "xpath"},
            "attr": {"type": "string", "pattern": r"^[A-Za-z_][\w:.-]{0,100}$"},
            "as": {"enum": list(TYPES)},
            "regex": {"type": "string", "minLength": 1, "maxLength": MAX_SELECTOR, "format": "python-regex"},
            "list": {"type": "boolean"},
            "default": {"description": "What it is if nothing is found."},
            "required": {"type": "boolean"},
            "decimal": {"enum": [".", ","]},
            "order": {"enum": ["dmy", "mdy", "ymd"]},
            **nested,
        },
        "additionalProperties": False,
        "dependentRequired": {"each": ["fields"], "fields": ["each"]} if depth else {},
        "dependentSchemas": {
            "css": {"properties": dict.fromkeys(("xpath", "each"), False)},
            "xpath": {"properties": {"each": False}},
            "each": {"properties": dict.fromkeys(("as", "attr", "regex", "list"), False)},
        },
    }


FIELDS: dict[str, Any] = {
    **_fields(MAX_DEPTH - 1),
    "description": "What to take from the page, by name: a CSS selector or XPath, such as `h1`, `a@href`, `h1::text`, "
    "`//h1`; or an object with `css` or `xpath`, and `as`, `attr`, `regex`, `list`, `default`, `required`; or "
    '`{"each": ".review", "fields": {…}}` for a list of records.',
}
SELECT_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"url": URL, "fields": FIELDS, **REQUEST},
    "required": ["url", "fields"],
    "additionalProperties": False,
}
SELECT_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"description": "As asked, unless a field has this name."},
        "status": {"description": "What the site answered, unless a field has this name."},
        "warnings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Fields that were not found or are not of their type, and why; they are null.",
        },
    },
    "required": ["url", "status", "warnings"],
}


class SelectScraper:
    """Fetches and selects."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits SELECT_INPUT. Raises FetchFailed; with `bad_result` if a required field is missing."""
        response = await fetch(request_of(input))
        found = await read(self._extractor, response, fields=input["fields"])
        warnings = found.get("warnings") or ([] if "fields" in found else ["the page is not HTML: nothing is selected"])
        fields = found.get("fields")
        if fields is None:
            if response.status < 400 and _has_required(input["fields"]):
                message = warnings[-1] if warnings else "a required field was not found"
                raise FetchFailed(ExitReason.BAD_RESULT, message, site_status=response.status)
            fields = dict.fromkeys(input["fields"])
        return {"url": input["url"], "status": response.status, **fields, "warnings": warnings}


def _has_required(fields: dict[str, Any]) -> bool:
    return any(isinstance(rule, dict) and rule.get("required") for rule in fields.values())
