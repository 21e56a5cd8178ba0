"""The catalogue over real remote repositories: live without a restart, and serving when they are down."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.errors import ScraperInvalid, ScraperNotFound
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.settings import Settings, load
from scrapeyard.wiring.catalogue import make_catalogue
from tests.contract.source_stands import HttpStand, PlainStand, S3Stand, write_scraper
from tests.leaks import PATIENCE
from tests.services.seaweed import ACCESS_KEY, SECRET_KEY, SeaweedServer
from tests.services.static_site import StaticSite

Stand = HttpStand | S3Stand | PlainStand


@pytest.fixture(params=["http", "s3-index", "s3-plain"])
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    """An empty repository of each kind."""
    if request.param == "http":
        site: StaticSite = request.getfixturevalue("static_site")
        yield HttpStand(site, tmp_path)
        return
    server: SeaweedServer = request.getfixturevalue("own_seaweed" if "own" in request.param else "seaweed_server")
    bucket = server.make_bucket()
    yield PlainStand(server, bucket) if "plain" in request.param else S3Stand(server, bucket, tmp_path)


def settings_for(stand: Stand, home: Path) -> Settings:
    """By the environment names that an operator uses."""
    if isinstance(stand, HttpStand):
        environ = {"SCRIPT_REPOSITORY_TYPE": "http", "SCRIPT_REPOSITORY_URL": stand.site.url}
    else:
        environ = {
            "SCRIPT_REPOSITORY_TYPE": "s3",
            "S3_BUCKET_NAME": stand.settings.bucket,
            "S3_REGION": "us-east-1",
            "S3_PREFIX": stand.settings.prefix,
            "S3_ACCESS_KEY": ACCESS_KEY,
            "S3_SECRET_KEY": SECRET_KEY,
            "SCRAPEYARD_REPOSITORY__SOURCE__ENDPOINT": stand.server.endpoint,
        }
    given: dict[str, Any] = {
        "data_dir": home / "data",
        "repository": {"poll_seconds": 3600, "timeout_seconds": PATIENCE, "installed": False},
    }
    return load(given, environ=environ, folder=home)


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[SourcedCatalogue]:
    """A catalogue that has looked: a start does not wait long for that."""
    catalogue = make_catalogue(settings)
    await catalogue.start()
    try:
        await catalogue.refresh()
        yield catalogue
    finally:
        await catalogue.stop()


@pytest.mark.parametrize("stand", ["http", "own s3-index", "own s3-plain"], indirect=True)
async def test_new_versions_are_live_and_survive_an_outage_and_a_restart(stand: Stand, tmp_path: Path) -> None:
    settings = settings_for(stand, tmp_path)
    await stand.publish(write_scraper(tmp_path / "one"))
    async with serving(settings) as catalogue:
        assert catalogue.resolve("shop/product").ref.version == "1.0.0"
        await stand.publish(write_scraper(tmp_path / "two", version="1.1.0"))
        await catalogue.refresh()
        assert catalogue.resolve("shop/product@^1").ref.version == "1.1.0"
        stand.go_away()
        await catalogue.refresh()
        assert catalogue.resolve("shop/product@1.0.0").ref.version == "1.0.0"
        assert catalogue.sources()[0].stale

    async with serving(settings) as again:
        assert again.resolve("shop/product").ref.version == "1.1.0"
        assert again.sources()[0].stale
        stand.come_back()
        await again.refresh()
        assert again.sources()[0].stale == ""


async def test_a_spoilt_version_never_runs_and_harms_no_other(stand: Stand, tmp_path: Path) -> None:
    await stand.publish(write_scraper(tmp_path / "good", "shop/good"))
    await stand.publish(write_scraper(tmp_path / "bad", "shop/bad"))
    await stand.spoil("shop/bad", "1.0.0")
    async with serving(settings_for(stand, tmp_path)) as catalogue:
        assert catalogue.resolve("shop/good").ref.version == "1.0.0"
        bad = [listing for listing in catalogue.listings() if listing.id == "shop/bad"]
        assert [listing.scraper for listing in bad] == [None]
        assert bad[0].problem


async def test_an_index_that_lies_about_the_content_is_not_believed(static_site: StaticSite, tmp_path: Path) -> None:
    stand = HttpStand(static_site, tmp_path)
    await stand.publish(write_scraper(tmp_path / "one"))
    entry = stand.read()["scrapers"]["shop/product"]["versions"]["1.0.0"]
    false, true = "0" * 64, entry["digest"]

    def say(digest: str) -> None:
        stand.edit(lambda tree: tree["scrapers"]["shop/product"]["versions"]["1.0.0"].update(digest=digest))

    say(false)
    async with serving(settings_for(stand, tmp_path)) as catalogue:
        with pytest.raises(ScraperInvalid) as caught:
            catalogue.resolve("shop/product")
        assert false[:12] in caught.value.message
        assert true[:12] in caught.value.message
        for digest in (true, false):
            say(digest)
            await catalogue.refresh()
            assert catalogue.resolve("shop/product").ref.digest == true


async def test_an_unchanged_repository_is_asked_once_and_sends_no_archive(
    static_site: StaticSite, tmp_path: Path
) -> None:
    stand = HttpStand(static_site, tmp_path)
    for number in range(20):
        await stand.publish(write_scraper(tmp_path / f"s{number}", f"shop/task-{number}"))
    async with serving(settings_for(stand, tmp_path)) as catalogue:
        assert len([path for path in static_site.paths() if path.startswith("/archives/")]) == 20
        static_site.forget()
        await catalogue.refresh()
        assert static_site.paths() == ["/index.json"]
        assert static_site.sent < 1000
        with pytest.raises(ScraperNotFound):
            catalogue.resolve("shop/none")
