"""The built-in scrapers `builtin/page`, `builtin/product`, `builtin/echo`, and their schemas."""

from typing import Any

from scrapeyard.builtin.fetching import Fetch, envelope, header, read, shown_headers
from scrapeyard.builtin.pages.port import DEFAULT, FIELDS, PARTS, Extractor
from scrapeyard.builtin.requests import REQUEST, URL, request_of
from scrapeyard.errors import FetchFailed
from scrapeyard.extras import missing
from scrapeyard.model import ExitReason
from scrapeyard_sdk.extract.selectors import MAX_SELECTOR

TEXT: dict[str, Any] = {"type": ["string", "null"]}
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
TABLE: dict[str, Any] = {"type": "object"}


def told(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """The schema with a description."""
    return {**schema, "description": description}


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


WARNINGS: dict[str, Any] = told(TEXTS, "Parts that could not be read, and why; they are null.")
ENVELOPE: dict[str, Any] = {
    "status": {
        "type": "integer",
        "description": "What the site answered; an error status is a failure in a job.",
    },
    "url": {"type": "string", "description": "As asked."},
    "final_url": {"type": "string", "description": "After redirects."},
    "content_type": TEXT,
    "size": {"type": "integer", "description": "Bytes of the page, decompressed."},
    "redirects": told(TEXTS, "URLs that redirected, in order; empty if the first answered."),
}
"""What every result begins with."""

PRODUCT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "confidence": {
            "type": "number",
            "description": "How surely the page is about this product: 0.5 to 1. Below that there is no product.",
        },
        "price": told(NUMBER, "What it costs now."),
        "currency": told(TEXT, "ISO 4217 code."),
        "list_price": told(NUMBER, "What it cost before, where that is published."),
        "high_price": told(NUMBER, "The upper end, where the price is a range."),
        "availability": {"enum": ["InStock", "OutOfStock", None]},
        "availability_detail": told(TEXT, "schema.org's word: `PreOrder`, `LimitedAvailability`, …"),
        "sku": TEXT,
        "gtin": told(TEXT, "EAN, UPC or ISBN-13 with a right check digit."),
        "mpn": TEXT,
        "brand": TEXT,
        "category": TEXT,
        "condition": TEXT,
        "description": TEXT,
        "breadcrumbs": TEXTS,
        "images": TEXTS,
        "attributes": {"type": "object", "additionalProperties": {"type": "string"}},
        "rating": optional(TABLE),
        "variants": {"type": "array", "items": TABLE},
        "sources": told(
            {"type": "object", "additionalProperties": {"type": "string"}},
            "Where each answer is from: json-ld, microdata, rdfa, opengraph, script, attributes, page, url, assumed.",
        ),
    },
}
PRODUCT["required"] = list(PRODUCT["properties"])


def _selectors(description: str) -> dict[str, Any]:
    selector = {"type": "string", "format": "css-selector", "minLength": 1, "maxLength": MAX_SELECTOR}
    return {"type": "array", "items": selector, "maxItems": MAX_TAGS, "description": description}


MAX_TAGS = 50
HEADERS = "headers"
"""A format that is not read from the page, and present only on request."""
PAGE_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": URL,
        "formats": {
            "type": "array",
            "items": {"type": "string", "enum": [*PARTS, HEADERS]},
            "uniqueItems": True,
            "default": list(DEFAULT),
            "description": "Which of the large fields to return; the others are null.",
        },
        "include": {
            "type": "array",
            "items": {"type": "string", "enum": [*PARTS, HEADERS]},
            "uniqueItems": True,
            "description": "Another name of `formats`.",
        },
        "only_main": {
            "type": "boolean",
            "description": "Whether `markdown` and `html` are the main part of the page, or all that is visible. "
            "Default: the main part as `markdown`, all of it as `html`.",
        },
        "main_only": {"type": "boolean", "description": "Another name of `only_main`."},
        "include_tags": _selectors("Read only the parts of the page that these CSS selectors match."),
        "exclude_tags": _selectors("Leave out the parts of the page that these CSS selectors match."),
        **REQUEST,
    },
    "required": ["url"],
    "additionalProperties": False,
    "dependentSchemas": {
        "include": {"properties": {"formats": False}},
        "main_only": {"properties": {"only_main": False}},
    },
}

_PAGE_PARTS: dict[str, Any] = {
    "markdown": told(TEXT, "The main part of the page; all of it with `only_main` false."),
    "html": told(TEXT, "The page without scripts, styles and tracking, with absolute links."),
    "raw_html": told(TEXT, "The page as it came, decoded."),
    "text": told(TEXT, "What a reader sees, one line for each block."),
    "links": optional(told(TEXTS, "Where the page's links lead, each once.")),
    "anchors": optional(told({"type": "array", "items": TABLE}, "Links with `text`, `rel` and `internal`.")),
    "images": optional(told({"type": "array", "items": TABLE}, "`url` and `alt`.")),
    "structured": optional(told(TABLE, "`json_ld`, `microdata` and `rdfa` as lists of items, `opengraph` as a table.")),
    "product": {"anyOf": [PRODUCT, {"type": "null"}], "description": "Null also when the page shows no product."},
    "article": optional(told(TABLE, "The main text, as text and Markdown, with title, authors, dates and language.")),
    "metadata": optional(told(TABLE, "The page's head in one table: title, description, canonical, opengraph, …")),
    "tables": optional(
        told({"type": "array", "items": TABLE}, "`caption`, `header`, `rows` and `markdown`; spanning cells repeated.")
    ),
    "records": optional(
        told(
            TABLE,
            "The main list of the page: `records`, `columns` with the place of each field, and `more_button`, a "
            "selector of the button without an address that loads more, or null. Null if there is no list.",
        )
    ),
    "next_page": told(TEXT, "Where the list goes on; null on its last page."),
    "data": {"description": "The content of a JSON document or of a feed; null for any other page."},
}
PAGE_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        **ENVELOPE,
        "title": TEXT,
        "description": TEXT,
        "h1": told(TEXT, "The first; `headings` has all."),
        "canonical": TEXT,
        "language": TEXT,
        "keywords": TEXT,
        "robots": optional(told(TABLE, "`meta` and `header` as they are, `index` and `follow` as they are meant.")),
        "hreflang": optional(told({"type": "array", "items": TABLE}, "`language` and `url` of each alternate.")),
        "opengraph": optional(TABLE),
        "twitter": optional(TABLE),
        "meta": optional(told(TABLE, "All other `<meta>` elements by their name.")),
        "headings": optional(told(TABLE, "`h1` and `h2`, in order.")),
        "authors": optional(told(TEXTS, "Who wrote it: from structured data, meta elements or the byline.")),
        "published": told(TEXT, "When it was published, in ISO 8601: from the same, time elements or the address."),
        "modified": told(TEXT, "When it was changed last, as the page says."),
        "word_count": {"type": ["integer", "null"]},
        "text_hash": told(TEXT, "SHA-256 of the visible words; changes when they do, not when the markup does."),
        **_PAGE_PARTS,
        "warnings": WARNINGS,
    },
}
PAGE_OUTPUT["required"] = list(PAGE_OUTPUT["properties"])
PAGE_OUTPUT["properties"][HEADERS] = told(
    {"type": "array", "items": TABLE},
    "`name` and `value` of each header of the answer, in order; values of cookies are hidden. Only on request.",
)

_EMPTY_PAGE: dict[str, Any] = {**dict.fromkeys((*FIELDS, *PARTS)), "warnings": []}


class PageScraper:
    """Fetches and extracts."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits PAGE_INPUT. Raises FetchFailed."""
        include = tuple(input.get("formats", input.get("include", DEFAULT)))
        if "article" in include and (words := missing("article")):
            raise FetchFailed(ExitReason.BAD_INPUT, words)
        response = await fetch(request_of(input))
        page = await read(
            self._extractor,
            response,
            include=include,
            main_only=input.get("only_main", input.get("main_only")),
            include_tags=tuple(input.get("include_tags", ())),
            exclude_tags=tuple(input.get("exclude_tags", ())),
        )
        page["language"] = page.get("language") or _first(header(response, "content-language"))
        told_too = {HEADERS: shown_headers(response)} if HEADERS in include else {}
        return {**envelope(input["url"], response), **_EMPTY_PAGE, **page, **told_too}


def _first(language: str | None) -> str | None:
    return language.split(",", 1)[0].strip()[:35] or None if language else None


PRODUCT_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"url": URL, **REQUEST},
    "required": ["url"],
    "additionalProperties": False,
}
PRODUCT_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        **ENVELOPE,
        "title": TEXT,
        "text_hash": told(TEXT, "SHA-256 of the visible words."),
        "product": {"anyOf": [PRODUCT, {"type": "null"}], "description": "Null when the page shows no product."},
        "warnings": WARNINGS,
    },
}

_PRODUCT_FIELDS = ("title", "text_hash", "product")


class ProductScraper:
    """Fetches and extracts."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits PRODUCT_INPUT. Raises FetchFailed."""
        response = await fetch(request_of(input))
        page = await read(self._extractor, response, include=("product",))
        found = {name: page.get(name) for name in _PRODUCT_FIELDS}
        return {**envelope(input["url"], response), **found, "warnings": page.get("warnings", [])}


ECHO_INPUT: dict[str, Any] = {"type": "object"}
ECHO_OUTPUT: dict[str, Any] = {"type": "object"}


async def echo(_fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
    """The input as it came."""
    return input


_PATTERNS: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 500}}
MAP_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": told(URL, "A page of the site."),
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100_000,
            "default": 5000,
            "description": "Maximum URLs.",
        },
        "include": {**_PATTERNS, "maxItems": 50, "description": "Patterns such as /p/**; one must match, if any."},
        "exclude": {**_PATTERNS, "maxItems": 50, "description": "Patterns; none may match."},
        "scope": {
            "type": "string",
            "enum": ["host", "site", "path", "any"],
            "default": "host",
            "description": "Which URLs are listed: of the same host, the same site, or below the same path.",
        },
        "search": {"type": "string", "maxLength": 200, "description": "Only URLs that contain this word."},
        "sitemap": {"type": "boolean", "default": True, "description": "Whether the site's sitemaps are read."},
    },
    "required": ["url"],
    "additionalProperties": False,
}
MAP_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "As asked."},
        "urls": {
            "type": "array",
            "description": "Each URL once: first the page itself, then its links, then the sitemaps.",
            "items": {
                "type": "object",
                "properties": {
                    "url": {"type": "string"},
                    "source": {"enum": ["page", "link", "sitemap"], "description": "What named it first."},
                    "found_on": {"type": "string", "description": "URL of the page or sitemap that named it."},
                },
                "required": ["url", "source", "found_on"],
            },
        },
        "has_more": {"type": "boolean", "description": "Whether there are more URLs than the limit."},
        "warnings": told(TEXTS, "What could not be read, and why."),
    },
    "required": ["url", "urls", "has_more", "warnings"],
}
