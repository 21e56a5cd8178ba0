"""A child's fetches between the wire and the engines: frames become requests, answers become frames."""

from typing import Any

from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.sandbox.handles.frames import Fetch


def request_of(frame: Fetch, body: bytes) -> FetchRequest:
    """What the script asks for."""
    return FetchRequest(
        url=frame.url,
        method=frame.method,
        headers=frame.headers,
        body=body,
        timeout_seconds=frame.timeout_seconds,
        follow_redirects=frame.follow_redirects,
        max_bytes=frame.max_bytes,
        max_age_seconds=frame.max_age_seconds,
        session=frame.session,
        profile=frame.profile,
        proxy=frame.proxy,
        engine=frame.engine,
        certificate=frame.certificate,
    )


def page_head(number: int, page: FetchResponse) -> dict[str, Any]:
    """The head of the frame that brings a page; its body is the raw part."""
    return {
        "t": "page",
        "n": number,
        "url": page.url,
        "status": page.status,
        "headers": list(page.headers),
        "encoding": page.encoding,
        "elapsed_ms": page.elapsed_ms,
        "redirects": list(page.redirects),
        "age_seconds": page.age_seconds,
        "way": page.way,
        "kept": page.kept,
    }


def failure_head(number: int, failure: FetchFailed) -> dict[str, Any]:
    """The frame that says why there is no page."""
    return {
        "t": "page_error",
        "n": number,
        "reason": failure.reason.value,
        "message": failure.message,
        "site_status": failure.site_status,
        "retry_after": failure.details.get("retry_after"),
    }
