"""Scrapers as listings show them: the one place where a listing becomes a document."""

from collections.abc import Iterator, Mapping
from typing import Any

from scrapeyard.repository.manifest.semver import is_prerelease
from scrapeyard.repository.port import Catalogue, Listing


class Listings:
    """What a catalogue knows at one moment, as plain values."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._stale = {state.name: state.stale for state in catalogue.sources()}
        self._channels: dict[str, Mapping[str, str]] = {}

    def all(self, site: str | None = None, words: str | None = None) -> list[dict[str, Any]]:
        """Every version, by id and version; `site` is the part of the id before the slash; `words` is searched in id,
        name and description, ignoring case."""
        documents = (self.brief(listing) for listing in self._catalogue.listings() if _is_of(listing, site))
        return [document for document in documents if _speaks_of(document, words)]

    def of(self, scraper_id: str) -> tuple[Listing, ...]:
        """Every version of one scraper, oldest first."""
        return tuple(listing for listing in self._catalogue.listings() if listing.id == scraper_id)

    def brief(self, listing: Listing) -> dict[str, Any]:
        """One version, as a list shows it."""
        scraper = listing.scraper
        return {
            "id": listing.id,
            "version": listing.version,
            "name": scraper.name if scraper else "",
            "description": scraper.description if scraper else "",
            "builtin": scraper.is_builtin if scraper else False,
            "valid": scraper is not None,
            "problem": listing.problem,
            "source": listing.source,
            "stale": self._stale.get(listing.source, ""),
            "channels": self._names(listing),
        }

    def version(self, listing: Listing) -> dict[str, Any]:
        """One version, beside the others of its scraper."""
        return {
            "version": listing.version,
            "digest": listing.scraper.ref.digest if listing.scraper else "",
            "valid": listing.scraper is not None,
            "problem": listing.problem,
            "prerelease": is_prerelease(listing.version),
            "channels": self._names(listing),
            "source": listing.source,
            "place": listing.place,
            "offered": listing.is_offered,
        }

    def _names(self, listing: Listing) -> list[str]:
        if listing.id not in self._channels:
            self._channels[listing.id] = self._catalogue.channels(listing.id)
        pointing = self._channels[listing.id].items()
        return sorted(channel for channel, version in pointing if version == listing.version)


def sources(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """Every source in order of precedence; times are Unix seconds."""
    for state in catalogue.sources():
        yield {name: getattr(state, name) for name in state.__struct_fields__}


def _is_of(listing: Listing, site: str | None) -> bool:
    return site is None or listing.id.partition("/")[0] == site


def _speaks_of(document: Mapping[str, Any], words: str | None) -> bool:
    if not words:
        return True
    text = f"{document['id']} {document['name']} {document['description']}".casefold()
    return words.casefold() in text
