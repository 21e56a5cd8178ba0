"""What `builtin/document` takes and returns. Its code stands in `actions`, which loads slowly."""

from typing import Any

from scrapeyard.builtin.extracting import OPTIONS as EXTRACT_OPTIONS
from scrapeyard.builtin.scrapers import PAGE_INPUT, PAGE_OUTPUT, TEXT, told
from scrapeyard_sdk.extract.selectors import MAX_SELECTOR

MAX_ATTRIBUTES = 50
_PAGE_PROPERTIES: dict[str, Any] = {
    name: schema for name, schema in PAGE_INPUT["properties"].items() if name not in ("include", "main_only")
}
DOCUMENT_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        **_PAGE_PROPERTIES,
        "steps": {
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "object"},
            "description": "What is done in a browser before the page is read: steps of `builtin/actions`.",
        },
        "variables": {"type": "object", "maxProperties": 100, "description": "As in `builtin/actions`."},
        "context": {"type": "object", "description": "What the browser looks like: `browser` of `builtin/actions`."},
        "extract": {
            "type": "object",
            "properties": {
                name: EXTRACT_OPTIONS[name] for name in ("schema", "fields", "prompt", "ai", "sure", "least")
            },
            "oneOf": [{"required": ["fields"]}, {"required": ["schema"]}, {"required": ["prompt"]}],
            "additionalProperties": False,
            "description": "Data to take from the page as `builtin/extract` does; `json` has them.",
        },
        "summary": {"type": "boolean", "description": "Whether a model sums the page up."},
        "attributes": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_ATTRIBUTES,
            "items": {
                "type": "object",
                "properties": {
                    "selector": {"type": "string", "format": "css-selector", "minLength": 1, "maxLength": MAX_SELECTOR},
                    "attribute": {"type": "string", "pattern": r"^[A-Za-z_][\w:.-]{0,100}$"},
                },
                "required": ["selector", "attribute"],
                "additionalProperties": False,
            },
            "description": "Attributes of elements; `attributes` of the result has their values.",
        },
        "session": {
            "type": "string",
            "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
            "description": "Cookies and storage of the browser are kept under this name, for the client that calls.",
        },
        "cookies_too": {"type": "boolean", "description": "Whether the result has the browser's cookies."},
        "note": {
            "type": "object",
            "maxProperties": 20,
            "description": "For whoever reads the input; it has no effect.",
        },
    },
    "required": ["url"],
    "additionalProperties": False,
}
DOCUMENT_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        **PAGE_OUTPUT["properties"],
        "json": {"description": "What `extract` asked for; null if it did not, or nothing could be read."},
        "summary": told(TEXT, "The page in a paragraph; null unless it was asked for."),
        "attributes": {"type": ["array", "null"], "description": "`selector`, `attribute` and `values` of each."},
        "found": {"type": "object", "description": "What the steps extracted, by their names."},
        "cookies": {"type": ["array", "null"], "description": "Of the browser, if they were asked for."},
        "user_agent": told(TEXT, "Of the browser; null without one."),
        "age_seconds": {
            "type": ["number", "null"],
            "description": "How old a cached page was; null: fetched just now.",
        },
        "strategy": {"type": "string", "description": "How the page was had: `http`, `browser`, `cache`, …"},
        "proxy_class": {"type": "string", "description": "Class of the proxy that it came through; empty: none."},
    },
    "required": [*PAGE_OUTPUT["required"], "json", "summary", "attributes", "found"],
}
