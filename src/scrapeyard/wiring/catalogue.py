"""Builds the catalogue from the settings' repositories: for a server, and for commands that run without one."""

import contextlib
from pathlib import Path

from scrapeyard.errors import SettingsInvalid
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.sources.folder import FolderSource
from scrapeyard.repository.sources.git.source import GitSource
from scrapeyard.repository.sources.indexed.source import bucket_source, http_source
from scrapeyard.repository.sources.installed.source import InstalledSource
from scrapeyard.repository.sources.port import Source
from scrapeyard.repository.trust.signing import read_public_keys
from scrapeyard.settings import Settings, SourceSettings
from scrapeyard.wiring.builtins import all_builtins


def make_catalogue(settings: Settings, home: Path | None = None) -> SourcedCatalogue:
    """The built-in scrapers and those of every source. Copies are stored in `home`, or in the data directory if None.

    Raises SettingsInvalid.
    """
    home = home or settings.data_dir.resolve() / "cache"
    repository = settings.repository
    return SourcedCatalogue(
        make_sources(settings, home),
        home / "scrapers",
        {name: builtin.scraper for name, builtin in all_builtins(searches=settings.escalation.searches).items()},
        make_terms(settings),
        Upkeep(
            refresh_seconds=repository.refresh_seconds,
            poll_seconds=repository.poll_seconds,
            timeout_seconds=repository.timeout_seconds,
            versions=repository.versions,
            cache_mb=repository.cache_mb,
        ),
    )


def make_terms(settings: Settings) -> LoadTerms:
    """What the settings allow every scraper. Raises SettingsInvalid."""
    return LoadTerms(
        ceiling=settings.limits.as_limits(),
        direct_network=settings.sandbox.direct_network,
        public_keys=read_public_keys(settings.repository.public_keys),
    )


def make_sources(settings: Settings, home: Path) -> list[Source]:
    """Every repository of the settings, in order of precedence. Raises SettingsInvalid."""
    repository = settings.repository
    sources: list[Source] = []
    if repository.scrapers is not None:
        sources.append(FolderSource(repository.scrapers, name="scrapers", avoid=home))
    for place in (repository.source, *repository.more):
        if place.type:
            sources.append(_make_source(place, repository.timeout_seconds, home))
    if repository.uploads is not None:
        with contextlib.suppress(OSError):  # the source says what is wrong
            repository.uploads.mkdir(parents=True, exist_ok=True)
        sources.append(FolderSource(repository.uploads, name="uploads", avoid=home))
    if repository.installed:
        sources.append(InstalledSource(home / "installed"))
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise SettingsInvalid(f"repository: two repositories are called {name}; give each a name of its own")
    return sources


def _make_source(place: SourceSettings, timeout_seconds: float, home: Path) -> Source:
    if place.type == "folder":
        folder = place.url.get_secret_value()
        return FolderSource(Path(folder), name=place.name or folder, avoid=home)
    if place.type == "git":
        return GitSource(place, home / "git", timeout_seconds)
    return (http_source if place.type == "http" else bucket_source)(place, timeout_seconds)
