"""The scraper `builtin/product`: the product that a page is about, as it is published and as the page shows it."""

from typing import Any

from scrapeyard.builtin.fetching import URL, Fetch, envelope, is_html, read
from scrapeyard.builtin.reading.port import Extractor
from scrapeyard.builtin.schemas import ENVELOPE, PRODUCT, TEXT, told
from scrapeyard.engines.port import FetchRequest

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"url": URL},
    "required": ["url"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **ENVELOPE,
        "title": TEXT,
        "text_hash": told(TEXT, "SHA-256 of the visible words."),
        "product": {"anyOf": [PRODUCT, {"type": "null"}], "description": "Null when the page shows no product."},
    },
}
OUTPUT_SCHEMA["required"] = list(OUTPUT_SCHEMA["properties"])

_FIELDS = ("title", "text_hash", "product")


class ProductScraper:
    """Fetches and extracts."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits INPUT_SCHEMA. Raises FetchFailed."""
        response = await fetch(FetchRequest(url=input["url"]))
        page = await read(self._extractor, response, ("product",)) if is_html(response) else {}
        return {**envelope(input["url"], response), **{name: page.get(name) for name in _FIELDS}}
