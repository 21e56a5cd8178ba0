"""An S3-compatible store as repository: with an index, or plain folders by version; told what is wrong with it."""

import time
from pathlib import Path

import obstore
import pytest
from pydantic import SecretStr

from scrapeyard.errors import ScraperInvalid, SettingsInvalid, SourceUnavailable
from scrapeyard.repository.sources.indexed import plain as objects_plain
from scrapeyard.repository.sources.indexed.source import bucket_source
from scrapeyard.repository.sources.port import Offer, Release, Source
from scrapeyard.settings import SourceSettings
from tests.contract.source_stands import PlainStand, S3Stand, contents, write_scraper
from tests.leaks import PATIENCE
from tests.services.seaweed import SECRET_KEY, SeaweedServer

MAX_FILES = 20


@pytest.fixture
def plain(seaweed_server: SeaweedServer, bucket: str) -> PlainStand:
    stand = PlainStand(seaweed_server, bucket)
    stand.source = bucket_source(stand.settings, PATIENCE)
    return stand


async def offered(source: Source, mark: str = "") -> Offer:
    offer = await source.poll(mark)
    assert offer is not None
    return offer


def put(stand: PlainStand, **objects: bytes) -> None:
    for name, content in objects.items():
        obstore.put(stand.store, name, content)


async def test_an_empty_bucket_offers_nothing(plain: PlainStand) -> None:
    offer = await offered(plain.source)
    assert (offer.releases, offer.faults) == ((), ())
    assert await plain.source.poll(offer.mark) is None


async def test_an_index_takes_the_place_of_plain_folders(plain: PlainStand, tmp_path: Path) -> None:
    await plain.publish(write_scraper(tmp_path / "one"))
    before = await offered(plain.source)
    obstore.put(plain.store, "index.json", b'{"schema": 1, "scrapers": {}}')
    after = await offered(plain.source, before.mark)
    assert after.releases == ()
    obstore.delete(plain.store, "index.json")
    assert len((await offered(plain.source, after.mark)).releases) == 1


async def test_what_is_no_scraper_is_passed_over(plain: PlainStand, tmp_path: Path) -> None:
    await plain.publish(write_scraper(tmp_path / "one"))
    put(
        plain,
        **{
            "readme.md": b"x",
            "shop/product/notes.txt": b"x",
            "shop/product/2.0.0/only-a-script.py": b"x",
            "Shop/Product/1.0.0/scraper.toml": b"x",
            "shop/product/.git/scraper.toml": b"x",
            "shop/product/1.0.0/.env": b"SECRET=1",
            "shop/product/1.0.0/__pycache__/scraper.pyc": b"x",
            "shop/product/latest/scraper.toml": b"x",
        },
    )
    offer = await offered(plain.source)
    assert [(release.id, release.version) for release in offer.releases] == [("shop/product", "1.0.0")]
    assert {fault.place for fault in offer.faults} >= {"shop/product/latest/"}
    assert all("semantic version" in fault.problem for fault in offer.faults)
    (tmp_path / "got").mkdir()
    assert contents(await plain.source.fetch(offer.releases[0], tmp_path / "got")) == contents(tmp_path / "one")


async def test_a_version_that_changes_between_listing_and_fetching(plain: PlainStand, tmp_path: Path) -> None:
    await plain.publish(write_scraper(tmp_path / "one"))
    (release,) = (await offered(plain.source)).releases
    put(plain, **{"shop/product/1.0.0/late.py": b"x"})
    (tmp_path / "got").mkdir()
    with pytest.raises(SourceUnavailable, match="changed since it was listed"):
        await plain.source.fetch(release, tmp_path / "got")
    assert list((tmp_path / "got").iterdir()) == []


async def test_too_many_files_in_a_plain_folder(
    plain: PlainStand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_plain, "MAX_FILES", MAX_FILES)
    await plain.publish(write_scraper(tmp_path / "one"))
    put(plain, **{f"shop/product/1.0.0/data/{number}": b"x" for number in range(MAX_FILES)})
    (release,) = (await offered(plain.source)).releases
    (tmp_path / "got").mkdir()
    with pytest.raises(ScraperInvalid, match=f"more than {MAX_FILES} files"):
        await plain.source.fetch(release, tmp_path / "got")
    assert list((tmp_path / "got").iterdir()) == []


async def test_many_files_arrive_whole(plain: PlainStand, tmp_path: Path) -> None:
    files = {f"data__{number:03}": bytes([number]) * 100 for number in range(100)}
    await plain.publish(write_scraper(tmp_path / "one", **files))
    (release,) = (await offered(plain.source)).releases
    (tmp_path / "got").mkdir()
    assert contents(await plain.source.fetch(release, tmp_path / "got")) == contents(tmp_path / "one")


async def test_a_place_that_was_never_listed(plain: PlainStand, tmp_path: Path) -> None:
    (tmp_path / "got").mkdir()
    for place in ("../other/", "shop/", "/", "a/b/1.0.0/"):
        with pytest.raises((SourceUnavailable, ScraperInvalid)):
            await plain.source.fetch(
                Release(id="a/b", version="1.0.0", mark="0" * 64, place=place, size=1), tmp_path / "got"
            )
    assert list((tmp_path / "got").iterdir()) == []


WRONG = {
    "no bucket": ({"bucket": "no-such-bucket-here"}, "no such bucket; check S3_BUCKET_NAME"),
    "wrong key": ({"access_key": SecretStr("other")}, "S3_ACCESS_KEY"),
    "wrong secret": ({"secret_key": SecretStr("other-secret")}, "S3_SECRET_KEY"),
    "nobody there": ({"endpoint": "http://127.0.0.1:9"}, "cannot be reached"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_is_told(seaweed_server: SeaweedServer, bucket: str, what: str) -> None:
    change, words = WRONG[what]
    settings = seaweed_server.settings(bucket).model_copy(update=change)
    with pytest.raises(SourceUnavailable, match=words) as told:
        await bucket_source(settings, PATIENCE).poll("")
    assert SECRET_KEY not in told.value.message
    assert "other-secret" not in told.value.message
    assert "\n" not in told.value.message


async def test_a_store_without_credentials_fails_in_time(
    seaweed_server: SeaweedServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    settings = SourceSettings(type="s3", bucket=bucket, endpoint=seaweed_server.endpoint)
    began = time.monotonic()
    with pytest.raises(SourceUnavailable):
        await bucket_source(settings, 2.0).poll("")
    assert time.monotonic() - began < 60, "by themselves the clients of such stores try for three minutes"


async def test_keys_of_the_settings_are_not_mixed_with_those_of_the_machine(
    seaweed_server: SeaweedServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "another")
    assert (await offered(bucket_source(seaweed_server.settings(bucket), PATIENCE))).releases == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bucket": ""}, "S3_BUCKET_NAME"),
        ({"endpoint": "s3.example.com"}, "endpoint"),
        ({"secret_key": SecretStr("")}, "secret_key"),
    ],
)
def test_settings_that_can_never_work(change: dict[str, object], words: str) -> None:
    good = SourceSettings(type="s3", bucket="some", access_key=SecretStr("a"), secret_key=SecretStr("b"))
    with pytest.raises(SettingsInvalid, match=words):
        bucket_source(good.model_copy(update=change), PATIENCE)


async def test_its_name_tells_bucket_and_prefix(seaweed_server: SeaweedServer) -> None:
    assert bucket_source(seaweed_server.settings("some", "/a/b/"), 1).name == "s3://some/a/b"
    assert bucket_source(seaweed_server.settings("some"), 1).name == "s3://some"


async def test_an_unchanged_index_is_not_sent_again(seaweed_server: SeaweedServer, bucket: str, tmp_path: Path) -> None:
    stand = S3Stand(seaweed_server, bucket, tmp_path)
    stand.source = bucket_source(stand.settings, PATIENCE)
    await stand.publish(write_scraper(tmp_path / "one"), "stable")
    offer = await offered(stand.source)
    assert offer.mark.startswith("etag:")
    assert offer.channels == {"shop/product": {"stable": "1.0.0"}}
    assert await stand.source.poll(offer.mark) is None
