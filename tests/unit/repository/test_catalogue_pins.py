"""Runs and jobs carry the digest of their content: a catalogue answers with exactly that, or not at all."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scrapeyard.errors import ScraperNotFound, SourceUnavailable
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.sources.folder import FolderSource
from scrapeyard.repository.trust.signing import public_key_of
from tests.services.catalogues import Make
from tests.services.scripted_source import SCRIPT, ScriptedSource

NAME = "shop/product@1.0.0"
OTHER = f"{SCRIPT}# other\n"


@pytest.fixture
async def fresh(shop: ScriptedSource, tmp_path: Path) -> AsyncIterator[SourcedCatalogue]:
    """A catalogue on another machine: same source, empty cache. Not started."""
    catalogue = SourcedCatalogue([shop], tmp_path / "elsewhere" / "cache", {}, LoadTerms(ceiling=Limits()))
    yield catalogue
    await catalogue.stop()


async def digest_of(shop: ScriptedSource, make: Make) -> tuple[SourcedCatalogue, str]:
    shop.add("1.0.0")
    catalogue = make(shop)
    await catalogue.start()
    return catalogue, catalogue.resolve(NAME).ref.digest


async def test_other_content_of_the_version_is_never_taken(
    shop: ScriptedSource, make: Make, fresh: SourcedCatalogue
) -> None:
    _, digest = await digest_of(shop, make)
    shop.add("1.0.0", script=OTHER)
    await fresh.start()
    other = fresh.resolve(NAME).ref.digest
    with pytest.raises(SourceUnavailable):
        fresh.resolve(NAME, digest)
    with pytest.raises(SourceUnavailable, match=f"{digest[:12]}.*{other[:12]}"):
        await fresh.obtain(NAME, digest)


async def test_the_same_question_again_at_once_downloads_nothing(
    shop: ScriptedSource, make: Make, fresh: SourcedCatalogue
) -> None:
    _, digest = await digest_of(shop, make)
    shop.add("1.0.0", script=OTHER)
    await fresh.start()
    with pytest.raises(SourceUnavailable):
        await fresh.obtain(NAME, digest)
    before = len(shop.fetched), len(shop.looked)
    with pytest.raises(SourceUnavailable, match=digest[:12]):
        await fresh.obtain(NAME, digest)
    assert (len(shop.fetched), len(shop.looked)) == before


async def test_an_older_machine_fetches_the_content_that_a_newer_one_knows(
    shop: ScriptedSource, make: Make, fresh: SourcedCatalogue
) -> None:
    """The tag moved, and the run comes from a gateway that has only seen the new content."""
    old, first = await digest_of(shop, make)
    shop.add("1.0.0", script=OTHER)
    await fresh.start()
    second = fresh.resolve(NAME).ref.digest
    await old.refresh()
    assert old.resolve(NAME).ref.digest == first
    assert (await old.obtain(NAME, second)).ref.digest == second
    assert old.resolve(NAME, second).ref.digest == second
    assert old.resolve(NAME, first).ref.digest == first
    assert old.resolve(NAME).ref.digest == first, "calls without a digest go on as before"


async def test_a_version_that_came_later_is_fetched(shop: ScriptedSource, make: Make, fresh: SourcedCatalogue) -> None:
    shop.add("0.9.0")
    await fresh.start()
    _, digest = await digest_of(shop, make)
    assert (await fresh.obtain(NAME, digest)).ref.digest == digest


async def test_a_version_that_nobody_has_is_not_found(shop: ScriptedSource, make: Make) -> None:
    catalogue, digest = await digest_of(shop, make)
    with pytest.raises(ScraperNotFound):
        await catalogue.obtain("shop/product@3.0.0", digest)


async def test_a_digest_of_another_scraper_is_refused(shop: ScriptedSource, make: Make) -> None:
    shop.add("1.0.0", "shop/list")
    catalogue, _ = await digest_of(shop, make)
    other = catalogue.resolve("shop/list").ref.digest
    with pytest.raises(SourceUnavailable):
        await catalogue.obtain(NAME, other)


async def test_an_unsigned_copy_is_not_found_by_its_digest(shop: ScriptedSource, make: Make) -> None:
    """The copy lies in the cache, but scrapers of its source must be signed now. Those of the other need not."""
    _, digest = await digest_of(shop, make)
    shop.remove("1.0.0")
    local = ScriptedSource("local")
    local.needs_signatures = False
    local.add("2.0.0")
    terms = LoadTerms(ceiling=Limits(), public_keys=(public_key_of(Ed25519PrivateKey.generate()),))
    strict = make(local, shop, terms=terms)
    await strict.start()
    assert strict.resolve("shop/product").ref.version == "2.0.0"
    with pytest.raises(ScraperNotFound):
        await strict.obtain(NAME, digest)


async def test_a_run_that_waits_keeps_its_content_while_a_folder_is_edited(make: Make, tmp_path: Path) -> None:
    home = tmp_path / "scrapers" / "product"
    home.mkdir(parents=True)
    (home / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    (home / "scraper.py").write_text(SCRIPT)
    catalogue = make(FolderSource(tmp_path / "scrapers"))
    await catalogue.start()
    before = catalogue.resolve(NAME)
    (home / "scraper.py").write_text(OTHER)
    await catalogue.refresh()
    assert catalogue.resolve(NAME).ref.digest != before.ref.digest
    assert (await catalogue.obtain(NAME, before.ref.digest)).ref == before.ref
    (home / "scraper.py").write_text("def broken(:\n")
    await catalogue.refresh()
    assert catalogue.resolve(NAME, before.ref.digest).ref == before.ref
