"""Sources that are down, slow or gone, restarts without them, and a stop in the middle."""

import asyncio
import errno
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scrapeyard.errors import ScraperInvalid, ScraperNotFound, SourceUnavailable
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.sources.folder import FolderSource
from tests.leaks import PATIENCE
from tests.services.catalogues import PAGE, Make, copies, problems, version_of
from tests.services.scripted_source import SCRIPT, ScriptedSource


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

    async def test_one_without_scrapers_is_no_fault(self, tmp_path: Path, make: Make) -> None:
        catalogue = make(FolderSource(tmp_path))
        with capture_logs() as logs:
            await catalogue.start()
        assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == []

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
        async with asyncio.timeout(PATIENCE):
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
        (before,) = first.sources()
        await first.stop()
        again = ScriptedSource()
        again.down = SourceUnavailable("gone")
        second = make(again)
        await second.start()
        assert version_of(second) == "1.0.0"
        assert version_of(second, "shop/product@^1") == "1.1.0"
        (state,) = second.sources()
        assert (state.stale, state.scrapers) == ("gone", 2)
        assert state.checked_at == pytest.approx(before.checked_at), "told since when"
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
        granted = make(shop, terms=LoadTerms(ceiling=Limits(), direct_network=("shop/product",)))
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


async def test_a_stop_gives_up_what_is_under_way(shop: ScriptedSource, make: Make, tmp_path: Path) -> None:
    shop.add("1.0.0")
    shop.held["1.0.0"] = asyncio.Event()
    catalogue = make(shop, start_seconds=0.01)
    await catalogue.start()
    await shop.reached.wait()
    await catalogue.stop()
    assert copies(tmp_path) == set()
    assert shop.stopped == 1
