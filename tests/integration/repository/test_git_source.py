"""Scrapers from real Git repositories, over file, HTTP and ssh: what is offered, what it costs, what goes wrong."""

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import uvloop
from structlog.testing import capture_logs

from scrapeyard.errors import SettingsInvalid, SourceUnavailable
from scrapeyard.repository.sources.git import mirror, refs
from scrapeyard.repository.sources.git import mirror as reader
from scrapeyard.repository.sources.git import source as git_module
from scrapeyard.repository.sources.git.source import GitSource
from scrapeyard.repository.sources.port import Offer, Release, Source
from scrapeyard.settings import SourceSettings
from tests.leaks import PATIENCE, Process, descendants, killed_after, living, until
from tests.services.git_repository import GitRepository
from tests.services.git_server import GitServer

Make = Callable[..., GitSource]


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "remote")


@pytest.fixture
def server(repository: GitRepository) -> Iterator[GitServer]:
    with GitServer(repository.bare.parent) as server:
        yield server


@pytest.fixture
async def make(tmp_path: Path, repository: GitRepository) -> AsyncIterator[Make]:
    sources: list[GitSource] = []

    def build(
        url: str = "", timeout: float = PATIENCE, home: str = "home", max_bytes: int = 0, **more: object
    ) -> GitSource:
        settings = SourceSettings.model_validate({"type": "git", "url": url or repository.url, **more})
        bound = {"max_bytes": max_bytes} if max_bytes else {}
        sources.append(GitSource(settings, tmp_path / home, timeout, **bound))
        return sources[-1]

    yield build
    for source in sources:
        await source.stop()


LOOK = """
import asyncio, pathlib, sys
from scrapeyard.repository.sources.git.source import GitSource
from scrapeyard.settings import SourceSettings
settings = SourceSettings.model_validate({"type": "git", "url": sys.argv[1]})
asyncio.run(GitSource(settings, pathlib.Path(sys.argv[2]), 600).poll(""))
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; only root may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip("this user may not mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


async def looked(source: Source, mark: str = "") -> Offer:
    offer = await source.poll(mark)
    assert offer is not None
    return offer


def names(offer: Offer) -> list[str]:
    return sorted(f"{release.id}@{release.version}" for release in offer.releases)


def pick(offer: Offer, name: str) -> Release:
    return next(release for release in offer.releases if f"{release.id}@{release.version}" == name)


async def content(source: Source, release: Release, folder: Path) -> dict[str, str]:
    folder.mkdir()
    found = await source.fetch(release, folder)
    return {path.relative_to(found).as_posix(): path.read_text() for path in sorted(found.rglob("*")) if path.is_file()}


async def test_what_stands_at_the_tip_is_offered_and_fetched(
    repository: GitRepository, make: Make, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0", "first")
    repository.write("shop/product/lib/prices.py", "x = 1\n")
    repository.write("shop/product/.env", "secret")
    repository.write("shop/product/nested/scraper.toml", 'id = "shop/nested"\nversion = "0.1.0"\n')
    repository.write("README.md", "hello")
    commit = repository.commit()
    source = make()
    offer = await looked(source)
    assert names(offer) == ["shop/nested@0.1.0", "shop/product@1.0.0"]
    assert offer.faults == ()
    release = pick(offer, "shop/product@1.0.0")
    assert release.place == f"main {commit[:7]}: shop/product"
    assert release.mark == repository.git("rev-parse", "HEAD:shop/product")
    assert await content(source, release, tmp_path / "out") == {
        "lib/prices.py": "x = 1\n",
        "scraper.py": "first",
        "scraper.toml": 'id = "shop/product"\nversion = "1.0.0"\n',
    }
    assert (source.name, source.kind, source.is_mutable) == (repository.url, "git", False)
    await source.stop()
    await source.stop()


async def test_a_pushed_version_is_seen_and_the_one_before_stays(
    repository: GitRepository, make: Make, server: GitServer, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0", "first")
    repository.commit()
    source = make(server.url())
    first = await looked(source)
    repository.scraper("shop/product", "1.1.0", "second")
    repository.commit()
    second = await looked(source, first.mark)
    assert names(second) == ["shop/product@1.0.0", "shop/product@1.1.0"]
    assert second.mark != first.mark
    old = await content(source, pick(second, "shop/product@1.0.0"), tmp_path / "old")
    new = await content(source, pick(second, "shop/product@1.1.0"), tmp_path / "new")
    assert (old["scraper.py"], new["scraper.py"]) == ("first", "second")


async def test_an_unchanged_repository_of_hundreds_of_scrapers_costs_little(
    repository: GitRepository, make: Make, server: GitServer
) -> None:
    for number in range(250):
        repository.scraper(f"site{number % 50}/task{number}", "1.0.0", f"number {number}")
    repository.commit("v1.0.0")
    source = make(server.url())
    offer = await looked(source)
    assert len(offer.releases) == 250
    packs, sent = server.packs, server.sent
    assert await source.poll(offer.mark) is None
    assert server.packs == packs
    assert server.sent - sent < 25_000
    repository.scraper("site1/task1", "1.1.0")
    repository.commit()
    sent = server.sent
    assert len((await looked(source, offer.mark)).releases) == 251
    assert server.sent - sent < 25_000


async def test_tags_offer_versions_that_left_the_tip(repository: GitRepository, make: Make, tmp_path: Path) -> None:
    repository.scraper("shop/product", "1.4.2", "tagged")
    repository.scraper("shop/list", "0.9.0", "whole")
    repository.commit("shop/product@1.4.2", "v7.0.0")
    repository.scraper("shop/product", "1.5.0", "slashed")
    repository.git("commit", "--quiet", "--all", "--message=next")
    repository.git("tag", "--annotate", "--message=release", "shop/product/v1.5.0")
    repository.remove("shop/list")
    repository.scraper("shop/product", "2.0.0")
    repository.commit("unrelated", "shop/product-v1.9.0", "v1", "shop@1.0.0")
    source = make(history=1)
    offer = await looked(source)
    assert names(offer) == ["shop/list@0.9.0", "shop/product@1.4.2", "shop/product@1.5.0", "shop/product@2.0.0"]
    assert offer.faults == ()
    assert pick(offer, "shop/product@1.4.2").place == "tag shop/product@1.4.2: shop/product"
    assert pick(offer, "shop/list@0.9.0").place == "tag v7.0.0: shop/list"
    found = await content(source, pick(offer, "shop/product@1.5.0"), tmp_path / "out")
    assert found["scraper.py"] == "slashed"


async def test_a_tag_that_disagrees_with_its_manifest_is_a_fault_that_names_both(
    repository: GitRepository, make: Make
) -> None:
    repository.scraper("shop/product", "1.4.2")
    repository.commit("shop/product@1.4.3", "shop/absent@1.0.0")
    repository.git("tag", "shop/product/v3.0.0", repository.git("rev-parse", "HEAD:shop/product/scraper.py"))
    repository.push()
    offer = await looked(make())
    assert names(offer) == ["shop/product@1.4.2"]
    problems = {(fault.id, fault.version): fault.problem for fault in offer.faults}
    assert set(problems) == {("shop/product", "1.4.3"), ("shop/absent", "1.0.0"), ("shop/product", "3.0.0")}
    assert "1.4.3" in problems["shop/product", "1.4.3"]
    assert "1.4.2" in problems["shop/product", "1.4.3"]
    assert "names no commit" in problems["shop/product", "3.0.0"]


async def test_where_tag_and_tip_differ_the_tag_stands(repository: GitRepository, make: Make, tmp_path: Path) -> None:
    repository.scraper("shop/product", "1.4.2", "tagged")
    first = repository.commit("shop/product@1.4.2")
    repository.scraper("shop/product", "1.4.2", "edited after")
    second = repository.commit()
    source = make()
    offer = await looked(source)
    assert (await content(source, pick(offer, "shop/product@1.4.2"), tmp_path / "out"))["scraper.py"] == "tagged"
    (fault,) = offer.faults
    assert (fault.id, fault.version) == ("shop/product", "1.4.2")
    assert first[:7] in fault.problem
    assert second[:7] in fault.problem
    assert "raise the version" in fault.problem


async def test_hidden_files_and_other_scrapers_below_are_no_difference(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.4.2")
    repository.commit("shop/product@1.4.2")
    repository.write("shop/product/.gitignore", "*.tmp")
    repository.scraper("shop/nested", "1.0.0", folder="shop/product/nested")
    repository.commit()
    offer = await looked(make())
    assert names(offer) == ["shop/nested@1.0.0", "shop/product@1.4.2"]
    assert offer.faults == ()


async def test_two_tags_with_other_content_for_a_version_are_a_fault(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.0.0", "one")
    repository.commit("v1.0.0")
    repository.scraper("shop/product", "1.0.0", "two")
    repository.commit("v1.1.0")
    repository.scraper("shop/product", "1.0.1", "three")
    repository.commit()
    offer = await looked(make())
    assert pick(offer, "shop/product@1.0.0").place == "tag v1.0.0: shop/product"
    assert [fault.place for fault in offer.faults] == ["tag v1.1.0: shop/product"]


async def test_two_folders_of_one_commit_with_one_name_are_a_fault_that_names_both(
    repository: GitRepository, make: Make
) -> None:
    repository.scraper("shop/product", "1.0.0", "one", folder="first")
    repository.scraper("shop/product", "1.0.0", "other", folder="second")
    repository.commit()
    offer = await looked(make())
    assert [release.place.partition(": ")[2] for release in offer.releases] == ["first"]
    (fault,) = offer.faults
    assert fault.place.endswith(": second")
    assert "another folder of this commit" in fault.problem
    assert ": first" in fault.problem
    assert "raise the version" not in fault.problem


async def test_a_version_of_the_past_is_what_stood_there_last(
    repository: GitRepository, make: Make, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0", "first")
    repository.commit()
    repository.scraper("shop/product", "1.0.0", "mended")
    repository.commit()
    for version in ("1.1.0", "1.2.0", "1.3.0"):
        repository.scraper("shop/product", version, version)
        repository.commit()
    source = make()
    offer = await looked(source)
    assert names(offer) == [f"shop/product@{version}" for version in ("1.0.0", "1.1.0", "1.2.0", "1.3.0")]
    assert (await content(source, pick(offer, "shop/product@1.0.0"), tmp_path / "out"))["scraper.py"] == "mended"
    assert names(await looked(make(history=2))) == ["shop/product@1.2.0", "shop/product@1.3.0"]


async def test_a_new_tag_on_an_old_commit_does_not_cut_the_history(repository: GitRepository, make: Make) -> None:
    for number in range(6):
        repository.scraper("shop/product", f"1.{number}.0", str(number))
        repository.commit()
    source = make(history=5)
    first = await looked(source)
    repository.git("tag", "shop/product@1.4.0", "HEAD~1")
    repository.push()
    second = await looked(source, first.mark)
    assert names(second) == names(first)
    assert pick(second, "shop/product@1.4.0").place == "tag shop/product@1.4.0: shop/product"


async def test_merges_count_by_the_line_of_the_branch(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "side")
    repository.scraper("shop/product", "1.1.0-rc.1")
    repository.commit(branch="side")
    repository.scraper("shop/product", "1.1.0")
    repository.commit(branch="side")
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message=merge", "side")
    repository.push()
    assert names(await looked(make(branch="main"))) == ["shop/product@1.0.0", "shop/product@1.1.0"]


async def test_a_branch_and_a_folder_may_be_chosen(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.0.0", folder="team/scrapers/product")
    repository.scraper("shop/other", "1.0.0", folder="elsewhere")
    repository.write("team/scrapers/channels.toml", '["shop/product"]\nstable = "1.0.0"\n')
    repository.commit()
    repository.scraper("shop/product", "2.0.0", folder="team/scrapers/product")
    repository.commit("shop/product@2.0.0", branch="release/next")
    assert names(await looked(make(path="team/scrapers/", branch="release/next", history=1))) == ["shop/product@2.0.0"]
    offer = await looked(make(path="team/scrapers"))
    assert names(offer) == ["shop/product@1.0.0", "shop/product@2.0.0"]
    assert offer.channels == {"shop/product": {"stable": "1.0.0"}}
    assert names(await looked(make(path="nowhere", branch="main"))) == []
    with pytest.raises(SourceUnavailable, match="no branch missing"):
        await make(branch="missing").poll("")


async def test_channels_that_cannot_be_read_are_a_fault_and_the_last_stay(
    repository: GitRepository, make: Make
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.write("channels.toml", '["shop/product"]\nstable = "1.0.0"\nbeta = "1.0.0"\n')
    repository.commit()
    source = make()
    offer = await looked(source)
    assert offer.channels == {"shop/product": {"stable": "1.0.0", "beta": "1.0.0"}}
    repository.write("channels.toml", '["shop/product"]\nstable = 1\n')
    repository.commit()
    offer = await looked(source, offer.mark)
    assert offer.channels == {"shop/product": {"stable": "1.0.0", "beta": "1.0.0"}}
    assert [fault.id for fault in offer.faults] == ["channels.toml"]
    repository.remove("channels.toml")
    repository.commit()
    assert (await looked(source, offer.mark)).channels == {}


async def test_manifests_that_cannot_be_read_are_faults_of_their_own(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.write("shop/broken/scraper.toml", "id = ")
    repository.write("shop/nameless/scraper.toml", 'version = "1.0.0"')
    repository.write("shop/huge/scraper.toml", "#" * 300_000)
    repository.scraper("shop/product", "1.0.0", "another", folder="zzz/copy")
    repository.commit()
    offer = await looked(make())
    assert names(offer) == ["shop/product@1.0.0"]
    assert sorted(fault.id for fault in offer.faults) == ["shop/broken", "shop/huge", "shop/nameless", "shop/product"]
    assert all("scraper.toml" in fault.problem or "raise" in fault.problem for fault in offer.faults)


async def test_a_forced_push_and_a_deleted_tag_are_followed(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit("shop/product@1.0.0")
    repository.scraper("shop/product", "1.1.0")
    repository.commit("shop/product")
    source = make()
    offer = await looked(source)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    repository.scraper("shop/product", "1.2.0")
    repository.git("tag", "--delete", "shop/product@1.0.0", "shop/product")
    repository.git("commit", "--quiet", "--amend", "--all", "--message=other")
    repository.git("tag", "shop/product/v1.2.0")
    repository.push()
    assert names(await looked(source, offer.mark)) == ["shop/product@1.2.0"]


async def test_the_default_branch_may_change(
    repository: GitRepository, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    repository.scraper("shop/product", "2.0.0")
    repository.commit(branch="next")
    source = make(history=1)
    offer = await looked(source)
    assert names(offer) == ["shop/product@1.0.0"]
    repository.git("symbolic-ref", "HEAD", "refs/heads/next", folder=repository.bare)
    monkeypatch.setattr(git_module, "HEAD_LOOKS", 1)
    assert names(await looked(source, offer.mark)) == ["shop/product@2.0.0"]


async def test_a_repository_that_vanishes_and_comes_back(repository: GitRepository, make: Make, tmp_path: Path) -> None:
    source = make()
    with pytest.raises(SourceUnavailable, match="names no branch"):
        await source.poll("")
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    offer = await looked(source)
    away = repository.bare.with_name("away")
    repository.bare.rename(away)
    with pytest.raises(SourceUnavailable, match=r"git: .*does not (appear|exist)"):
        await source.poll(offer.mark)
    release = pick(offer, "shop/product@1.0.0")
    assert "scraper.py" in await content(source, release, tmp_path / "meanwhile")
    away.rename(repository.bare)
    assert await source.poll(offer.mark) is None


async def test_a_server_that_dies_in_a_pack_leaves_what_was_known(
    repository: GitRepository, make: Make, server: GitServer, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    source = make(server.url())
    offer = await looked(source)
    repository.scraper("shop/product", "1.1.0")
    repository.write("shop/product/data.bin", os.urandom(200_000))
    repository.commit()
    server.cut_packs = 50_000
    with pytest.raises(SourceUnavailable):
        await source.poll(offer.mark)
    assert "scraper.py" in await content(source, pick(offer, "shop/product@1.0.0"), tmp_path / "out")
    server.cut_packs = None
    assert names(await looked(source, offer.mark)) == ["shop/product@1.0.0", "shop/product@1.1.0"]
    assert sorted(path.suffix for path in (tmp_path / "home").iterdir()) == [".git", ".lock"]


async def test_a_server_that_stalls_is_given_up_and_nothing_is_left_running(
    repository: GitRepository, make: Make, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over when the pack stalls, however long git took to get there."""
    limits: list[asyncio.Timeout] = []

    class Patience(git_module._Patience):
        def __init__(self, seconds: float) -> None:
            super().__init__(seconds)
            limits.append(self._timeout)

    monkeypatch.setattr(git_module, "_Patience", Patience)
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    server.stall_packs = threading.Event()
    look = asyncio.create_task(make(server.url()).poll(""))
    assert await asyncio.to_thread(server.stalled.wait, PATIENCE)
    limits[0].reschedule(asyncio.get_running_loop().time())
    with pytest.raises(SourceUnavailable, match=f"no answer within {PATIENCE:g} s"):
        await look
    assert [each.words for each in descendants(os.getpid()) if "fetch" in each.words] == []


async def test_a_cancelled_look_kills_its_git(repository: GitRepository, make: Make, server: GitServer) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    server.stall_packs = threading.Event()
    source = make(server.url())
    look = asyncio.create_task(source.poll(""))
    assert await asyncio.to_thread(server.stalled.wait, PATIENCE)
    assert [each for each in descendants(os.getpid()) if "git" in each.words]
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    assert [each.words for each in descendants(os.getpid()) if "index-pack" in each.words] == []
    server.stall_packs.set()
    assert names(await looked(source)) == ["shop/product@1.0.0"]


async def test_a_git_that_is_killed_in_a_fetch_is_followed_by_one_that_is_not(
    repository: GitRepository, make: Make, server: GitServer
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    source = make(server.url())
    offer = await looked(source)
    repository.scraper("shop/product", "1.1.0")
    repository.write("shop/product/data.bin", os.urandom(200_000))
    repository.commit()
    server.stall_packs = threading.Event()
    look = asyncio.create_task(source.poll(offer.mark))
    assert await asyncio.to_thread(server.stalled.wait, PATIENCE)
    # The eldest: a child of it that has just been forked has the same words for a moment.
    fetch = next(each for each in descendants(os.getpid()) if "--depth=" in each.words)
    os.kill(fetch.pid, signal.SIGKILL)
    server.stall_packs.set()
    assert names(await look) == ["shop/product@1.0.0", "shop/product@1.1.0"]


def _truncate_packs(folder: Path) -> None:
    for pack in folder.glob("objects/pack/*"):
        pack.chmod(0o644)
        os.truncate(pack, 40)


def _flip_bytes(folder: Path) -> None:
    for pack in folder.glob("objects/pack/*.pack"):
        pack.chmod(0o644)
        data = bytearray(pack.read_bytes())
        data[12:-20] = bytes(byte ^ 0x55 for byte in data[12:-20])
        pack.write_bytes(data)


def _lose_refs(folder: Path) -> None:
    shutil.rmtree(folder / "refs")
    (folder / "packed-refs").unlink(missing_ok=True)


def _leave_locks(folder: Path) -> None:
    (folder / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    for name in ("shallow.lock", "packed-refs.lock", "HEAD.lock", "refs/heads/main.lock"):
        (folder / name).write_text("")


def _empty_config(folder: Path) -> None:
    (folder / "config").write_bytes(b"\0" * 100)
    (folder / "HEAD").write_bytes(b"")


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "damage",
    [_truncate_packs, _flip_bytes, _lose_refs, _leave_locks, _empty_config, _remove],
    ids=lambda each: each.__name__,
)
async def test_a_damaged_local_copy_is_got_anew(
    repository: GitRepository, make: Make, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    repository.scraper("shop/product", "1.0.0", "first")
    repository.commit("v1.0.0")
    offer = await looked(make())
    (copy,) = (tmp_path / "home").glob("*.git")
    damage(copy)
    source = make()
    with capture_logs():
        found = await content(source, pick(offer, "shop/product@1.0.0"), tmp_path / "same")
        assert found["scraper.py"] == "first"
        (copy,) = (tmp_path / "home").glob("*.git")
        damage(copy)
        assert names(await looked(make())) == ["shop/product@1.0.0"]
        damage(copy)
        repository.scraper("shop/product", "1.1.0", "second")
        repository.commit()
        assert names(await looked(make(), offer.mark)) == ["shop/product@1.0.0", "shop/product@1.1.0"]
    assert sorted(path.suffix for path in (tmp_path / "home").iterdir()) == [".git", ".lock"]


async def test_a_release_that_left_the_repository_is_said_so(
    repository: GitRepository, make: Make, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    offer = await looked(make())
    repository.scraper("shop/product", "1.0.1")
    repository.git("commit", "--quiet", "--amend", "--all", "--message=other")
    repository.push()
    (tmp_path / "out").mkdir()
    with pytest.raises(SourceUnavailable, match="not in the repository any more"):
        await make(home="other").fetch(offer.releases[0], tmp_path / "out")
    with pytest.raises(SourceUnavailable, match="not a release"):
        await make().fetch(Release(id="a/b", version="1.0.0", mark="HEAD", place="x"), tmp_path / "out")


async def test_processes_that_read_are_used_again_and_do_not_stay(
    repository: GitRepository, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readers() -> list[Process]:
        return living(each for each in descendants(os.getpid()) if "cat-file" in each.words)

    monkeypatch.setattr(reader, "KEEP_SECONDS", 600)
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    source = make()
    offer = await looked(source)
    first = readers()
    assert len(first) == 2
    await content(source, offer.releases[0], tmp_path / "one")
    assert [process.pid for process in readers()] == [process.pid for process in first]
    os.kill(first[0].pid, signal.SIGKILL)
    assert "scraper.py" in await content(source, offer.releases[0], tmp_path / "two")
    monkeypatch.setattr(reader, "KEEP_SECONDS", 0)
    await content(source, offer.releases[0], tmp_path / "three")
    await asyncio.to_thread(until, lambda: not readers(), "the readers end")


async def test_two_sources_may_share_a_home(repository: GitRepository, make: Make, server: GitServer) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit("v1.0.0")
    sources = [make(server.url()) for _ in range(4)]
    offers = await asyncio.gather(*(looked(source) for source in sources))
    assert [names(offer) for offer in offers] == [["shop/product@1.0.0"]] * 4
    assert server.packs == 2, "one fetched the tag and the branch; the others took what was there"


async def test_a_process_that_is_killed_in_a_fetch_leaves_no_harm(
    repository: GitRepository, make: Make, server: GitServer, tmp_path: Path
) -> None:
    """Its git lives on for a while, and keeps the lock as long as it does."""
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    stall = server.stall_packs = threading.Event()
    words = (sys.executable, "-c", LOOK, server.url(), str(tmp_path / "home"))
    with killed_after(subprocess.Popen(words, start_new_session=True)) as process:
        assert await asyncio.to_thread(server.stalled.wait, PATIENCE)
        orphans = [each for each in descendants(process.pid) if "git" in each.words]
        assert orphans
        process.kill()
        with pytest.raises(SourceUnavailable, match="no answer within 1 s"):
            await make(server.url(), timeout=1).poll("")
        stall.set()
        assert names(await looked(make(server.url()))) == ["shop/product@1.0.0"]
        await asyncio.to_thread(until, lambda: not living(orphans), "the orphans end")


async def test_a_full_disk_is_said_so_and_survived(
    repository: GitRepository, small_disk: Path, make: Make, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    source = make(home=str(small_disk / "home"))
    offer = await looked(source)
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)
    repository.scraper("shop/product", "1.1.0")
    repository.write("shop/product/data.bin", os.urandom(100_000))
    repository.commit()
    with pytest.raises(SourceUnavailable), capture_logs():
        await source.poll(offer.mark)
    (small_disk / "out").mkdir()
    with pytest.raises(SourceUnavailable, match="cannot be written: No space left"):
        await source.fetch(offer.releases[0], small_disk / "out")
    filler.unlink()
    assert names(await looked(source, offer.mark)) == ["shop/product@1.0.0", "shop/product@1.1.0"]


async def test_copies_that_nobody_used_for_long_are_removed(
    repository: GitRepository, make: Make, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    await looked(make(history=1))
    await looked(make(history=2))
    (old, _) = sorted((tmp_path / "home").glob("*.git"), key=lambda path: path.stat().st_ctime_ns)
    os.utime(old.with_suffix(".lock"), (0, 0))
    await looked(make(history=3))
    assert not old.exists()
    assert len(list((tmp_path / "home").glob("*.git"))) == 2


async def test_many_small_packs_are_made_one(
    repository: GitRepository, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "MAX_PACKS", 2)
    source, mark = make(), ""
    for number in range(5):
        repository.scraper("shop/product", f"1.{number}.0")
        repository.commit()
        offer = await looked(source, mark)
        mark = offer.mark
        assert len(offer.releases) == number + 1
    assert len(list((tmp_path / "home").glob("*.git/objects/pack/*.pack"))) <= 2


async def test_a_repository_that_is_too_large_is_refused(
    repository: GitRepository, make: Make, server: GitServer, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.write("shop/product/data.bin", os.urandom(3_000_000))
    repository.commit()
    source = make(server.url(), max_bytes=1 << 20)
    with pytest.raises(SourceUnavailable, match="larger than 1 MB"):
        await source.poll("")
    assert [path.suffix for path in (tmp_path / "home").iterdir()] == [".lock"]


async def test_more_tags_than_are_looked_at_are_dropped_and_said_so(
    repository: GitRepository, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refs, "MAX_TAGS_EACH", 2)
    for version in ("1.9.0", "1.10.0", "1.8.0"):
        repository.scraper("shop/product", version)
        repository.commit(f"shop/product@{version}")
    with capture_logs() as logs:
        offer = await looked(make(history=1))
    assert names(offer) == ["shop/product@1.10.0", "shop/product@1.8.0", "shop/product@1.9.0"]
    assert [(each["event"], each["count"]) for each in logs] == [("repository.git_tags_dropped", 1)]


async def test_a_token_is_sent_to_its_host_alone_and_never_shown(
    repository: GitRepository, make: Make, server: GitServer, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    server.login = ("x-access-token", "s3cret-token")
    assert names(await looked(make(server.url(), token="s3cret-token"))) == ["shop/product@1.0.0"]
    assert any(login is not None for login in server.logins)
    with pytest.raises(SourceUnavailable) as refused:
        await make(server.url(), token="wr0ng-token").poll("")
    assert "wr0ng" not in refused.value.message
    with pytest.raises(SourceUnavailable, match="git: "):
        await make(server.url()).poll("")
    written = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"s3cret" not in written
    with GitServer(repository.bare.parent) as stranger:
        stranger.redirect = f"http://localhost:{server.port}"
        server.logins.clear()
        with pytest.raises(SourceUnavailable):
            await make(stranger.url(), token="s3cret-token").poll("")
        assert set(server.logins) == {None}


async def test_a_login_in_the_url_is_used_and_hidden(
    repository: GitRepository, make: Make, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at while each request is under way, when whoever sent it waits for the answer."""
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    server.login = ("an na", "p@ss/word")
    source = make(server.url(login="an%20na:p%40ss%2Fword@"))
    assert source.name == server.url()
    watched, expected = list[str](), server.expected

    def watch() -> str | None:
        watched.extend(each.words for each in descendants(os.getpid()))
        return expected()

    monkeypatch.setattr(server, "expected", watch)
    assert names(await looked(source)) == ["shop/product@1.0.0"]
    seen = " ".join(watched)
    assert "ls-remote" in seen
    assert "--depth=" in seen
    assert "p@ss" not in seen
    assert "p%40ss" not in seen


async def test_ssh_is_called_with_the_key_and_known_hosts_that_were_given(
    repository: GitRepository, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    tools = tmp_path / "tools"
    tools.mkdir()
    fake = tools / "ssh"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{tools}/words\nfor last; do :; done\nexec sh -c "$last"\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    keys = {"key_file": tmp_path / "my key's", "known_hosts": tmp_path / "known 100%"}
    for url in (f"git@shop.example:{repository.bare}", f"ssh://git@shop.example:2222{repository.bare}"):
        source = make(url, home=f"home{len(url)}", **keys)
        assert names(await looked(source)) == ["shop/product@1.0.0"]
        words = (tools / "words").read_text().splitlines()
        (tools / "words").unlink()
        assert "-oBatchMode=yes" in words
        assert "-oStrictHostKeyChecking=yes" in words
        assert "-oIdentitiesOnly=yes" in words
        assert f'-oIdentityFile="{tmp_path}/my key\'s"' in words
        assert f'-oUserKnownHostsFile="{tmp_path}/known 100%%"' in words
        assert "git@shop.example" in words
    assert "2222" in words
    assert source.name == f"ssh://shop.example:2222{repository.bare}"


def test_it_works_on_the_loop_that_servers_use(repository: GitRepository, make: Make, tmp_path: Path) -> None:
    async def road() -> None:
        source = make()
        offer = await looked(source)
        assert await source.poll(offer.mark) is None
        assert "scraper.py" in await content(source, offer.releases[0], tmp_path / "out")
        repository.bare.rename(repository.bare.with_name("away"))
        with pytest.raises(SourceUnavailable):
            await source.poll(offer.mark)
        await source.stop()

    repository.scraper("shop/product", "1.0.0")
    repository.commit("v1.0.0")
    uvloop.run(road())


async def test_a_path_is_a_url_too(repository: GitRepository, make: Make) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    source = make(str(repository.bare), name="ours")
    assert names(await looked(source)) == ["shop/product@1.0.0"]
    assert source.name == "ours"


async def test_without_git_the_remedy_is_named(
    repository: GitRepository, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnavailable, match="install git"):
        await make().poll("")


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c id",
        "ext::id",
        "fd::17",
        "--upload-pack=id",
        "-oProxyCommand=id:x",
        "git@-oProxyCommand=id:x",
        "ssh://-oProxyCommand=id/x",
        "ssh://git:secret@shop.example/x",
        "ftp://shop.example/x",
        "git://shop.example/x",
        "http://",
        "https://shop.example/a\nb",
        "https://[::1/x",
        "host:-x",
        "x" * 3000,
    ],
)
def test_urls_that_run_programs_or_lead_nowhere_are_refused(make: Make, url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"repository\.source\.url") as refused:
        GitSource(SourceSettings.model_validate({"type": "git", "url": url}), tmp_path, 1)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "x:y", "refs/*", ".x", "a.lock", "a//b", "a@{1}", "a\x07"])
def test_odd_branches_are_refused(make: Make, branch: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"repository\.source\.branch"):
        make(branch=branch)


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../../b", "a\\b", "a\0b"])
def test_odd_paths_are_refused(make: Make, path: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"repository\.source\.path"):
        make(path=path)


def test_keys_whose_path_ssh_cannot_take_are_refused(make: Make) -> None:
    with pytest.raises(SettingsInvalid, match="rename"):
        make("git@shop.example:x", key_file='/k"ey')
