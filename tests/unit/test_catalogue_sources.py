"""The catalogue over sources that change, vanish and lie. The sources are scripted; the disk is real."""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scrapeyard.errors import BadRequest, ScraperInvalid, ScraperNotFound, SourceUnavailable
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.cache import DAY, SAFE_SECONDS, Cache
from scrapeyard.repository.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.loading import Terms
from scrapeyard.repository.room import FULL
from scrapeyard.repository.sources.folder import FolderSource
from scrapeyard.repository.sources.port import Fault
from tests.services.scripted_source import SCRIPT, ScriptedSource

PAGE = Scraper(ref=ScraperRef(id="builtin/page", version="1.0.0"), folder=None)
Make = Callable[..., SourcedCatalogue]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[SourcedCatalogue] = []

    def build(*sources: ScriptedSource | FolderSource, terms: Terms | None = None, **upkeep: float) -> SourcedCatalogue:
        rules = Upkeep(**{"refresh_seconds": 3600, "poll_seconds": 3600, **upkeep})  # type: ignore[arg-type]
        cache = tmp_path / "data" / "cache"
        made.append(SourcedCatalogue(sources, cache, {"builtin/page": PAGE}, terms or Terms(ceiling=Limits()), rules))
        return made[-1]

    yield build
    for catalogue in made:
        await catalogue.stop()
        await catalogue.stop()


@pytest.fixture
def shop() -> ScriptedSource:
    return ScriptedSource()


def version_of(catalogue: SourcedCatalogue, wanted: str = "shop/product") -> str:
    return catalogue.resolve(wanted).ref.version


def problems(catalogue: SourcedCatalogue) -> dict[str, str]:
    found = catalogue.listings()
    return {f"{listing.id}@{listing.version}": listing.problem for listing in found if listing.scraper is None}


def copies(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "data" / "cache").iterdir()}


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
            ("shop/product@>= 1", BadRequest, "without spaces"),
            ("shop/product@" + "1" * 65, BadRequest, "is not a version"),
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


async def test_a_new_version_is_here_after_a_refresh_and_only_it_is_fetched(shop: ScriptedSource, make: Make) -> None:
    shop.add("1.0.0")
    catalogue = make(shop)
    await catalogue.start()
    shop.add("1.1.0")
    shop.fetched.clear()
    await catalogue.refresh()
    assert version_of(catalogue) == "1.1.0"
    assert shop.fetched == ["shop/product@1.1.0"]
    await catalogue.refresh()
    assert shop.fetched == ["shop/product@1.1.0"]
    assert shop.looked[-1] == shop.mark, "an unchanged source is asked with its mark"


async def test_what_only_moved_in_its_source_is_not_fetched_again(shop: ScriptedSource, make: Make) -> None:
    shop.add("1.0.0", place="main abc")
    catalogue = make(shop)
    await catalogue.start()
    known = catalogue.resolve("shop/product")
    shop.remove("1.0.0")
    shop.add("1.0.0", place="tag 1.0.0")
    shop.faults = (Fault(id="shop/odd", place="there", problem="odd"),)
    await catalogue.refresh()
    assert shop.fetched == ["shop/product@1.0.0"]
    assert catalogue.resolve("shop/product") is known
    assert [listing.place for listing in catalogue.listings() if listing.id == "shop/product"] == ["tag 1.0.0"]


async def test_what_is_known_serves_until_the_new_one_is_whole(shop: ScriptedSource, make: Make) -> None:
    shop.add("1.0.0")
    catalogue = make(shop)
    await catalogue.start()
    shop.remove("1.0.0")
    shop.add("1.1.0")
    shop.held["1.1.0"] = asyncio.Event()
    refreshing = asyncio.create_task(catalogue.refresh())
    await shop.reached.wait()
    assert version_of(catalogue) == "1.0.0"
    shop.held["1.1.0"].set()
    await refreshing
    assert version_of(catalogue) == "1.1.0"


async def test_the_newest_versions_are_fetched_first_and_only_so_many(shop: ScriptedSource, make: Make) -> None:
    for minor in range(30):
        shop.add(f"1.{minor}.0")
        shop.add(f"2.{minor}.0", "shop/other")
    shop.channels = {"shop/product": {"stable": "1.3.0"}}
    catalogue = make(shop, versions=5)
    await catalogue.start()
    assert {"shop/product@1.29.0", "shop/product@1.3.0", "shop/other@2.29.0"} <= set(shop.fetched[:4])
    assert len(shop.fetched) == 11
    assert version_of(catalogue) == "1.3.0"
    assert version_of(catalogue, "shop/product@~1.25") == "1.25.0"
    with pytest.raises(SourceUnavailable, match="not kept ready") as caught:
        catalogue.resolve("shop/product@1.24.0")
    assert caught.value.details == {"obtainable": True}


async def test_many_prereleases_do_not_push_the_release_out(shop: ScriptedSource, make: Make) -> None:
    shop.add("1.0.0")
    for number in range(9):
        shop.add(f"2.0.0-rc.{number}")
    catalogue = make(shop, versions=3)
    await catalogue.start()
    assert version_of(catalogue) == "1.0.0"
    assert version_of(catalogue, "shop/product@beta") == "2.0.0-rc.8"


async def test_a_moved_channel_brings_an_old_version_in(shop: ScriptedSource, make: Make) -> None:
    for minor in range(5):
        shop.add(f"1.{minor}.0")
    catalogue = make(shop, versions=2)
    await catalogue.start()
    shop.held["1.0.0"] = asyncio.Event()
    catalogue.move_channels({"shop/product": {"stable": "1.0.0"}})
    await shop.reached.wait()
    shop.held["1.0.0"].set()
    await catalogue.refresh()
    assert version_of(catalogue) == "1.0.0"


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
        assert [state.name for state in catalogue.sources()] == ["first", "second"]

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


class TestDown:
    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            (SourceUnavailable("the host does not answer"), "the host does not answer"),
            (OSError(errno.EHOSTUNREACH, "No route to host"), "No route to host"),
            (RuntimeError("odd"), "RuntimeError: odd"),
        ],
    )
    async def test_it_is_survived_and_told_once(
        self, shop: ScriptedSource, make: Make, fault: Exception, reason: str
    ) -> None:
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        (before,) = catalogue.sources()
        assert (before.stale, before.scrapers, before.mark) == ("", 1, shop.mark)
        shop.down = fault
        with capture_logs() as logs:
            await catalogue.refresh()
            await catalogue.refresh()
            assert version_of(catalogue) == "1.0.0"
            (away,) = catalogue.sources()
            assert reason in away.stale
            assert away.checked_at == before.checked_at
            shop.down = None
            await catalogue.refresh()
        assert [entry["event"] for entry in logs] == ["repository.stale", "repository.fresh"]
        assert catalogue.sources()[0].stale == ""

    async def test_one_that_hangs_is_left_after_its_time(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("1.1.0")
        shop.held["1.1.0"] = asyncio.Event()
        catalogue = make(shop, timeout_seconds=0.05)
        await catalogue.start()
        assert version_of(catalogue) == "1.0.0"
        assert "no answer within 0.05 s" in problems(catalogue)["shop/product@1.1.0"]
        assert "shop/product@1.1.0" in catalogue.sources()[0].stale

    async def test_a_start_does_not_wait_for_a_slow_source(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.held["1.0.0"] = asyncio.Event()
        catalogue = make(shop, start_seconds=0.02)
        await catalogue.start()
        assert [listing.id for listing in catalogue.listings()] == ["builtin/page"]
        shop.held["1.0.0"].set()
        await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0"

    async def test_a_first_start_with_a_dead_source_succeeds(self, shop: ScriptedSource, make: Make) -> None:
        shop.down = SourceUnavailable("gone")
        catalogue = make(shop)
        await catalogue.start()
        assert catalogue.resolve("builtin/page") is PAGE
        assert catalogue.sources()[0].checked_at is None
        with pytest.raises(ScraperNotFound):
            catalogue.resolve("shop/product")
        with pytest.raises(SourceUnavailable, match="shop may have it"):
            await catalogue.obtain("shop/product@1.0.0")

    async def test_one_version_that_cannot_be_had_holds_up_no_other(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("1.1.0")
        shop.add("2.0.0", "shop/other")
        shop.broken["1.1.0"] = SourceUnavailable("half an archive")
        catalogue = make(shop)
        await catalogue.start()
        assert version_of(catalogue) == "1.0.0", "older ones serve while the newest is not here"
        assert version_of(catalogue, "shop/product@^1") == "1.0.0"
        assert version_of(catalogue, "shop/other") == "2.0.0"
        assert problems(catalogue)["shop/product@1.1.0"] == "half an archive"
        with pytest.raises(SourceUnavailable, match="half an archive"):
            catalogue.resolve("shop/product@1.1.0")
        assert "half an archive" in catalogue.sources()[0].stale
        shop.broken.clear()
        await catalogue.refresh()
        assert shop.looked[-1] == shop.mark
        assert version_of(catalogue) == "1.1.0", "tried again though the source has not changed"
        assert catalogue.sources()[0].stale == ""

    async def test_what_left_stays_while_its_replacement_is_missing(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        shop.remove("1.0.0")
        shop.add("1.1.0")
        shop.broken["1.1.0"] = SourceUnavailable("later")
        await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0"

    async def test_a_channel_moves_when_its_version_is_here(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.channels = {"shop/product": {"stable": "1.0.0"}}
        catalogue = make(shop)
        await catalogue.start()
        shop.add("1.1.0")
        shop.channels = {"shop/product": {"stable": "1.1.0"}}
        shop.broken["1.1.0"] = SourceUnavailable("later")
        await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0"
        shop.broken.clear()
        await catalogue.refresh()
        assert version_of(catalogue) == "1.1.0"

    async def test_it_is_asked_again_by_itself(self, shop: ScriptedSource, make: Make) -> None:
        shop.down = SourceUnavailable("gone")
        catalogue = make(shop, poll_seconds=0.005)
        await catalogue.start()
        shop.add("1.0.0")
        shop.down = None
        async with asyncio.timeout(30):
            while catalogue.sources()[0].stale:
                await asyncio.sleep(0.005)
        assert version_of(catalogue) == "1.0.0"


class TestRestart:
    async def test_what_was_known_serves_before_any_network(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("1.1.0")
        shop.channels = {"shop/product": {"stable": "1.0.0"}}
        first = make(shop)
        await first.start()
        await first.stop()
        again = ScriptedSource()
        again.down = SourceUnavailable("gone")
        second = make(again)
        await second.start()
        assert version_of(second) == "1.0.0"
        assert version_of(second, "shop/product@^1") == "1.1.0"
        (state,) = second.sources()
        assert (state.stale, state.checked_at, state.scrapers) == ("gone", None, 2)
        assert again.fetched == []

    async def test_an_unchanged_source_costs_one_question(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        first = make(shop)
        await first.start()
        await first.stop()
        shop.fetched.clear()
        shop.looked.clear()
        second = make(shop)
        await second.start()
        assert (shop.looked, shop.fetched) == ([shop.mark], [])
        assert version_of(second) == "1.0.0"

    async def test_a_copy_that_a_power_loss_cut_is_fetched_again(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        first = make(shop)
        await first.start()
        folder = first.resolve("shop/product").folder
        assert folder is not None
        await first.stop()
        (folder / "scraper.py").chmod(0o644)
        (folder / "scraper.py").write_text("")
        shop.down = SourceUnavailable("gone")
        second = make(shop)
        await second.start()
        with pytest.raises(ScraperNotFound):
            second.resolve("shop/product")
        shop.down = None
        await second.refresh()
        assert shop.looked[-1] == "", "a source that has told this process nothing yet must tell all"
        assert (folder / "scraper.py").read_text() == SCRIPT

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"kept": [{"release": {}}]}', "\0" * 10])
    async def test_a_broken_file_is_ignored_and_told(
        self, shop: ScriptedSource, make: Make, tmp_path: Path, text: str
    ) -> None:
        shop.add("1.0.0")
        first = make(shop)
        await first.start()
        await first.stop()
        (file,) = (tmp_path / "data" / "sources").iterdir()
        file.write_text(text)
        second = make(shop)
        with capture_logs() as logs:
            await second.start()
        assert version_of(second) == "1.0.0"
        assert "repository.state_unreadable" in [entry["event"] for entry in logs]

    async def test_a_changed_rule_of_the_operator_holds_for_old_copies(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0", more='network = "direct"\n')
        granted = make(shop, terms=Terms(ceiling=Limits(), direct_network=("shop/product",)))
        await granted.start()
        assert granted.resolve("shop/product").network == "direct"
        await granted.stop()
        refused = make(shop)
        await refused.start()
        with pytest.raises(ScraperInvalid, match="not granted"):
            refused.resolve("shop/product")

    async def test_an_invalid_version_is_told_again(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0", script="nothing = 1\n")
        first = make(shop)
        await first.start()
        await first.stop()
        second = make(shop)
        await second.start()
        assert "no function run" in problems(second)["shop/product@1.0.0"]


class TestOtherContent:
    async def test_it_is_refused_with_both_digests_and_the_first_serves(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        known = catalogue.resolve("shop/product")
        shop.add("1.0.0", script=SCRIPT + "# another\n")
        await catalogue.refresh()
        assert catalogue.resolve("shop/product").ref == known.ref
        problem = problems(catalogue)["shop/product@1.0.0"]
        assert f"was {known.ref.digest[:12]} and now comes as " in problem
        fetched = len(shop.fetched)
        await catalogue.refresh()
        assert len(shop.fetched) == fetched, "refused once, not at every look"

    async def test_it_is_refused_after_a_restart_too(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        first = make(shop)
        await first.start()
        known = first.resolve("shop/product").ref
        await first.stop()
        shop.add("1.0.0", script=SCRIPT + "# another\n")
        second = make(shop)
        await second.start()
        assert second.resolve("shop/product").ref == known
        await second.stop()
        third = make(shop)
        await third.start()
        assert known.digest[:12] in problems(third)["shop/product@1.0.0"]

    async def test_a_version_that_left_must_come_back_the_same(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("1.1.0")
        catalogue = make(shop)
        await catalogue.start()
        known = catalogue.resolve("shop/product@1.0.0").ref
        shop.remove("1.0.0")
        await catalogue.refresh()
        shop.add("1.0.0", script=SCRIPT + "# another\n")
        await catalogue.refresh()
        assert catalogue.resolve("shop/product@1.0.0").ref == known
        assert known.digest[:12] in problems(catalogue)["shop/product@1.0.0"]

    async def test_a_mutable_source_may_change_it(self, make: Make) -> None:
        shop = ScriptedSource(is_mutable=True)
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        known = catalogue.resolve("shop/product").ref
        shop.add("1.0.0", script=SCRIPT + "# another\n")
        await catalogue.refresh()
        assert catalogue.resolve("shop/product").ref.digest != known.digest
        assert problems(catalogue) == {}


async def test_a_release_must_be_what_it_is_offered_as(shop: ScriptedSource, make: Make) -> None:
    manifest = 'id = "shop/other"\nversion = "9.0.0"\n'
    shop.add_files("shop/product", "1.0.0", {"scraper.toml": manifest, "scraper.py": SCRIPT})
    shop.add_files("../up", "1.0.0", {})
    shop.add_files("shop/odd", "1", {})
    catalogue = make(shop)
    await catalogue.start()
    with pytest.raises(ScraperInvalid, match="its manifest says shop/other@9"):
        catalogue.resolve("shop/product")
    with pytest.raises(ScraperNotFound):
        catalogue.resolve("shop/other")
    assert "not a scraper's id" in problems(catalogue)["../up@"]
    assert "not a semantic version" in problems(catalogue)["shop/odd@"]


async def test_a_broken_newest_release_answers_with_its_problem(shop: ScriptedSource, make: Make) -> None:
    shop.add("1.0.0")
    shop.add("2.0.0", script="nothing = 1\n")
    catalogue = make(shop)
    await catalogue.start()
    for wanted in ("shop/product", "shop/product@*", "shop/product@2.0.0", "shop/product@stable"):
        with pytest.raises(ScraperInvalid, match="no function run"):
            catalogue.resolve(wanted)
    assert version_of(catalogue, "shop/product@^1") == "1.0.0"


class TestLeft:
    async def test_a_version_that_left_answers_to_its_exact_name_alone(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("2.0.0")
        catalogue = make(shop)
        await catalogue.start()
        shop.remove("2.0.0")
        await catalogue.refresh()
        assert version_of(catalogue, "shop/product@2.0.0") == "2.0.0"
        assert version_of(catalogue, "shop/product@*") == version_of(catalogue) == "1.0.0"
        assert "2.0.0" not in [listing.version for listing in catalogue.listings()]
        await catalogue.stop()
        again = make(shop)
        await again.start()
        assert (await again.obtain("shop/product@2.0.0")).ref.version == "2.0.0"

    async def test_of_a_scraper_that_is_gone_only_pinned_runs_find_it(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        shop.remove("1.0.0")
        await catalogue.refresh()
        assert version_of(catalogue, "shop/product@1.0.0") == "1.0.0"
        for wanted in ("shop/product", "shop/product@^1", "shop/product@stable", "shop/product@odd"):
            with pytest.raises(ScraperNotFound, match="no scraper"):
                catalogue.resolve(wanted)

    async def test_a_channel_may_point_to_one_that_left(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("2.0.0")
        catalogue = make(shop)
        await catalogue.start()
        catalogue.move_channels({"shop/product": {"stable": "1.0.0"}})
        shop.remove("1.0.0")
        await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0"

    async def test_it_is_gone_with_its_copy(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        shop.add("2.0.0")
        first = make(shop)
        await first.start()
        folder = first.resolve("shop/product@1.0.0").folder
        assert folder is not None
        shop.remove("1.0.0")
        await first.refresh()
        await first.stop()
        os.utime(folder, (0, folder.stat().st_mtime - DAY - 60))
        second = make(shop)
        await second.start()
        assert folder.exists(), "what is remembered was touched when it was read"
        os.utime(folder, (0, folder.stat().st_mtime - DAY - 60))
        assert Cache(folder.parent).evict((), 1 << 40) == {folder.name}
        third = make(shop)
        await third.start()
        with pytest.raises(ScraperNotFound):
            await third.obtain("shop/product@1.0.0")


class TestObtain:
    async def test_a_version_not_known_yet_makes_the_sources_be_asked(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        shop.add("1.1.0")
        with pytest.raises(ScraperNotFound):
            catalogue.resolve("shop/product@1.1.0")
        looks = len(shop.looked)
        found = await asyncio.gather(*(catalogue.obtain("shop/product@1.1.0") for _ in range(20)))
        assert {scraper.ref.version for scraper in found} == {"1.1.0"}
        assert len(shop.looked) <= looks + 2, "many that ask at once share one look"

    async def test_an_old_version_is_got_when_it_is_asked_for(self, shop: ScriptedSource, make: Make) -> None:
        for minor in range(5):
            shop.add(f"1.{minor}.0")
        catalogue = make(shop, versions=1)
        await catalogue.start()
        assert (await catalogue.obtain("shop/product@1.2.0")).ref.version == "1.2.0"
        assert shop.fetched == ["shop/product@1.4.0", "shop/product@1.2.0"]

    async def test_only_who_offers_it_is_asked(self, shop: ScriptedSource, make: Make) -> None:
        other = ScriptedSource("other")
        for minor in range(3):
            shop.add(f"1.{minor}.0")
        catalogue = make(other, shop, versions=1)
        await catalogue.start()
        other.looked.clear()
        await catalogue.obtain("shop/product@1.0.0")
        assert other.looked == []

    async def test_a_version_that_became_too_old_can_still_be_pinned(self, shop: ScriptedSource, make: Make) -> None:
        shop.add("1.0.0")
        catalogue = make(shop, versions=1)
        await catalogue.start()
        folder = catalogue.resolve("shop/product@1.0.0").folder
        assert folder is not None
        shop.add("2.0.0")
        await catalogue.refresh()
        assert version_of(catalogue, "shop/product@1.0.0") == "1.0.0", "its copy is still here"
        await catalogue.stop()
        shutil.rmtree(folder)
        again = make(shop, versions=1)
        await again.start()
        assert (await again.obtain("shop/product@1.0.0")).folder == folder
        assert version_of(again, "shop/product@1.0.0") == "1.0.0"

    async def test_what_is_nowhere_is_not_found(self, shop: ScriptedSource, make: Make) -> None:
        catalogue = make(shop)
        await catalogue.start()
        with pytest.raises(ScraperNotFound):
            await catalogue.obtain("shop/product@1.0.0")
        with pytest.raises(BadRequest):
            await catalogue.obtain("shop/product@>= 1")


class TestCache:
    @pytest.fixture
    def heavy(self, shop: ScriptedSource) -> ScriptedSource:
        for minor in range(4):
            shop.add(f"1.{minor}.0", script=f"{SCRIPT}# {'x' * 100_000}\n")
        shop.add("1.0.0", "shop/small")
        return shop

    async def test_when_all_do_not_fit_the_newest_win(self, heavy: ScriptedSource, make: Make) -> None:
        catalogue = make(heavy, cache_mb=0.25)
        await catalogue.start()
        await catalogue.refresh()
        assert version_of(catalogue) == "1.3.0"
        assert version_of(catalogue, "shop/small") == "1.0.0"
        assert version_of(catalogue, "shop/product@1.2.0") == "1.2.0"
        assert problems(catalogue) == {"shop/product@1.1.0": FULL, "shop/product@1.0.0": FULL}
        with pytest.raises(SourceUnavailable, match="cache_mb"):
            catalogue.resolve("shop/product@1.0.0")
        assert catalogue.sources()[0].stale == ""

    async def test_a_new_version_pushes_the_oldest_out(self, heavy: ScriptedSource, make: Make) -> None:
        catalogue = make(heavy, cache_mb=0.25)
        await catalogue.start()
        heavy.add("1.4.0", script=f"{SCRIPT}# {'x' * 100_000}\n")
        await catalogue.refresh()
        assert version_of(catalogue) == "1.4.0"
        assert version_of(catalogue, "shop/product@1.3.0") == "1.3.0"
        assert problems(catalogue)["shop/product@1.2.0"] == FULL

    async def test_only_what_nobody_uses_and_nobody_touched_is_evicted(self, tmp_path: Path) -> None:
        cache = Cache(tmp_path / "cache")
        kept = [tmp_path / "cache" / (character * 64) for character in "abcd"]
        for age, folder in enumerate(kept):
            folder.mkdir(parents=True)
            (folder / "x").write_bytes(b"x" * 1000)
            os.utime(folder, (0, folder.stat().st_mtime - age * SAFE_SECONDS - 10))
        used = {kept[3].name}
        assert cache.evict(used, 100_000) == set()
        assert cache.evict(used, 3500) == {kept[2].name}, "the longest untouched goes, and no more than needed"
        assert cache.evict(used, 0) == {kept[1].name}
        assert {path.name for path in (tmp_path / "cache").iterdir()} == {kept[0].name, kept[3].name}
        assert cache.touch([kept[0].name, kept[1].name]) == {kept[1].name}

    async def test_a_copy_that_vanished_is_got_again(
        self, shop: ScriptedSource, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("scrapeyard.repository.catalogue.TOUCH_SECONDS", 0.005)
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        folder = catalogue.resolve("shop/product").folder
        assert folder is not None
        os.utime(folder, (0, 0))
        async with asyncio.timeout(30):
            while folder.stat().st_mtime == 0:
                await asyncio.sleep(0.005)
        shutil.rmtree(folder)
        async with asyncio.timeout(30):
            while len(shop.fetched) < 2 or not folder.exists():
                await asyncio.sleep(0.005)
        await catalogue.refresh()
        assert catalogue.resolve("shop/product").folder == folder

    async def test_a_full_disk_leaves_nothing_half(
        self, shop: ScriptedSource, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        before = copies(tmp_path)
        shop.add("1.1.0")

        def full(_path: Path, *_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("scrapeyard.repository.cache._make_folders", full)
            await catalogue.refresh()
        assert version_of(catalogue) == "1.0.0"
        assert "the disk is full" in catalogue.sources()[0].stale
        assert copies(tmp_path) == before
        await catalogue.refresh()
        assert version_of(catalogue) == "1.1.0"

    async def test_two_processes_may_fetch_the_same_at_once(self, make: Make, tmp_path: Path) -> None:
        shops = [ScriptedSource(), ScriptedSource()]
        for shop in shops:
            for minor in range(10):
                shop.add(f"1.{minor}.0")
        catalogues = [make(shop) for shop in shops]
        await asyncio.gather(*(catalogue.start() for catalogue in catalogues))
        assert [len(catalogue.listings()) for catalogue in catalogues] == [11, 11]
        assert problems(catalogues[0]) == problems(catalogues[1]) == {}
        assert len(copies(tmp_path)) == 10

    async def test_nothing_is_left_of_a_download_that_failed(
        self, shop: ScriptedSource, make: Make, tmp_path: Path
    ) -> None:
        shop.add("1.0.0")
        shop.broken["1.0.0"] = RuntimeError("in the middle")
        catalogue = make(shop)
        await catalogue.start()
        assert copies(tmp_path) == set()


async def test_a_stop_gives_up_what_is_under_way(shop: ScriptedSource, make: Make, tmp_path: Path) -> None:
    shop.add("1.0.0")
    shop.held["1.0.0"] = asyncio.Event()
    catalogue = make(shop, start_seconds=0.01)
    await catalogue.start()
    await shop.reached.wait()
    await catalogue.stop()
    assert copies(tmp_path) == set()
    assert shop.stopped == 1


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
