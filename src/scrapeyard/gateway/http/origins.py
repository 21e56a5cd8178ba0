"""Which web pages may call. Browsers ask first for most calls, but not for uploads by a form and not for WebSockets."""

from starlette.requests import HTTPConnection

from scrapeyard.gateway.http.problems import Refusal


class Origins:
    """Pages of this gateway's own address and of those that the settings name."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self._allowed = frozenset(allowed)

    def check(self, request: HTTPConnection) -> None:
        """Raises Refusal (403) for a page from elsewhere. Programs that are no browsers name no origin."""
        origin = request.headers.get("origin")
        if origin is None or "*" in self._allowed or origin in self._allowed:
            return
        if origin.lower().partition("://")[2] != request.headers.get("host", "").lower():
            raise Refusal("origin_refused", 403, f"pages of {origin[:200]} may not call this gateway")
