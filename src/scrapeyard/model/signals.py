"""Short messages every process hears: cancel this run, look at the repository again, forget kept pages, read how
a site is to be treated."""

from msgspec import Struct


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """End this run wherever it is."""

    run_id: str


class Refresh(Struct, frozen=True, kw_only=True, tag="refresh"):
    """Look at the scraper repository and at moved channels now; an empty id means all of it."""

    scraper: str = ""
    sender: str = ""
    """The gateway that has looked already, and need not do so again."""


class Invalidate(Struct, frozen=True, kw_only=True, tag="invalidate"):
    """Forget kept pages: those of a URL (in its one spelling), those of a site, or with neither all of them."""

    url: str = ""
    site: str = ""


class SitesChanged(Struct, frozen=True, kw_only=True, tag="sites"):
    """Operators want a site treated in another way: read the store now."""

    sender: str = ""
    """The process that knows it already."""


Signal = Cancel | Refresh | Invalidate | SitesChanged
