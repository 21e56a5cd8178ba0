"""The catalogue over sources that change, vanish and lie. The sources are scripted; the disk is real."""

import asyncio
import shutil

import pytest

from scrapeyard.errors import BadRequest, ScraperInvalid, ScraperNotFound, SourceUnavailable
from scrapeyard.repository.catalogue.sync import AT_ONCE
from scrapeyard.repository.sources.port import Fault
from tests.leaks import until
from tests.services.catalogues import Make, problems, version_of
from tests.services.scripted_source import SCRIPT, ScriptedSource


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
    shop.held = {release.version: asyncio.Event() for release in shop.contents}
    catalogue = make(shop, versions=5)
    starting = asyncio.create_task(catalogue.start())
    await asyncio.to_thread(until, lambda: len(shop.fetched) == AT_ONCE, "the first fetches have begun")
    assert {"shop/product@1.29.0", "shop/product@1.3.0", "shop/other@2.29.0"} <= set(shop.fetched)
    for gate in shop.held.values():
        gate.set()
    await starting
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
            await catalogue.obtain("shop/product@>= >= 1")
