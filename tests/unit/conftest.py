"""A catalogue over scripted sources. The disk is real."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.sources.folder import FolderSource
from tests.leaks import PATIENCE
from tests.services.catalogues import PAGE, Make
from tests.services.scripted_source import ScriptedSource

QUIET = {"refresh_seconds": 3600, "poll_seconds": 3600, "start_seconds": PATIENCE, "timeout_seconds": PATIENCE}
"""Nothing is looked for unasked, and a start waits until everything is here."""


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[SourcedCatalogue] = []

    def build(
        *sources: ScriptedSource | FolderSource, terms: LoadTerms | None = None, **upkeep: float
    ) -> SourcedCatalogue:
        rules = Upkeep(**{**QUIET, **upkeep})  # type: ignore[arg-type]
        cache = tmp_path / "data" / "cache"
        made.append(
            SourcedCatalogue(sources, cache, {"builtin/page": PAGE}, terms or LoadTerms(ceiling=Limits()), rules)
        )
        return made[-1]

    yield build
    for catalogue in made:
        await catalogue.stop()
        await catalogue.stop()


@pytest.fixture
def shop() -> ScriptedSource:
    return ScriptedSource()
