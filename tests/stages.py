"""Stages of the engine, called as its entry calls them."""

from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.port import Caller, FetchRequest

_SITES = Sites()


def context_of(request: FetchRequest, caller: Caller | None = None) -> FetchContext:
    """The fetch that the engine makes of a request."""
    return FetchContext.of(request, caller or Caller(), _SITES)
