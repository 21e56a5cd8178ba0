"""What a name means: versions, ranges, channels, and which source owns it."""

from pathlib import Path

import pytest

from scrapeyard.errors import BadRequest, ScraperInvalid, ScraperNotFound, SourceUnavailable
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.repository.sources.folder import FolderSource
from scrapeyard.repository.sources.port import Fault
from tests.services.catalogues import PAGE, Make, problems, version_of
from tests.services.scripted_source import SCRIPT, ScriptedSource


class TestNames:
    @pytest.fixture
    async def catalogue(self, shop: ScriptedSource, make: Make) -> SourcedCatalogue:
        for version in ("1.2.0", "1.4.0", "1.4.7", "1.10.0", "2.0.0", "3.0.0-rc.1", "3.0.0-rc.2"):
            shop.add(version)
        shop.add("0.2.3", "shop/young")
        shop.add("0.3.0", "shop/young")
        shop.channels = {"shop/product": {"next": "3.0.0-rc.1"}}
        catalogue = make(shop)
        await catalogue.start()
        return catalogue

    @pytest.mark.parametrize(
        ("wanted", "version"),
        [
            ("shop/product", "2.0.0"),
            ("shop/product@1.4.0", "1.4.0"),
            ("shop/product@3.0.0-rc.1", "3.0.0-rc.1"),
            ("shop/product@^1.2", "1.10.0"),
            ("shop/product@~1.4", "1.4.7"),
            ("shop/product@1.x", "1.10.0"),
            ("shop/product@1.4.x", "1.4.7"),
            ("shop/product@*", "2.0.0"),
            ("shop/product@>=1.2 <1.4.7", "1.4.0"),
            ("shop/product@>=3.0.0-rc.1", "3.0.0-rc.2"),
            ("shop/product@stable", "2.0.0"),
            ("shop/product@beta", "3.0.0-rc.2"),
            ("shop/product@next", "3.0.0-rc.1"),
            ("shop/young@^0.2.0", "0.2.3"),
        ],
    )
    async def test_good_names(self, catalogue: SourcedCatalogue, wanted: str, version: str) -> None:
        assert catalogue.resolve(wanted).ref.version == version
        assert catalogue.resolve(wanted) is catalogue.resolve(wanted)

    @pytest.mark.parametrize(
        ("wanted", "error", "words"),
        [
            ("shop/product@^9", ScraperNotFound, "1.2.0, 1.4.0"),
            ("shop/product@9.9.9", ScraperNotFound, "there are"),
            ("shop/product@nightly", ScraperNotFound, "beta, next, stable"),
            ("shop/product@>= >= 1", BadRequest, "is not a version or a range"),
            ("shop/product@" + "1" * 201, BadRequest, "is not a version"),
            ("shop/nothing@^1", ScraperNotFound, "no scraper"),
        ],
    )
    async def test_bad_names(
        self, catalogue: SourcedCatalogue, wanted: str, error: type[Exception], words: str
    ) -> None:
        with pytest.raises(error, match=words):
            catalogue.resolve(wanted)

    async def test_an_operators_move_wins_and_can_be_taken_back(self, catalogue: SourcedCatalogue) -> None:
        catalogue.move_channels({"shop/product": {"stable": "1.4.0", "next": "3.0.0-rc.2"}})
        assert version_of(catalogue) == version_of(catalogue, "shop/product@stable") == "1.4.0"
        assert version_of(catalogue, "shop/product@^1.2") == "1.10.0"
        assert catalogue.channels("shop/product") == {"stable": "1.4.0", "next": "3.0.0-rc.2"}
        catalogue.move_channels({"shop/product": {"stable": ""}})
        assert version_of(catalogue) == "2.0.0"
        assert catalogue.channels("shop/product") == {"next": "3.0.0-rc.2"}
        catalogue.move_channels({"shop/product": {"next": ""}})
        assert catalogue.channels("shop/product") == {"next": "3.0.0-rc.1"}

    async def test_a_channel_that_points_nowhere_says_so(self, catalogue: SourcedCatalogue) -> None:
        catalogue.move_channels({"shop/product": {"stable": "7.0.0"}})
        with pytest.raises(ScraperNotFound, match=r"stable .* points to 7\.0\.0"):
            catalogue.resolve("shop/product")
        assert version_of(catalogue, "shop/product@2.0.0") == "2.0.0"

    async def test_listings_tell_where_each_comes_from(self, catalogue: SourcedCatalogue) -> None:
        listed = {(listing.id, listing.version): listing for listing in catalogue.listings()}
        assert listed["shop/product", "1.4.0"].source == "shop"
        assert listed["shop/product", "1.4.0"].place == "shop/product@1.4.0"
        assert listed["builtin/page", "1.0.0"].source == ""
        assert list(listed) == sorted(listed, key=lambda name: name[0])


class TestPrecedence:
    async def test_the_first_source_that_has_an_id_owns_it(self, make: Make) -> None:
        first, second = ScriptedSource("first"), ScriptedSource("second")
        first.add("1.0.0")
        second.add("9.0.0")
        second.add("1.0.0", "shop/only")
        catalogue = make(first, second)
        await catalogue.start()
        assert version_of(catalogue) == "1.0.0"
        assert version_of(catalogue, "shop/only") == "1.0.0"
        with pytest.raises(ScraperNotFound):
            catalogue.resolve("shop/product@9.0.0")
        told = [(state.name, state.hidden) for state in catalogue.sources()]
        assert told == [("first", ()), ("second", ("shop/product",))]

    async def test_a_faulty_one_owns_its_id_too(self, make: Make) -> None:
        first, second = ScriptedSource("first"), ScriptedSource("second")
        first.faults = (Fault(id="shop/product", version="1.0.0", place="here", problem="it is all wrong"),)
        second.add("9.0.0")
        catalogue = make(first, second)
        await catalogue.start()
        with pytest.raises(ScraperInvalid, match="all wrong"):
            catalogue.resolve("shop/product")

    async def test_one_that_is_not_downloaded_yet_displaces_nothing(self, make: Make) -> None:
        first, second = ScriptedSource("first"), ScriptedSource("second")
        second.add("9.0.0")
        catalogue = make(first, second)
        await catalogue.start()
        first.add("1.0.0")
        first.broken["1.0.0"] = SourceUnavailable("later")
        await catalogue.refresh()
        assert version_of(catalogue) == "9.0.0"
        first.broken.clear()
        await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0"

    async def test_a_source_that_is_down_hides_no_other(self, make: Make) -> None:
        first, second = ScriptedSource("first"), ScriptedSource("second")
        first.down = SourceUnavailable("gone")
        second.add("1.0.0")
        catalogue = make(first, second)
        await catalogue.start()
        assert version_of(catalogue) == "1.0.0"
        assert [state.stale for state in catalogue.sources()] == ["gone", ""]

    async def test_built_in_names_are_reserved(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("9.0.0", "builtin/page")
        catalogue = make(shop)
        await catalogue.start()
        assert catalogue.resolve("builtin/page") is PAGE
        assert "built-in" in problems(catalogue)["builtin/page@9.0.0"]


class TestFolderChannels:
    async def test_a_folder_says_where_channels_point(self, make: Make, tmp_path: Path) -> None:
        root = tmp_path / "scrapers"
        for version in ("1.0.0", "1.1.0"):
            (root / version).mkdir(parents=True)
            (root / version / "scraper.py").write_text(SCRIPT)
            (root / version / "scraper.toml").write_text(f'id = "shop/product"\nversion = "{version}"\n')
        (root / "channels.toml").write_text('["shop/product"]\nstable = "1.0.0"\n')
        catalogue = make(FolderSource(root))
        await catalogue.start()
        assert version_of(catalogue) == "1.0.0"
        (root / "channels.toml").write_text('["shop/product"]\nstable = "newest"\n')
        await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0", "a wrong file changes nothing"
        assert "must be a version" in problems(catalogue)["channels.toml@"]
        (root / "channels.toml").unlink()
        await catalogue.refresh()
        assert version_of(catalogue) == "1.1.0"
        assert problems(catalogue) == {}
