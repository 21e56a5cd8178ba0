"""What the built-in scrapers share: fetching a page and extracting its fields."""

from collections.abc import Awaitable, Callable
from typing import Any

from scrapeyard.builtin.reading.port import Extractor, PageUnreadable, RawPage
from scrapeyard.engines.http.charset import extract_content_type
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

Fetch = Callable[[FetchRequest], Awaitable[FetchResponse]]

URL: dict[str, Any] = {
    "type": "string",
    "format": "uri",
    "pattern": "^https?://",
    "maxLength": 8192,
    "description": "The page to fetch.",
}


async def read(
    extractor: Extractor, response: FetchResponse, include: tuple[str, ...], *, main_only: bool = True
) -> dict[str, Any]:
    """The fields of an HTML page. Raises FetchFailed (`fetch_decode`) for one that cannot be read."""
    page = RawPage(
        url=response.url,
        body=response.body,
        encoding=response.encoding,
        headers=tuple(pair for pair in response.headers if pair[0].lower() == "x-robots-tag"),
        include=include,
        main_only=main_only,
    )
    try:
        return await extractor.extract(page)
    except PageUnreadable as error:
        raise FetchFailed(ExitReason.FETCH_DECODE, error.message, site_status=response.status) from None


def envelope(url: str, response: FetchResponse) -> dict[str, Any]:
    """The fields that every result begins with."""
    return {
        "status": response.status,
        "url": url,
        "final_url": response.url,
        "content_type": content_type(response) or None,
        "size": response.kept if response.kept is not None else len(response.body),
        "redirects": list(response.redirects),
    }


def header(response: FetchResponse, name: str) -> str | None:
    """The value, the last of several; None when there is none."""
    return next((value for key, value in reversed(response.headers) if key.lower() == name), None)


def is_html(response: FetchResponse) -> bool:
    """Whether it is HTML, by its content type, or by its first bytes if it has none."""
    media = media_type(response)
    if media:
        return media in ("text/html", "application/xhtml+xml")
    return response.body[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def media_type(response: FetchResponse) -> str:
    """In lower case, without parameters; empty when there is none."""
    return content_type(response).split(";", 1)[0].strip().lower()


def content_type(response: FetchResponse) -> str:
    """The one that counts; empty when there is none."""
    return extract_content_type([value for key, value in response.headers if key.lower() == "content-type"])
