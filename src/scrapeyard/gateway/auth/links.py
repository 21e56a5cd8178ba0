"""Signed links: a browser opens a download or a stream by one, without a header. Each is for one path and one key, for
some minutes, and ends with the key."""

import hmac
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.types import Scope

from scrapeyard.errors import NotFound, Refusal
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.gateway.http.paths import our_path
from scrapeyard.model.identity import Identity, Pepper

PARAMETER: Final = "link"
MAX_SECONDS: Final = 3600
_MAX_LINK: Final = 500


class SignedLinks:
    """Makes links, and knows the caller by one."""

    def __init__(self, keys: KeyRing, pepper: Pepper, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._pepper = pepper
        self._clock = clock

    in_use = False
    """Links are made with keys, which say that calls must be authenticated."""

    def make(self, identity: Identity, path: str, seconds: int) -> tuple[str, float]:
        """A path with its signature, and until when it can be opened. Raises Refusal (403) if the caller has no key."""
        if not identity.key_id:
            raise Refusal("forbidden", 403, "links are made with a key, and this call was recognised by other means")
        until = int(self._clock()) + seconds
        words, (place, _, query) = f"{identity.key_id}.{until}", path.partition("?")
        signature = self._sign(words, our_path(unquote(place)), parse_qsl(query, keep_blank_values=True))
        return f"{path}{'&' if query else '?'}{PARAMETER}={words}.{signature}", float(until)

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        """Who made the link that the request opens; None if it is no link. Takes the link out of the query, which
        routes read. Raises Refusal (401)."""
        query = scope.get("query_string", b"")
        if token is not None or b"link=" not in query:
            return None
        given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        links = [value for name, value in given if name == PARAMETER]
        if len(links) != 1 or scope.get("method", "GET") not in ("GET", "HEAD"):
            raise unauthenticated("a link opens one download or stream")
        rest = [(name, value) for name, value in given if name != PARAMETER]
        identity = self._opened(links[0], scope["path"], rest)
        scope["query_string"] = urlencode(rest).encode()
        return identity

    def _opened(self, link: str, path: str, query: list[tuple[str, str]]) -> Identity:
        words, _, signature = link[:_MAX_LINK].rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(words, path, query).encode()):
            raise unauthenticated("the link was not made here, or for another path")
        key_id, _, until = words.partition(".")
        if self._clock() >= float(until):
            raise unauthenticated("the link has expired; make another with POST /api/links")
        try:
            return self._keys.checked(self._keys.get(key_id))
        except NotFound:
            raise unauthenticated("the key that the link was made with is gone") from None

    def _sign(self, words: str, path: str, query: list[tuple[str, str]]) -> str:
        return self._pepper.sign("link", f"{words} {path} {urlencode(query)}")
