"""The scraper `builtin/page`: one page as title, text, links and markdown. Used when a call gives only a URL.

An error status is data here, in `status`; only a page that cannot be fetched at all fails the run.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.extract.page import FORMATS, MAX_TEXT, extract_page

Fetch = Callable[[FetchRequest], Awaitable[FetchResponse]]

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {
            "type": "string",
            "format": "uri",
            "pattern": "^https?://",
            "maxLength": 8192,
            "description": "The page to fetch.",
        },
        "formats": {
            "type": "array",
            "items": {"type": "string", "enum": list(FORMATS)},
            "uniqueItems": True,
            "default": list(FORMATS),
            "description": "Which of the large fields to return; the others are null.",
        },
    },
    "required": ["url"],
    "additionalProperties": False,
}

_TEXT = {"type": ["string", "null"]}
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"type": "integer", "description": "What the site answered; any status is a result."},
        "url": {"type": "string", "description": "As asked."},
        "final_url": {"type": "string", "description": "After redirects."},
        "content_type": _TEXT,
        "title": _TEXT,
        "description": _TEXT,
        "h1": _TEXT,
        "canonical": _TEXT,
        "language": _TEXT,
        "links": {"type": ["array", "null"], "items": {"type": "string"}},
        "text": _TEXT,
        "markdown": _TEXT,
    },
}
OUTPUT_SCHEMA["required"] = list(OUTPUT_SCHEMA["properties"])

_EMPTY = dict.fromkeys(("title", "description", "h1", "canonical", "language", *FORMATS))


async def run_page(fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the word of the manifest
    """Fetch and extract. `input` fits INPUT_SCHEMA. Raises FetchFailed.

    Extraction runs in a thread: a large page takes seconds, and the worker's loop must not wait for it.
    """
    response = await fetch(FetchRequest(url=input["url"]))
    content_type = _header(response, "content-type")
    page = await asyncio.to_thread(_extract, response, content_type or "", input.get("formats", FORMATS))
    language = page["language"] or _first(_header(response, "content-language"))
    return {
        "status": response.status,
        "url": input["url"],
        "final_url": response.url,
        "content_type": content_type,
        **_EMPTY,
        **page,
        "language": language,
    }


def _extract(response: FetchResponse, content_type: str, formats: list[str]) -> dict[str, Any]:
    media = content_type.split(";", 1)[0].strip().lower()
    if _is_html(media, response.body):
        return extract_page(response.body, response.url, encoding=response.encoding, formats=formats)
    page: dict[str, Any] = dict(_EMPTY)
    if "text" in formats and _is_text(media):
        page["text"] = response.body.decode(response.encoding, "replace").replace("\0", "")[:MAX_TEXT]
    return page


def _is_html(media: str, body: bytes) -> bool:
    if media:
        return media in ("text/html", "application/xhtml+xml")
    return body[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _is_text(media: str) -> bool:
    return media.startswith("text/") or media in ("application/json", "application/xml") or media.endswith("+xml")


def _header(response: FetchResponse, name: str) -> str | None:
    return next((value for key, value in response.headers if key.lower() == name), None)


def _first(language: str | None) -> str | None:
    return language.split(",", 1)[0].strip()[:35] or None if language else None
