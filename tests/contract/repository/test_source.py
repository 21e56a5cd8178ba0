"""What every repository promises, on the real thing: Git, a web server, a published folder, S3 with an index or not."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.repository.sources.port import Offer, Release
from tests.contract.source_stands import (
    SCRIPT,
    FileStand,
    GitStand,
    HttpStand,
    PlainStand,
    S3Stand,
    Stand,
    contents,
    write_scraper,
)
from tests.leaks import PATIENCE
from tests.services.seaweed import SeaweedServer
from tests.services.static_site import StaticSite

KINDS = ["git", "http", "file", "s3-index", "s3-plain"]


@pytest.fixture(params=KINDS)
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    """An empty repository of each kind."""
    kind: str = request.param
    if kind == "git":
        yield GitStand(tmp_path)
    elif kind == "http":
        site: StaticSite = request.getfixturevalue("static_site")
        yield HttpStand(site, tmp_path)
    elif kind == "file":
        (tmp_path / "published").mkdir()
        yield FileStand(tmp_path / "published", tmp_path)
    else:
        server: SeaweedServer = request.getfixturevalue("own_seaweed" if "own" in kind else "seaweed_server")
        bucket = server.make_bucket()
        yield PlainStand(server, bucket) if "plain" in kind else S3Stand(server, bucket, tmp_path)


@pytest.fixture(autouse=True)
async def stopped(stand: Stand) -> AsyncIterator[None]:
    """Every source is stopped, twice."""
    yield
    await stand.source.stop()
    await stand.source.stop()


@pytest.fixture
def scraper(tmp_path: Path) -> Path:
    """A scraper with files of all sorts."""
    return write_scraper(
        tmp_path / "one",
        parts__deep__er__table_csv=b"a,b\n",
        empty_txt=b"",
        binary_bin=bytes(range(256)) * 300,
    )


async def poll(stand: Stand, mark: str = "") -> Offer:
    offer = await stand.source.poll(mark)
    assert offer is not None
    return offer


async def fetched(stand: Stand, release: Release, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    return contents(await stand.source.fetch(release, folder))


async def test_a_version_is_offered_and_fetched_whole(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    (release,) = (await poll(stand)).releases
    assert (release.id, release.version) == ("shop/product", "1.0.0")
    assert release.mark
    assert release.place
    assert await fetched(stand, release, tmp_path / "got") == contents(scraper)


async def test_nothing_new_is_none(stand: Stand, scraper: Path) -> None:
    await stand.publish(scraper)
    offer = await poll(stand)
    assert offer.mark
    assert await stand.source.poll(offer.mark) is None
    assert await stand.source.poll(offer.mark) is None


@pytest.mark.parametrize("mark", ["nonsense", "etag:", 'etag:"other"', "date:never", "etag:a\r\nb", "list:0", "\udcff"])
async def test_a_mark_it_never_gave_brings_the_whole_offer(stand: Stand, scraper: Path, mark: str) -> None:
    await stand.publish(scraper)
    assert len((await poll(stand, mark)).releases) == 1


async def test_a_new_version_stands_beside_the_old(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    before = await poll(stand)
    await stand.publish(write_scraper(tmp_path / "two", version="1.1.0-rc.1+build.5", script=SCRIPT + "# new\n"))
    after = await poll(stand, before.mark)
    assert after.mark != before.mark
    by_version = {release.version: release for release in after.releases}
    assert set(by_version) == {"1.0.0", "1.1.0-rc.1+build.5"}
    assert by_version["1.0.0"] == before.releases[0]
    new = await fetched(stand, by_version["1.1.0-rc.1+build.5"], tmp_path / "new")
    assert new["scraper.py"].endswith(b"# new\n")
    assert await fetched(stand, before.releases[0], tmp_path / "old") == contents(scraper)


async def test_many_scrapers(stand: Stand, tmp_path: Path) -> None:
    wanted = {(f"shop/task-{number}", f"1.{minor}.0") for number in range(4) for minor in range(2)}
    for number, (scraper_id, version) in enumerate(sorted(wanted)):
        await stand.publish(write_scraper(tmp_path / f"s{number}", scraper_id, version))
    offer = await poll(stand)
    assert {(release.id, release.version) for release in offer.releases} == wanted
    assert offer.faults == ()


async def test_a_version_that_is_withdrawn_is_not_offered(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    await stand.publish(write_scraper(tmp_path / "two", version="1.1.0"))
    before = await poll(stand)
    await stand.withdraw("shop/product", "1.0.0")
    after = await poll(stand, before.mark)
    assert [release.version for release in after.releases] == ["1.1.0"]


async def test_spoilt_bytes_are_never_handed_on(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    (release,) = (await poll(stand)).releases
    await stand.spoil("shop/product", "1.0.0")
    (tmp_path / "got").mkdir()
    with pytest.raises((ScraperInvalid, SourceUnavailable)):
        await stand.source.fetch(release, tmp_path / "got")


@pytest.mark.parametrize("stand", ["git", "http", "file", "own s3-index", "own s3-plain"], indirect=True)
async def test_it_goes_away_and_comes_back(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    offer = await poll(stand)
    (tmp_path / "got").mkdir()
    stand.go_away()
    async with asyncio.timeout(PATIENCE):  # it does not wait for its own time-out, which is as long
        with pytest.raises(SourceUnavailable) as told:
            await stand.source.poll(offer.mark)
        if not stand.keeps_copy:
            with pytest.raises(SourceUnavailable):
                await stand.source.fetch(offer.releases[0], tmp_path / "got")
    assert stand.source.name.removeprefix("file://") in told.value.message
    assert list((tmp_path / "got").iterdir()) == []
    stand.come_back()
    assert await stand.source.poll(offer.mark) is None
    assert await fetched(stand, offer.releases[0], tmp_path / "again") == contents(scraper)


async def test_several_fetch_the_same_at_once(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    (release,) = (await poll(stand)).releases
    got = await asyncio.gather(*(fetched(stand, release, tmp_path / f"got{number}") for number in range(4)))
    assert got == [contents(scraper)] * 4


async def test_several_fetch_different_ones_at_once(stand: Stand, tmp_path: Path) -> None:
    """As a catalogue does. They are large enough to come in many pieces."""
    folders = {
        f"shop/task-{number}": write_scraper(
            tmp_path / f"task-{number}", f"shop/task-{number}", data_bin=os.urandom(400_000)
        )
        for number in range(8)
    }
    for folder in folders.values():
        await stand.publish(folder)
    releases = (await poll(stand)).releases
    got = await asyncio.gather(
        *(fetched(stand, release, tmp_path / f"got{number}") for number, release in enumerate(releases))
    )
    wanted = [contents(folders[release.id]) for release in releases]
    assert [one == other for one, other in zip(got, wanted, strict=True)] == [True] * 8


async def test_a_fetch_that_is_cancelled_leaves_nothing_running(stand: Stand, scraper: Path, tmp_path: Path) -> None:
    await stand.publish(scraper)
    (release,) = (await poll(stand)).releases
    (tmp_path / "got").mkdir()
    task = asyncio.create_task(stand.source.fetch(release, tmp_path / "got"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await fetched(stand, release, tmp_path / "again") == contents(scraper)
