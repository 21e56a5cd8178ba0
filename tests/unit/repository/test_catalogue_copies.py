"""Copies in the cache: how many, how long, and what has left its source."""

import asyncio
import errno
import os
import shutil
from pathlib import Path

import pytest

from scrapeyard.errors import ScraperNotFound, SourceUnavailable
from scrapeyard.repository.archive.copies import DAY, SAFE_SECONDS, Cache
from scrapeyard.repository.catalogue.quota import FULL
from tests.leaks import PATIENCE
from tests.services.catalogues import Make, copies, problems, version_of
from tests.services.scripted_source import SCRIPT, ScriptedSource


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
        monkeypatch.setattr("scrapeyard.repository.catalogue.catalogue.TOUCH_SECONDS", 0.005)
        shop.add("1.0.0")
        catalogue = make(shop)
        await catalogue.start()
        folder = catalogue.resolve("shop/product").folder
        assert folder is not None
        os.utime(folder, (0, 0))
        async with asyncio.timeout(PATIENCE):
            while folder.stat().st_mtime == 0:
                await asyncio.sleep(0.005)
        shutil.rmtree(folder)
        async with asyncio.timeout(PATIENCE):
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
            patch.setattr("scrapeyard.repository.archive.copies._make_folders", full)
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
