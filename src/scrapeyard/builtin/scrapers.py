"""The built-in scrapers `builtin/page`, `builtin/product`, `builtin/echo`, and their schemas."""

from typing import Any

from scrapeyard.builtin.fetching import URL, Fetch, envelope, header, is_html, media_type, read
from scrapeyard.builtin.reading.port import DEFAULT, FIELDS, MAX_TEXT, PARTS, Extractor
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.extras import missing
from scrapeyard.model import ExitReason

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


PAGE_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": URL,
        "include": {
            "type": "array",
            "items": {"type": "string", "enum": list(PARTS)},
            "uniqueItems": True,
            "default": list(DEFAULT),
            "description": "Which of the large fields to return; the others are null.",
        },
        "main_only": {
            "type": "boolean",
            "default": True,
            "description": "Whether `markdown` is the main part of the page, or all that is visible.",
        },
    },
    "required": ["url"],
    "additionalProperties": False,
}

_PAGE_PARTS: dict[str, Any] = {
    "links": optional(told(TEXTS, "Where the page's links lead, each once.")),
    "text": told(TEXT, "What a reader sees, one line for each block."),
    "markdown": told(TEXT, "The main part of the page; all of it with `main_only` false."),
    "anchors": optional(told({"type": "array", "items": TABLE}, "Links with `text`, `rel` and `internal`.")),
    "images": optional(told({"type": "array", "items": TABLE}, "`url` and `alt`.")),
    "structured": optional(told(TABLE, "`json_ld`, `microdata` and `rdfa` as lists of items, `opengraph` as a table.")),
    "product": {"anyOf": [PRODUCT, {"type": "null"}], "description": "Null also when the page shows no product."},
    "article": optional(told(TABLE, "The main text with author, date and language.")),
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
        "word_count": {"type": ["integer", "null"]},
        "text_hash": told(TEXT, "SHA-256 of the visible words; changes when they do, not when the markup does."),
        **_PAGE_PARTS,
        "warnings": WARNINGS,
    },
}
PAGE_OUTPUT["required"] = list(PAGE_OUTPUT["properties"])

_EMPTY_PAGE: dict[str, Any] = {**dict.fromkeys((*FIELDS, *PARTS)), "warnings": []}


class PageScraper:
    """Fetches and extracts."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits PAGE_INPUT. Raises FetchFailed."""
        include = tuple(input.get("include", DEFAULT))
        if "article" in include and (words := missing("article")):
            raise FetchFailed(ExitReason.BAD_INPUT, words)
        response = await fetch(FetchRequest(url=input["url"]))
        if is_html(response):
            page = await read(self._extractor, response, include, main_only=input.get("main_only", True))
        else:
            page = _plain(response, include)
        page["language"] = page.get("language") or _first(header(response, "content-language"))
        return {**envelope(input["url"], response), **_EMPTY_PAGE, **page}


def _plain(response: FetchResponse, include: tuple[str, ...]) -> dict[str, Any]:
    """The result for a response that is not HTML: no fields, but its text if it has one."""
    if "text" not in include or not _is_text(media_type(response)):
        return {}
    return {"text": response.body.decode(response.encoding, "replace").replace("\0", "")[:MAX_TEXT]}


def _is_text(media: str) -> bool:
    return media.startswith("text/") or media in ("application/json", "application/xml") or media.endswith("+xml")


def _first(language: str | None) -> str | None:
    return language.split(",", 1)[0].strip()[:35] or None if language else None


PRODUCT_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"url": URL},
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
        response = await fetch(FetchRequest(url=input["url"]))
        page = await read(self._extractor, response, ("product",)) if is_html(response) else {}
        found = {name: page.get(name) for name in _PRODUCT_FIELDS}
        return {**envelope(input["url"], response), **found, "warnings": page.get("warnings", [])}


ECHO_INPUT: dict[str, Any] = {"type": "object"}
ECHO_OUTPUT: dict[str, Any] = {"type": "object"}


async def echo(_fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
    """The input as it came."""
    return input
