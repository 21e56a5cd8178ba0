"""Which scraper a name means. Built once, then only read; unchanged parts are taken from the previous index."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import islice

from scrapeyard.errors import BadRequest, ScraperNotFound
from scrapeyard.model import SCRAPER_ID, Scraper
from scrapeyard.repository.catalogue.entries import Stock, VersionEntry
from scrapeyard.repository.catalogue.versions import ScraperVersions, VersionSet
from scrapeyard.repository.manifest.channels import Channels, is_channel
from scrapeyard.repository.manifest.semver import MAX_RANGE_LENGTH, exact_version, is_version, parse_range
from scrapeyard.repository.port import Listing

RESERVED = "builtin/"
_NONE: frozenset[str] = frozenset()
MAX_REMEMBERED = 10_000
"""Maximum resolved names in the cache; callers choose the names, so it needs a bound."""

_MAX_COMPARED = 200
"""Ids that an unknown one is compared with: each takes some ten microseconds."""
_MAX_NAMED = 3


class Index:
    """Every scraper by id; the first source that has an id owns it."""

    def __init__(
        self,
        builtins: Mapping[str, Scraper],
        stocks: Sequence[Stock],
        moved: Channels | None = None,
        before: "Index | None" = None,
    ) -> None:
        known = before.families if before else {}
        self.families: dict[str, ScraperVersions] = {}
        for scraper_id, members in _divide(builtins, stocks, moved or {}).items():
            family = known.get(scraper_id)
            if family is None or not family.members.same(members):
                family = ScraperVersions(scraper_id, members, builtins.get(scraper_id))
            self.families[scraper_id] = family
        self._stocks = tuple(stocks)
        self._remembered: dict[str, Scraper] = {}

    @cached_property
    def hidden(self) -> Mapping[str, tuple[str, ...]]:
        """Source → ids that it offers and another source owns."""
        return {
            stock.source: tuple(sorted(name for name in stock.families if self._owned_elsewhere(name, stock.source)))
            for stock in self._stocks
        }

    @cached_property
    def listings(self) -> tuple[Listing, ...]:
        """All of them, by id and version, oldest first."""
        families = (self.families[scraper_id] for scraper_id in sorted(self.families))
        return tuple(listing for family in families for listing in family.listings)

    def resolve(self, wanted: str) -> Scraper:
        """As the port says."""
        known = self._remembered.get(wanted)
        if known is not None:
            return known
        scraper_id, version = split(wanted)
        family = self.families.get(scraper_id)
        if family is None:
            _check(version)
            raise ScraperNotFound(f"no scraper {scraper_id}{self._meant(scraper_id)}")
        scraper = family.resolve(version)
        if len(self._remembered) < MAX_REMEMBERED:
            self._remembered[wanted] = scraper
        return scraper

    def _meant(self, scraper_id: str) -> str:
        """The end of the message about an unknown id: the nearest ids, of the same site or task if there are some."""
        site, _, task = scraper_id.partition("/")
        alike = [name for name in self.families if name.startswith(f"{site}/") or name.endswith(f"/{task}")]
        names = list(islice(alike or self.families, _MAX_COMPARED))
        close = get_close_matches(scraper_id, names, _MAX_NAMED)
        return f"; did you mean {' or '.join(close)}?" if close else ""

    def _owned_elsewhere(self, scraper_id: str, source: str) -> bool:
        return self.families[scraper_id].members.source != source

    def channels(self, scraper_id: str) -> Mapping[str, str]:
        """Channel → version, as now in force."""
        family = self.families.get(scraper_id)
        return family.channels if family else {}

    def pointed_left(self) -> set[str]:
        """Digests of versions that no source offers any more, but a channel points to."""
        return {digest for family in self.families.values() for digest in family.pointed_left()}


def split(wanted: str) -> tuple[str, str]:
    """The id and the part after the @, which is empty if there is none. Raises BadRequest."""
    scraper_id, at, version = wanted[:400].partition("@")
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's name; write site/task or site/task@1.2.3")
    if at and not 0 < len(version) <= MAX_RANGE_LENGTH:
        raise BadRequest(f"{version[:64]!r} is not a version; write {scraper_id}@1.2.3 or {scraper_id}@^1.2")
    return scraper_id, exact_version(version) or version


def _check(version: str) -> None:
    """Raise BadRequest for a malformed version, so that it is reported before an unknown id."""
    if version and not is_version(version) and not is_channel(version):
        parse_range(version)


def _divide(builtins: Mapping[str, Scraper], stocks: Sequence[Stock], moved: Channels) -> dict[str, VersionSet]:
    names = dict.fromkeys([*builtins, *(name for stock in stocks for name in (*stock.families, *stock.left))])
    return {name: _members(name, builtins, stocks, moved.get(name, {})) for name in names}


def _members(
    scraper_id: str, builtins: Mapping[str, Scraper], stocks: Sequence[Stock], moved: Mapping[str, str]
) -> VersionSet:
    owner = _owner(scraper_id, stocks)
    reserved = scraper_id in builtins or scraper_id.startswith(RESERVED)
    channels = owner.channels.get(scraper_id, {})
    return VersionSet(
        source=owner.source,
        entries=owner.families.get(scraper_id, ()),
        channels={**channels, **moved} if moved else channels,
        left=() if reserved else next((stock.left[scraper_id] for stock in stocks if scraper_id in stock.left), ()),
        older=owner.older.get(scraper_id, _NONE),
        reserved=reserved,
    )


def _owner(scraper_id: str, stocks: Sequence[Stock]) -> Stock:
    """The first source that has a downloaded version of it; one that only waits for a download does not displace it."""
    having = [stock for stock in stocks if scraper_id in stock.families]
    here = (stock for stock in having if not _only_waits(stock.families[scraper_id]))
    return next(here, having[0] if having else Stock(source=""))


def _only_waits(entries: tuple[VersionEntry, ...]) -> bool:
    return all(entry.waits for entry in entries)
