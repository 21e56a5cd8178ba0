"""How a request is known again: its method, its address, the digest of its body, and whether redirects are followed."""

import difflib
import hashlib
from collections.abc import Iterable

from msgspec import Struct

from scrapeyard.authoring.redaction import Veil, clean_body, clean_url
from scrapeyard.engines.http.checks import check_allowed, first_hop
from scrapeyard.engines.port import FetchRequest
from scrapeyard.model import Scraper

MAX_COMPARED = 300
"""Characters of an address that count when the nearest one is sought."""


class Asked(Struct, frozen=True, kw_only=True):
    """One request as a cassette knows it. Headers do not count."""

    method: str
    url: str
    """In the engine's own spelling, secrets hidden."""
    body_sha256: str = ""
    """Of the request's body, secrets hidden; empty when there is none."""
    follow_redirects: bool = True

    def __str__(self) -> str:
        body = f" with body {self.body_sha256[:12]}…" if self.body_sha256 else ""
        return f"{self.method} {self.url}{body}{'' if self.follow_redirects else ' (redirects not followed)'}"


def asked_of(request: FetchRequest, scraper: Scraper | None, veil: Veil) -> Asked:
    """The request as it is recorded and looked for. `veil` hides the scraper's own secrets.

    Raises FetchFailed just as the engine would before it sends anything: a bad URL, a host that is not allowed.
    """
    hop = first_hop(request)
    check_allowed(hop.target, scraper.allowed_hosts if scraper else ())
    return Asked(
        method=hop.method,
        url=clean_url(veil.text(hop.target.url)),
        body_sha256=_digest(request, veil),
        follow_redirects=request.follow_redirects,
    )


def nearest(asked: Asked, known: Iterable[Asked]) -> Asked | None:
    """The known request that is most like this one; None when none is known."""
    return max(known, key=lambda each: _likeness(asked, each), default=None)


def _likeness(one: Asked, other: Asked) -> tuple[bool, float, bool]:
    ratio = difflib.SequenceMatcher(None, one.url[:MAX_COMPARED], other.url[:MAX_COMPARED], autojunk=False).ratio()
    return one.url == other.url, ratio, one.method == other.method


def _digest(request: FetchRequest, veil: Veil) -> str:
    if not request.body:
        return ""
    kind = next((value for name, value in request.headers.items() if name.lower() == "content-type"), "")
    return hashlib.sha256(clean_body(veil.data(request.body), kind)).hexdigest()
