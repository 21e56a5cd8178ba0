"""A web server as repository: conditional, bounded, and never trusted."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from scrapeyard.errors import ScraperInvalid, SettingsInvalid, SourceUnavailable
from scrapeyard.repository.sources.indexed import document
from scrapeyard.repository.sources.indexed.source import http_source
from scrapeyard.repository.sources.port import Offer, Release, Source
from scrapeyard.settings import SourceSettings
from tests.contract.source_stands import HttpStand, write_scraper
from tests.leaks import PATIENCE
from tests.services import static_site as habits
from tests.services.static_site import Habit, StaticSite

SHORT_SECONDS = 1.0
"""For what stalls."""


def source_at(url: str, token: str = "", timeout_seconds: float = PATIENCE) -> Source:
    return http_source(SourceSettings(type="http", url=SecretStr(url), token=SecretStr(token)), timeout_seconds)


@pytest.fixture
async def stand(static_site: StaticSite, tmp_path: Path) -> HttpStand:
    """A web server with one published scraper, and a source with much patience."""
    stand = HttpStand(static_site, tmp_path)
    stand.source = source_at(static_site.url)
    await stand.publish(write_scraper(tmp_path / "one", data_bin=os.urandom(300_000)))
    return stand


async def offered(source: Source, mark: str = "") -> Offer:
    offer = await source.poll(mark)
    assert offer is not None
    return offer


async def release_of(stand: HttpStand) -> Release:
    return (await offered(stand.source)).releases[0]


def archive_path(stand: HttpStand) -> str:
    return "/" + stand.read()["scrapers"]["shop/product"]["versions"]["1.0.0"]["archive"]


@pytest.mark.parametrize("path", ["", "index.json", "?signed=1", "index.json?signed=1"])
async def test_the_url_may_be_that_of_the_index_or_of_its_folder(stand: HttpStand, path: str, tmp_path: Path) -> None:
    source = source_at(stand.site.url + path)
    (release,) = (await offered(source)).releases
    (tmp_path / "got").mkdir()
    assert ((await source.fetch(release, tmp_path / "got")) / "scraper.py").is_file()
    assert source.name == stand.site.url.rstrip("/") or source.name == stand.site.url


async def test_an_index_of_another_name_in_a_folder_below(stand: HttpStand) -> None:
    (stand.folder / "below").mkdir()
    (stand.folder / "index.json").rename(stand.folder / "below" / "all.json")
    assert (await offered(source_at(stand.site.url + "below/all.json"))).releases


@pytest.mark.parametrize(("etags", "dates"), [(True, True), (True, False), (False, True)])
async def test_an_unchanged_index_is_not_sent_again(stand: HttpStand, etags: bool, dates: bool) -> None:
    stand.site.etags, stand.site.dates = etags, dates
    os.utime(stand.folder / "index.json", (time.time() - 100, time.time() - 100))
    offer = await offered(stand.source)
    stand.site.forget()
    assert await stand.source.poll(offer.mark) is None
    assert stand.site.sent < 300
    asked = stand.site.asked[0][2]
    assert ("if-none-match" in asked) == etags
    assert ("if-modified-since" in asked) == (not etags)
    stand.edit(lambda tree: tree["scrapers"]["shop/product"].update(channels={"stable": "1.0.0"}))
    os.utime(stand.folder / "index.json", (time.time() + 10, time.time() + 10))
    changed = await offered(stand.source, offer.mark)
    assert changed.channels == {"shop/product": {"stable": "1.0.0"}}


async def test_a_change_within_the_same_second_is_noticed_without_entity_tags(stand: HttpStand) -> None:
    stand.site.etags = False
    before = (stand.folder / "index.json").stat()
    offer = await offered(stand.source)
    assert await stand.source.poll(offer.mark) is None
    stand.edit(lambda tree: tree["scrapers"]["shop/product"].update(channels={"stable": "1.0.0"}))
    os.utime(stand.folder / "index.json", (before.st_atime, before.st_mtime))
    assert (await offered(stand.source, offer.mark)).channels == {"shop/product": {"stable": "1.0.0"}}


async def test_a_server_that_marks_nothing_still_answers_none(stand: HttpStand) -> None:
    stand.site.etags = stand.site.dates = False
    offer = await offered(stand.source)
    assert await stand.source.poll(offer.mark) is None


async def test_an_unchanged_index_of_a_thousand_scrapers_costs_next_to_nothing(stand: HttpStand) -> None:
    def grow(tree: dict) -> None:
        scraper = tree["scrapers"]["shop/product"]
        tree["scrapers"] |= {f"shop/task-{number}": scraper for number in range(1000)}

    stand.edit(grow)
    offer = await offered(stand.source)
    assert len(offer.releases) == 1001
    stand.site.forget()
    for _ in range(10):
        assert await stand.source.poll(offer.mark) is None
    assert stand.site.sent < 10_000
    assert set(stand.site.paths()) == {"/index.json"}
    stand.edit(lambda tree: tree["scrapers"].pop("shop/task-7"))
    stand.site.forget()
    assert len((await offered(stand.source, offer.mark)).releases) == 1000
    assert set(stand.site.paths()) == {"/index.json"}


async def test_the_token_is_sent_and_stays_with_its_server(stand: HttpStand, tmp_path: Path) -> None:
    stand.site.token = "sesame-7"
    with pytest.raises(SourceUnavailable, match="401"):
        await stand.source.poll("")
    source = source_at(stand.site.url, "sesame-7")
    assert (await offered(source)).releases
    (tmp_path / "other").mkdir()
    other = StaticSite(tmp_path / "other").start()
    try:
        (other.folder / "index.json").write_bytes((stand.folder / "index.json").read_bytes())
        stand.site.habits["/index.json"] = habits.sends_to(f"http://localhost:{other.port}/index.json")
        assert (await offered(source)).releases
        assert other.asked
        assert not any("authorization" in headers for _, _, headers in other.asked)
    finally:
        other.stop()
    assert stand.site.asked[-1][2]["authorization"] == "Bearer sesame-7"


async def test_a_user_and_password_in_the_url(stand: HttpStand) -> None:
    source = source_at(stand.site.url.replace("//", "//ann:pass%20word@"))
    assert (await offered(source)).releases
    assert stand.site.asked[-1][2]["authorization"] == "Basic YW5uOnBhc3Mgd29yZA=="
    assert "pass" not in source.name
    assert "ann" not in source.name
    stand.site.stop()
    with pytest.raises(SourceUnavailable) as told:
        await source.poll("")
    assert "pass" not in told.value.message


BAD_INDEX: dict[str, tuple[Habit, str]] = {
    "stalls": (habits.stalls, "time|no answer"),
    "dies": (habits.dies, "broke off"),
    "goes on": (habits.goes_on, "how long"),
    "boasts": (habits.boasts, "bytes"),
    "says too little": (habits.says_too_little, "not an index"),
    "breaks down": (habits.breaks_down, "500"),
    "goes round": (habits.goes_round, "circle"),
}


@pytest.mark.parametrize("habit", BAD_INDEX)
async def test_a_server_with_bad_habits(stand: HttpStand, habit: str) -> None:
    """That it was not waited for the end of its time is told by the words: they would be those of one that stalls."""
    stand.site.habits["/index.json"], words = BAD_INDEX[habit]
    with pytest.raises(SourceUnavailable, match=words) as told:
        await (source_at(stand.site.url, timeout_seconds=SHORT_SECONDS) if habit == "stalls" else stand.source).poll("")
    assert "secret" not in told.value.message
    assert stand.site.sent < 4 << 20
    stand.site.habits.clear()
    assert await stand.source.poll("") is not None


BAD_ARCHIVE: dict[str, tuple[Habit, type[Exception], str]] = {
    "stalls": (habits.stalls, SourceUnavailable, "time|no answer"),
    "dies": (habits.dies, SourceUnavailable, "broke off"),
    "goes on": (habits.goes_on, SourceUnavailable, "how long"),
    "boasts": (habits.boasts, ScraperInvalid, "bytes"),
    "says too little": (habits.says_too_little, ScraperInvalid, "SHA-256"),
    "breaks down": (habits.breaks_down, SourceUnavailable, "500"),
    "goes round": (habits.goes_round, SourceUnavailable, "circle"),
}


@pytest.mark.parametrize("habit", BAD_ARCHIVE)
async def test_a_download_with_bad_habits(stand: HttpStand, habit: str, tmp_path: Path) -> None:
    release = await release_of(stand)
    stand.site.habits[archive_path(stand)], kind, words = BAD_ARCHIVE[habit]
    work = tmp_path / "work"
    (work / "got").mkdir(parents=True)
    source = source_at(stand.site.url, timeout_seconds=SHORT_SECONDS) if habit == "stalls" else stand.source
    with pytest.raises(kind, match=words):
        await source.fetch(release, work / "got")
    assert stand.site.sent < 8 << 20
    assert list(work.rglob("*")) == [work / "got"]


async def test_a_wrong_digest_names_both(stand: HttpStand, tmp_path: Path) -> None:
    release = await release_of(stand)
    await stand.spoil("shop/product", "1.0.0")
    real = hashlib.sha256((stand.folder / archive_path(stand)[1:]).read_bytes()).hexdigest()
    (tmp_path / "got").mkdir()
    with pytest.raises(ScraperInvalid) as told:
        await stand.source.fetch(release, tmp_path / "got")
    assert release.mark in told.value.message
    assert real in told.value.message
    assert list((tmp_path / "got").iterdir()) == []


async def test_no_more_than_the_index_says_is_downloaded(stand: HttpStand, tmp_path: Path) -> None:
    release = await release_of(stand)
    path = stand.folder / archive_path(stand)[1:]
    path.write_bytes(path.read_bytes() + b"\0" * (20 << 20))
    stand.site.forget()
    (tmp_path / "got").mkdir()
    with pytest.raises(ScraperInvalid, match=str(release.size)):
        await stand.source.fetch(release, tmp_path / "got")
    assert stand.site.sent < 8 << 20


async def test_an_archive_that_is_gone(stand: HttpStand, tmp_path: Path) -> None:
    release = await release_of(stand)
    (stand.folder / archive_path(stand)[1:]).unlink()
    (tmp_path / "got").mkdir()
    with pytest.raises(SourceUnavailable, match="publish it again"):
        await stand.source.fetch(release, tmp_path / "got")


async def test_an_archive_with_the_right_digest_and_bad_members(stand: HttpStand, tmp_path: Path) -> None:
    evil = b"not a tar at all"
    (stand.folder / "evil.tar").write_bytes(evil)
    release = Release(
        id="shop/product", version="1.0.0", mark=hashlib.sha256(evil).hexdigest(), place="evil.tar", size=len(evil)
    )
    (tmp_path / "got").mkdir()
    with pytest.raises(ScraperInvalid, match=r"evil.tar: .*middle|damaged"):
        await stand.source.fetch(release, tmp_path / "got")


@pytest.mark.parametrize(
    "place", ["../up.tar", "http://elsewhere/a.tar", "/etc/a.tar", "a/../../b.tar", "a?b.tar", "shop/"]
)
async def test_a_place_that_leads_elsewhere_is_not_asked_for(stand: HttpStand, place: str, tmp_path: Path) -> None:
    stand.site.forget()
    with pytest.raises(ScraperInvalid, match="below the index"):
        await stand.source.fetch(Release(id="a/b", version="1.0.0", mark="0" * 64, place=place, size=1), tmp_path)
    assert stand.site.asked == []


async def test_a_disk_that_takes_no_more(stand: HttpStand, tmp_path: Path) -> None:
    release = await release_of(stand)
    with pytest.raises(SourceUnavailable, match="cannot be written"):
        await stand.source.fetch(release, tmp_path / "not there" / "got")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"\xff", b'{"schema": 2, "scrapers": {}}', b'{"schema": 1}', b"[" * 100_000, b"null"]
)
async def test_an_index_that_cannot_be_read(stand: HttpStand, text: bytes) -> None:
    (stand.folder / "index.json").write_bytes(text)
    with pytest.raises(SourceUnavailable, match=r"index.json"):
        await stand.source.poll("")


async def test_an_index_that_is_too_large(stand: HttpStand) -> None:
    tree = stand.read()
    tree["padding"] = "x" * document.MAX_BYTES
    (stand.folder / "index.json").write_text(json.dumps(tree))
    stand.site.forget()
    with pytest.raises(SourceUnavailable, match="bytes"):
        await stand.source.poll("")
    assert stand.site.sent < 4 << 20


async def test_no_index_tells_how_to_make_one(static_site: StaticSite) -> None:
    with pytest.raises(SourceUnavailable, match="scrapeyard publish"):
        await source_at(static_site.url).poll("")


@pytest.mark.parametrize(
    "url", ["shop", "ftp://x/", "http://", "http:///x", "http://x:0/", "http://x:99999/", "file://host/x"]
)
def test_urls_that_can_never_work(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="url"):
        source_at(url)


def test_a_token_that_no_header_can_have() -> None:
    with pytest.raises(SettingsInvalid, match="token"):
        source_at("http://127.0.0.1/", "a\nb")
