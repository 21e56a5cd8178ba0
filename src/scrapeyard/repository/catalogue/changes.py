"""Telling the log what became of the scrapers."""

from scrapeyard.repository.catalogue.resolve import Index
from scrapeyard.repository.port import Listing
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
Name = tuple[str, str]
"""Id and version."""
MAX_LINES = 20
"""Changes told one by one; of more at once, only the number is."""


def note_changes(before: Index, now: Index, *, changes_too: bool) -> None:
    """Tell of new problems; with `changes_too`, also of versions that came and went."""
    old, new = _differing(before, now), _differing(now, before)
    known = {(listing.id, listing.problem) for listing in old}
    for listing in new:
        if listing.problem and (listing.id, listing.problem) not in known:
            log.warning("repository.invalid", scraper=listing.id, problem=listing.problem)
    if changes_too:
        _note(_running(old), _running(new))


def _differing(one: Index, other: Index) -> list[Listing]:
    """The listings of those families that are not the same in both."""
    families = (family for name, family in one.families.items() if other.families.get(name) is not family)
    return [listing for family in families for listing in family.listings]


def _note(before: dict[Name, Listing], now: dict[Name, Listing]) -> None:
    came = [listing for name, listing in now.items() if name not in before or _differ(before[name], listing)]
    went = [listing for name, listing in before.items() if name not in now]
    if len(came) + len(went) > MAX_LINES:
        log.info("repository.changed", came=len(came), went=len(went))
        return
    for listing in came:
        log.info("repository.loaded", scraper=f"{listing.id}@{listing.version}", source=listing.source)
    for listing in went:
        log.info("repository.removed", scraper=f"{listing.id}@{listing.version}", source=listing.source)


def _running(listings: list[Listing]) -> dict[Name, Listing]:
    return {(listing.id, listing.version): listing for listing in listings if listing.scraper}


def _differ(one: Listing, other: Listing) -> bool:
    return one.scraper is None or other.scraper is None or one.scraper.ref.digest != other.scraper.ref.digest
