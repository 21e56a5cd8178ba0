"""What a server answered to a page in the browser."""

import json
from typing import Any

from scrapeyard_sdk.outcomes import BrowserError
from scrapeyard_sdk.page import Headers


class BrowserResponse:
    """An answer that a page in the browser got: of the page itself, or of something that it loaded."""

    def __init__(self, told: dict[str, Any], body: bytes | None = None) -> None:
        self.url: str = told["url"]
        self.status: int = told["status"]
        self.headers = Headers(told.get("headers") or ())
        self.method: str = told.get("method", "GET")
        self.type: str = told.get("type", "document")
        """What the page wanted it for: `document`, `xhr`, `fetch`, `script`, `image`, …"""
        self._body = body

    def __repr__(self) -> str:
        return f"<BrowserResponse {self.status} {self.url}>"

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    @property
    def has_body(self) -> bool:
        """Whether the body is here. It is not if it was too large to be kept, or is that of a page: see `content`."""
        return self._body is not None

    @property
    def body(self) -> bytes:
        """The bytes, decompressed. Raises BrowserError if they are not here."""
        if self._body is None:
            raise BrowserError("browser_step", f"the body of {self.url} is not here: too large, or dropped since")
        return self._body

    @property
    def text(self) -> str:
        """The body as text."""
        _, _, charset = self.headers.get("content-type", "").partition("charset=")
        try:
            return self.body.decode(charset.split(";")[0].strip(" \"'") or "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError when it is not."""
        return json.loads(self.text.removeprefix("\ufeff"))


def responses_of(told: list[dict[str, Any]], bodies: bytes) -> list[BrowserResponse]:
    """Answers and their bodies, which stand one after another."""
    found, place = [], 0
    for each in told:
        size = int(each.get("size", 0))
        found.append(BrowserResponse(each, None if each.get("missing") else bodies[place : place + size]))
        place += 0 if each.get("missing") else size
    return found
