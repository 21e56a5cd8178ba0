"""With keys in the settings, nothing unsigned is offered by a repository, also after a restart."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scrapeyard import settings
from scrapeyard.errors import ScraperInvalid, SettingsInvalid
from scrapeyard.model import Limits
from scrapeyard.repository.archive.copies import SIGNATURE
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.repository.catalogue.loading import LoadTerms, identify
from scrapeyard.repository.sources.installed.source import InstalledSource
from scrapeyard.repository.trust.signing import public_key_of, sign
from scrapeyard.wiring.catalogue import make_catalogue
from tests.leaks import PATIENCE
from tests.services.packages import MODULE, install

OURS, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()


class Yard:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scraper = folder / "scrapers" / "product"
        self.scraper.mkdir(parents=True)
        (self.scraper / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
        (self.scraper / "scraper.py").write_text("def run(ctx): ...\n")

    @contextlib.asynccontextmanager
    async def serving(self, *keys: str, mutable: bool = True) -> AsyncIterator[SourcedCatalogue]:
        root = str(self.folder / "scrapers")
        place = {"scrapers": root} if mutable else {"source": {"type": "folder", "url": root}}
        tree = {
            "data_dir": str(self.folder / "data"),
            "repository": {**place, "public_keys": keys or (public_key_of(OURS, "team").text,), "installed": False},
        }
        catalogue = make_catalogue(settings.load(tree, environ={}, folder=self.folder))
        await catalogue.start()
        try:
            await catalogue.refresh()  # a start does not wait long for a look
            yield catalogue
        finally:
            await catalogue.stop()

    def sign(self, private: Ed25519PrivateKey = OURS) -> None:
        (self.scraper / SIGNATURE).write_bytes(sign(identify(self.scraper)[0], private))


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


async def test_a_scraper_is_offered_once_it_is_signed_and_no_longer_when_it_is_changed(yard: Yard) -> None:
    async with yard.serving() as catalogue:
        with pytest.raises(ScraperInvalid, match=f"no {SIGNATURE}"):
            catalogue.resolve("shop/product")
        assert catalogue.resolve("builtin/page").is_builtin
        yard.sign(OTHER)
        await catalogue.refresh()
        with pytest.raises(ScraperInvalid, match="signed by"):
            catalogue.resolve("shop/product")
        yard.sign()
        await catalogue.refresh()
        signed = catalogue.resolve("shop/product")
        (yard.scraper / "scraper.py").write_text("def run(ctx): return 'other'\n")
        await catalogue.refresh()
        with pytest.raises(ScraperInvalid, match="sign it again"):
            catalogue.resolve("shop/product")
        yard.sign()
        await catalogue.refresh()
        assert catalogue.resolve("shop/product").ref.digest != signed.ref.digest


@pytest.mark.parametrize("mutable", [True, False])
async def test_a_copy_serves_after_a_restart_without_its_source_while_its_key_counts(yard: Yard, mutable: bool) -> None:
    yard.sign()
    async with yard.serving(mutable=mutable) as catalogue:
        before = catalogue.resolve("shop/product").ref
    shutil.rmtree(yard.folder / "scrapers")
    async with yard.serving(mutable=mutable) as catalogue:
        assert catalogue.resolve("shop/product").ref == before
    async with yard.serving(public_key_of(OTHER).text, mutable=mutable) as catalogue:
        with pytest.raises(ScraperInvalid, match="signed by"):
            catalogue.resolve("shop/product")


async def test_what_the_operator_installed_needs_no_signature(tmp_path: Path) -> None:
    install(tmp_path / "site", "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    terms = LoadTerms(ceiling=Limits(), public_keys=(public_key_of(OURS),))
    for _ in range(2):
        packages = InstalledSource(
            tmp_path / "home", search=(tmp_path / "site",), is_readable=lambda _: True, seconds=PATIENCE
        )
        catalogue = SourcedCatalogue([packages], tmp_path / "cache", {}, terms)
        await catalogue.start()
        try:
            await catalogue.refresh()
            assert catalogue.resolve("parcel/echo").ref.version == "1.0.0"
        finally:
            await catalogue.stop()


async def test_a_key_that_is_none_stops_the_start(yard: Yard) -> None:
    with pytest.raises(SettingsInvalid, match=r"repository\.public_keys"):
        async with yard.serving("nonsense"):
            pass
