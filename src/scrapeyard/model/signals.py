"""Short messages every process hears: cancel this run, look at the repository again."""

from msgspec import Struct


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """End this run wherever it is."""

    run_id: str


class Refresh(Struct, frozen=True, kw_only=True, tag="refresh"):
    """Look at the scraper repository and at moved channels now; an empty id means all of it."""

    scraper: str = ""
    sender: str = ""
    """The gateway that has looked already, and need not do so again."""


Signal = Cancel | Refresh
