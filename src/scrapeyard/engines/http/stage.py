"""What the stages of the engine pass on. A stage is a callable that takes one fetch and wraps the next stage."""

from typing import Protocol, Self

from msgspec import Struct

from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route


class FetchContext(Struct, frozen=True, kw_only=True):
    """One fetch. A stage that changes the request passes on a copy with the same target and site."""

    request: FetchRequest
    caller: Caller
    target: Target
    """The request's URL, parsed."""
    site: str
    """The site of the target's host."""

    @classmethod
    def of(cls, request: FetchRequest, caller: Caller, sites: Sites) -> Self:
        """Parse the request's URL. Raises FetchFailed (`fetch_bad_url`)."""
        target = parse_target(request.url)
        return cls(request=request, caller=caller, target=target, site=sites.of(target.host))


class Fetch(Protocol):
    """A stage, with all stages that it wraps."""

    async def __call__(self, context: FetchContext) -> FetchResponse:
        """Get a page. Raises FetchFailed, whose `reason` is the exit reason if the script lets it through."""


class RoutedFetch(Protocol):
    """A stage that is told the route as well: the client, and what counts its requests."""

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        """As `Fetch`."""
