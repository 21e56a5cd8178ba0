"""Publishing to the real things: a folder, S3 and a web server. Nothing is overwritten, nothing of others is lost."""

import asyncio
import base64
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scrapeyard.errors import BadRequest, ScraperInvalid, SettingsInvalid, SourceUnavailable
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.loading import LoadTerms, identify
from scrapeyard.repository.publish.publish import Published, PublishTarget, pack_scraper, publish
from scrapeyard.repository.publish.targets import open_target
from scrapeyard.repository.sources.indexed.source import bucket_source, http_source
from scrapeyard.repository.sources.port import Source
from scrapeyard.repository.trust.signing import check_signature, public_key_of
from scrapeyard.settings import SourceSettings
from tests.contract.source_stands import SCRIPT, PlainStand, contents, publish_folder, write_scraper
from tests.leaks import PATIENCE
from tests.services import static_site as habits
from tests.services.seaweed import ACCESS_KEY, SECRET_KEY, SeaweedServer
from tests.services.static_site import StaticSite

BIN = Path(sys.executable).parent


class Place:
    """Somewhere to publish to, and a source that reads it."""

    def __init__(self, text: str, settings: SourceSettings, source: Source) -> None:
        self.text = text
        self.settings = settings
        self.source = source

    @property
    def target(self) -> PublishTarget:
        return open_target(self.text, self.settings, PATIENCE)

    async def versions(self) -> dict[str, set[str]]:
        offer = await self.source.poll("")
        assert offer is not None
        assert offer.faults == ()
        found: dict[str, set[str]] = {}
        for release in offer.releases:
            found.setdefault(release.id, set()).add(release.version)
        return found

    async def got(self, version: str, folder: Path) -> Path:
        offer = await self.source.poll("")
        assert offer is not None
        (release,) = [release for release in offer.releases if release.version == version]
        folder.mkdir()
        return await self.source.fetch(release, folder)


@pytest.fixture(params=["folder", "s3", "az", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty one of each kind."""
    if request.param == "folder":
        yield folder_place(tmp_path / "new" / "published")
    elif request.param == "http":
        site: StaticSite = request.getfixturevalue("static_site")
        yield Place(site.url, SourceSettings(), http_source(SourceSettings(type="http", url=site.url), PATIENCE))
    elif request.param == "az":
        settings = request.getfixturevalue("azurite").source("some/where")
        yield Place(f"az://{settings.bucket}/some/where", settings, bucket_source(settings, PATIENCE))
    else:
        server: SeaweedServer = request.getfixturevalue("seaweed_server")
        settings = server.settings(request.getfixturevalue("bucket"), "some/where")
        yield Place(f"s3://{settings.bucket}/some/where", settings, bucket_source(settings, PATIENCE))


def folder_place(folder: Path) -> Place:
    return Place(str(folder), SourceSettings(), http_source(SourceSettings(type="http", url=folder.as_uri()), PATIENCE))


async def put(place: Place, folder: Path, tmp_path: Path, channel: str = "") -> Published:
    return await publish_folder(folder, place.target, tmp_path / "parcel", channel)


async def test_a_version_is_published_and_comes_back(place: Place, tmp_path: Path) -> None:
    folder = write_scraper(tmp_path / "one", parts__data_csv=b"a,b", **{".env": b"SECRET=1"})
    done = await put(place, folder, tmp_path)
    assert (done.outcome, done.id, done.version) == ("published", "shop/product", "1.0.0")
    assert await place.versions() == {"shop/product": {"1.0.0"}}
    got = contents(await place.got("1.0.0", tmp_path / "got"))
    assert got == {name: data for name, data in contents(folder).items() if name != ".env"}
    assert identify(tmp_path / "got")[0].digest == done.digest


async def test_the_same_again_is_nothing_to_do(place: Place, tmp_path: Path) -> None:
    folder = write_scraper(tmp_path / "one")
    await put(place, folder, tmp_path)
    mark = (await place.target.read_index())[1]
    for file in folder.iterdir():
        os.utime(file, (5, 5))
    assert (await put(place, folder, tmp_path)).outcome == "unchanged"
    assert (await place.target.read_index())[1] == mark


async def test_other_content_of_a_version_is_refused_with_both_digests(place: Place, tmp_path: Path) -> None:
    first = await put(place, write_scraper(tmp_path / "one"), tmp_path)
    other = write_scraper(tmp_path / "two", script=SCRIPT + "# changed\n")
    with pytest.raises(ScraperInvalid) as told:
        await put(place, other, tmp_path)
    assert first.digest in told.value.message
    assert identify(other)[0].digest in told.value.message
    assert contents(await place.got("1.0.0", tmp_path / "got")) == contents(tmp_path / "one")


async def test_a_channel_is_moved(place: Place, tmp_path: Path) -> None:
    one, two = write_scraper(tmp_path / "one"), write_scraper(tmp_path / "two", version="2.0.0")
    await put(place, one, tmp_path, "stable")
    await put(place, two, tmp_path, "beta")
    assert (await put(place, two, tmp_path, "stable")).outcome == "moved"
    assert (await put(place, two, tmp_path, "stable")).outcome == "unchanged"
    offer = await place.source.poll("")
    assert offer is not None
    assert offer.channels == {"shop/product": {"stable": "2.0.0", "beta": "2.0.0"}}


async def test_a_dry_run_writes_nothing(place: Place, tmp_path: Path) -> None:
    folder = write_scraper(tmp_path / "one")
    (tmp_path / "work").mkdir()
    parcel = pack_scraper(folder, tmp_path / "work", Limits())
    assert (await publish(parcel, place.target, channel="stable", dry_run=True)).outcome == "published"
    assert (await place.target.read_index())[0] is None


async def test_what_else_is_in_the_index_stays(tmp_path: Path) -> None:
    place = folder_place(tmp_path / "published")
    await put(place, write_scraper(tmp_path / "one"), tmp_path)
    index = tmp_path / "published" / "index.json"
    tree = json.loads(index.read_text())
    tree["note"] = "ours"
    tree["scrapers"]["shop/strange"] = {"versions": {"x": 5}, "owner": "team"}
    index.write_text(json.dumps(tree))
    await put(place, write_scraper(tmp_path / "two", "shop/other"), tmp_path)
    after = json.loads(index.read_text())
    assert after["note"] == "ours"
    assert after["scrapers"]["shop/strange"] == {"versions": {"x": 5}, "owner": "team"}
    assert set(after["scrapers"]) == {"shop/product", "shop/other", "shop/strange"}


async def test_many_publishers_at_once_lose_nothing(place: Place, tmp_path: Path) -> None:
    async def one(number: int) -> Published:
        folder = write_scraper(tmp_path / f"s{number}", f"shop/task-{number % 3}", f"1.{number}.0")
        return await publish_folder(folder, place.target, tmp_path / f"parcel{number}", "stable")

    done = await asyncio.gather(*(one(number) for number in range(9)))
    assert {each.outcome for each in done} == {"published"}
    assert await place.versions() == {
        f"shop/task-{task}": {f"1.{number}.0" for number in range(task, 9, 3)} for task in range(3)
    }


async def test_of_two_with_one_version_the_second_is_refused(place: Place, tmp_path: Path) -> None:
    folders = [write_scraper(tmp_path / f"s{number}", script=f"{SCRIPT}# {number}\n") for number in range(2)]
    tasks = (
        publish_folder(folder, place.target, tmp_path / f"parcel{number}") for number, folder in enumerate(folders)
    )
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(each) for each in done} == {Published, ScraperInvalid}
    winner = next(number for number, each in enumerate(done) if isinstance(each, Published))
    assert contents(await place.got("1.0.0", tmp_path / "got")) == contents(folders[winner])


async def test_a_publisher_that_died_before_the_index_was_there_stops_nobody(
    seaweed_server: SeaweedServer, bucket: str, tmp_path: Path
) -> None:
    target = open_target(f"s3://{bucket}", seaweed_server.settings(bucket), PATIENCE)
    await publish_folder(write_scraper(tmp_path / "one"), target, tmp_path / "first")
    seaweed_server.store(bucket).delete("index.json")
    again = await publish_folder(write_scraper(tmp_path / "two", version="1.1.0"), target, tmp_path / "second")
    assert again.outcome == "published"


def publish_from_another_process(text: str, settings: dict[str, Any], home: str, number: int) -> None:
    folder = write_scraper(Path(home, f"p{number}"), "shop/product", f"1.{number}.0")
    target = open_target(text, SourceSettings(**settings), PATIENCE)
    asyncio.run(publish_folder(folder, target, Path(home, f"work{number}")))
    os._exit(0)  # a thread of obstore that still gives an answer back may abort the interpreter at its end


@pytest.mark.parametrize("place", ["folder", "s3"], indirect=True)
async def test_processes_that_publish_at_once_lose_nothing(place: Place, tmp_path: Path) -> None:
    plain = place.settings.model_dump() | {
        name: getattr(place.settings, name).get_secret_value() for name in ("access_key", "secret_key", "url", "token")
    }
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=publish_from_another_process, args=(place.text, plain, str(tmp_path), number))
        for number in range(3)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            await asyncio.to_thread(worker.join, PATIENCE)
            assert worker.exitcode == 0
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.kill()
    assert await place.versions() == {"shop/product": {"1.0.0", "1.1.0", "1.2.0"}}


async def test_a_server_that_heeds_no_condition_is_read_again(static_site: StaticSite, tmp_path: Path) -> None:
    static_site.heeds_conditions = False
    place = Place(
        static_site.url, SourceSettings(), http_source(SourceSettings(type="http", url=static_site.url), PATIENCE)
    )
    await put(place, write_scraper(tmp_path / "one"), tmp_path)
    overwritten = (static_site.folder / "index.json").read_bytes()
    seen: list[bytes] = []

    def overwrites_once(handler: Any, content: bytes) -> None:
        """Another publisher's index lands right after ours, once."""
        if len(seen) == 1:
            content = overwritten
            (static_site.folder / "index.json").write_bytes(content)
        seen.append(content)
        handler.answer(200, content, {"ETag": f'"{len(seen)}"'})

    static_site.habits["/index.json"] = overwrites_once
    await put(place, write_scraper(tmp_path / "two", version="2.0.0"), tmp_path)
    static_site.habits.clear()
    assert len(seen) == 4
    assert await place.versions() == {"shop/product": {"1.0.0", "2.0.0"}}


async def test_who_published_is_told_so_though_another_wrote_at_once(static_site: StaticSite, tmp_path: Path) -> None:
    place = Place(
        static_site.url, SourceSettings(), http_source(SourceSettings(type="http", url=static_site.url), PATIENCE)
    )
    await put(place, write_scraper(tmp_path / "one"), tmp_path)
    asked = []

    def another_publishes(handler: Any, content: bytes) -> None:
        """Before we read back what we wrote, another publisher builds on it and moves the channel."""
        asked.append(content)
        if len(asked) == 2:
            folder = open_target(str(static_site.folder), SourceSettings(), PATIENCE)
            newest = write_scraper(tmp_path / "three", version="3.0.0")
            asyncio.run(publish_folder(newest, folder, tmp_path / "other", "stable"))
            content = (static_site.folder / "index.json").read_bytes()
        handler.answer(200, content, {"ETag": habits._etag(content)})

    static_site.habits["/index.json"] = another_publishes
    done = await put(place, write_scraper(tmp_path / "two", version="2.0.0"), tmp_path, "stable")
    static_site.habits.clear()
    assert done.outcome == "published"
    assert await place.versions() == {"shop/product": {"1.0.0", "2.0.0", "3.0.0"}}


async def test_the_archive_is_there_before_the_index_names_it(static_site: StaticSite, tmp_path: Path) -> None:
    place = Place(
        static_site.url, SourceSettings(), http_source(SourceSettings(type="http", url=static_site.url), PATIENCE)
    )
    done = await put(place, write_scraper(tmp_path / "one"), tmp_path)
    assert static_site.paths("PUT") == [f"/{done.archive}", "/index.json"]


async def test_a_server_that_fails_in_the_middle_leaves_the_index_as_it_was(place: Place, tmp_path: Path) -> None:
    await put(place, write_scraper(tmp_path / "one"), tmp_path)
    before, _ = await place.target.read_index()

    class Broken:
        name = "broken"

        def __init__(self, real: PublishTarget) -> None:
            self.read_index, self.put_archive = real.read_index, real.put_archive

        async def write_index(self, text: bytes, mark: str) -> bool:
            raise SourceUnavailable("cut off")

    (tmp_path / "work").mkdir()
    parcel = pack_scraper(write_scraper(tmp_path / "two", version="2.0.0"), tmp_path / "work", Limits())
    with pytest.raises(SourceUnavailable, match="cut off"):
        await publish(parcel, Broken(place.target))
    assert (await place.target.read_index())[0] == before
    assert (await publish(parcel, place.target)).outcome == "published"


async def test_an_index_that_changes_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        name = "busy"
        tries = 0

        async def read_index(self) -> tuple[bytes | None, str]:
            return None, ""

        async def put_archive(self, path: str, file: Path) -> None:
            pass

        async def write_index(self, text: bytes, mark: str) -> bool:
            self.tries += 1
            return False

    monkeypatch.setattr("scrapeyard.repository.publish.publish._PAUSE_SECONDS", 0)
    (tmp_path / "work").mkdir()
    busy = Busy()
    with pytest.raises(SourceUnavailable, match="others wrote the index"):
        await publish(pack_scraper(write_scraper(tmp_path / "one"), tmp_path / "work", Limits()), busy)
    assert busy.tries == 30


async def test_a_prefix_with_plain_folders_is_refused(
    seaweed_server: SeaweedServer, bucket: str, tmp_path: Path
) -> None:
    plain = PlainStand(seaweed_server, bucket)
    await plain.publish(write_scraper(tmp_path / "one"))
    with pytest.raises(BadRequest, match="plain folders"):
        await open_target(f"s3://{bucket}/plain", plain.settings, PATIENCE).read_index()


@pytest.mark.parametrize(
    "text", [b"{", b'{"schema": 9, "scrapers": {}}', b'{"schema": 1, "scrapers": {"shop/product": 5}}']
)
async def test_an_index_that_cannot_be_read_is_not_replaced(text: bytes, tmp_path: Path) -> None:
    place = folder_place(tmp_path / "published")
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "index.json").write_bytes(text)
    with pytest.raises(SourceUnavailable):
        await put(place, write_scraper(tmp_path / "one"), tmp_path)
    assert (tmp_path / "published" / "index.json").read_bytes() == text


async def test_a_signed_version_replaces_the_same_unsigned_and_not_the_other_way(place: Place, tmp_path: Path) -> None:
    folder, private = write_scraper(tmp_path / "one"), Ed25519PrivateKey.generate()
    await put(place, folder, tmp_path)
    (tmp_path / "work").mkdir()
    parcel = pack_scraper(folder, tmp_path / "work", Limits(), private)
    assert (await publish(parcel, place.target)).outcome == "published"
    assert (await publish(parcel, place.target)).outcome == "unchanged"
    assert (await put(place, folder, tmp_path)).outcome == "unchanged"
    assert not (folder / "scraper.sig").exists()
    ref, signature = identify(await place.got("1.0.0", tmp_path / "got"))
    check_signature(signature, ref, (public_key_of(private),), "it")


def test_what_an_operator_must_grant_can_be_published(tmp_path: Path) -> None:
    folder = write_scraper(tmp_path / "one")
    manifest = 'id = "shop/product"\nversion = "1.0.0"\nnetwork = "direct"\ncapabilities = ["ai"]\n'
    (folder / "scraper.toml").write_text(manifest)
    (tmp_path / "work").mkdir()
    assert pack_scraper(folder, tmp_path / "work", Limits()).ref.id == "shop/product"
    assert "ai" not in LoadTerms(ceiling=Limits()).capabilities


@pytest.mark.parametrize("fault", ["no manifest", "syntax", "no function"])
def test_a_scraper_that_cannot_run_is_not_published(fault: str, tmp_path: Path) -> None:
    script = {"syntax": "def run(:", "no function": "x = 1"}.get(fault, SCRIPT)
    folder = write_scraper(tmp_path / "one", script=script)
    if fault == "no manifest":
        (folder / "scraper.toml").unlink()
    (tmp_path / "work").mkdir()
    with pytest.raises(ScraperInvalid):
        pack_scraper(folder, tmp_path / "work", Limits())


async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceUnavailable, match="file"):
        await put(folder_place(tmp_path / "file" / "below"), write_scraper(tmp_path / "one"), tmp_path)


async def test_a_server_that_takes_no_put(static_site: StaticSite, tmp_path: Path) -> None:
    static_site.token = "needed"
    place = Place(
        static_site.url, SourceSettings(), http_source(SourceSettings(type="http", url=static_site.url), PATIENCE)
    )
    with pytest.raises(SourceUnavailable, match="401"):
        await put(place, write_scraper(tmp_path / "one"), tmp_path)
    known = SourceSettings(type="http", url=static_site.url, token="needed")
    assert (
        await publish_folder(tmp_path / "one", open_target(static_site.url, known, PATIENCE), tmp_path / "w")
    ).outcome
    static_site.habits["/index.json"] = habits.breaks_down
    with pytest.raises(SourceUnavailable, match="500"):
        await open_target(static_site.url, known, PATIENCE).read_index()


async def test_the_token_of_one_server_is_not_shown_to_another(static_site: StaticSite, tmp_path: Path) -> None:
    known = SourceSettings(type="http", url="http://127.0.0.1:9/", token="secret")
    await publish_folder(write_scraper(tmp_path / "one"), open_target(static_site.url, known, PATIENCE), tmp_path / "w")
    assert not any("authorization" in headers for _, _, headers in static_site.asked)


@pytest.mark.parametrize(
    ("text", "kind"), [("ftp://x/y", BadRequest), ("s3://", SettingsInvalid), ("http://", SettingsInvalid)]
)
def test_targets_that_are_none(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        open_target(text, SourceSettings(), 5)


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SCRAPEYARD_", "S3_", "AWS_"))}
    return subprocess.run(
        [str(BIN / "scrapeyard"), "publish", *arguments],
        capture_output=True,
        text=True,
        env=clean | environment,
        timeout=PATIENCE,
        check=False,
    )


def test_the_command_to_a_folder(tmp_path: Path) -> None:
    folder, to = write_scraper(tmp_path / "one"), tmp_path / "published"
    dry = command(str(folder), "--to", str(to), "--dry-run", "--json")
    assert (dry.returncode, json.loads(dry.stdout)["dry_run"], to.exists()) == (0, True, False), dry.stderr
    done = command(str(folder), "--to", str(to), "--channel", "stable")
    digest = identify(folder)[0].digest
    assert (done.returncode, done.stdout) == (0, f"shop/product@1.0.0 {digest}\n")
    assert "published to" in done.stderr
    again = command(str(folder), "--to", to.as_uri(), "--json")
    assert json.loads(again.stdout)["outcome"] == "unchanged"
    (folder / "scraper.py").write_text(SCRIPT + "# other\n")
    refused = command(str(folder), "--to", str(to))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert digest in refused.stderr


def test_the_command_to_s3_with_keys_of_the_environment(
    seaweed_server: SeaweedServer, bucket: str, tmp_path: Path
) -> None:
    keys = {"S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY, "S3_REGION": "us-east-1"}
    folder = str(write_scraper(tmp_path / "one"))
    to = ("--to", f"s3://{bucket}/scrapers", "--endpoint", seaweed_server.endpoint)
    done = command(folder, *to, "--json", **keys)
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "published"), done.stderr
    wrong = command(folder, *to, **keys | {"S3_SECRET_KEY": "wrong-secret"})
    assert wrong.returncode == 1
    assert "S3_SECRET_KEY" in wrong.stderr
    assert "wrong-secret" not in wrong.stderr


def test_the_command_signs(tmp_path: Path) -> None:
    folder, key = write_scraper(tmp_path / "one"), tmp_path / "key"
    made = subprocess.run(
        [str(BIN / "scrapeyard"), "signing", "make-key", str(key)], capture_output=True, text=True, check=True
    )
    done = command(str(folder), "--to", str(tmp_path / "published"), "--sign", str(key))
    assert done.returncode == 0, done.stderr
    place = folder_place(tmp_path / "published")
    _, signature = identify(asyncio.run(place.got("1.0.0", tmp_path / "got")))
    assert signature is not None
    assert len(base64.b64decode(made.stdout.strip().rpartition(":")[2])) == 32
    assert command(str(folder), "--to", str(tmp_path / "p2"), "--sign", str(tmp_path / "none")).returncode == 2


@pytest.mark.parametrize(
    "arguments", [["--to", "inside"], ["--to", "/tmp/x", "--channel", "Not OK"], ["--to", "gopher://x"], []]
)
def test_the_command_told_wrongly(arguments: list[str], tmp_path: Path) -> None:
    folder = write_scraper(tmp_path / "one")
    arguments = [str(folder / "inside") if each == "inside" else each for each in arguments]
    told = command(str(folder), *arguments)
    assert (told.returncode, told.stdout) == (2, ""), told.stderr
