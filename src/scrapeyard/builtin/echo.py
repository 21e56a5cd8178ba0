"""The scraper `builtin/echo`: returns its input, asks nothing of the web. For trying out jobs and measuring them."""

from typing import Any

from scrapeyard.builtin.fetching import Fetch

INPUT_SCHEMA: dict[str, Any] = {"type": "object"}
OUTPUT_SCHEMA: dict[str, Any] = {"type": "object"}


async def echo(_fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
    """The input as it came."""
    return input
