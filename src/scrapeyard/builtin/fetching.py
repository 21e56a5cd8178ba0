"""What the built-in scrapers share: fetching a page and extracting its fields."""

from collections.abc import Awaitable, Callable
from typing import Any, TypedDict, Unpack

from scrapeyard.builtin.pages.kinds import HTML, kind_of
from scrapeyard.builtin.pages.port import Extractor, PageUnreadable, RawPage
from scrapeyard.engines.http.charset import extract_content_type
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

MAX_HEADERS = 200
MAX_HEADER = 4000
Fetch = Callable[[FetchRequest], Awaitable[FetchResponse]]


class Wanted(TypedDict, total=False):
    """What is wanted of a page: fields of a `RawPage`."""

    include: tuple[str, ...]
    main_only: bool | None
    include_tags: tuple[str, ...]
    exclude_tags: tuple[str, ...]
    fields: dict[str, Any]


async def read(extractor: Extractor, response: FetchResponse, **wanted: Unpack[Wanted]) -> dict[str, Any]:
    """The fields of a page, empty if it is of no kind that can be read. Raises FetchFailed (`fetch_decode`) for an HTML
    page that cannot be read; any other document has a warning instead."""
    kind = kind_of(content_type(response), response.body)
    if not kind:
        return {}
    page = RawPage(
        url=response.url,
        body=response.body,
        encoding=response.encoding,
        kind=kind,
        headers=tuple(pair for pair in response.headers if pair[0].lower() == "x-robots-tag"),
        **wanted,
    )
    try:
        return await extractor.extract(page)
    except PageUnreadable as error:
        if kind != HTML:
            return {"warnings": [f"{kind}: {error.message}"]}
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


def shown_headers(response: FetchResponse) -> list[dict[str, str]]:
    """Every header in order, cut where there are many or long ones. A cookie's value is a credential: it is hidden."""
    return [
        {"name": name, "value": _hide_cookie(name, value)[:MAX_HEADER]}
        for name, value in response.headers[:MAX_HEADERS]
    ]


def _hide_cookie(name: str, value: str) -> str:
    if name.lower() != "set-cookie":
        return value
    pair, mark, attributes = value.partition(";")
    return f"{pair.partition('=')[0]}=***{mark}{attributes}"


def media_type(response: FetchResponse) -> str:
    """In lower case, without parameters; empty when there is none."""
    return content_type(response).split(";", 1)[0].strip().lower()


def content_type(response: FetchResponse) -> str:
    """The one that counts; empty when there is none."""
    return extract_content_type([value for key, value in response.headers if key.lower() == "content-type"])
