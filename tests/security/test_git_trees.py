"""Git repositories that mean harm: names, links, submodules, bombs. Refused with a reason; nothing lands elsewhere."""

import asyncio
import contextlib
import os
import signal
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.repository.sources.git.access import read_access
from scrapeyard.repository.sources.git.command import Bounds, Git
from scrapeyard.repository.sources.git.objects import GitObjects, ObjectsBroken, ObjectTooLarge
from scrapeyard.repository.sources.git.source import GitSource
from scrapeyard.repository.sources.git.tree import Search, Trees, check_sizes, list_tree
from scrapeyard.repository.sources.port import Offer
from scrapeyard.settings import SourceSettings
from tests.contract.sandboxes import eventually
from tests.leaks import PATIENCE
from tests.services.git_repository import GitRepository

pytestmark = pytest.mark.security
MANIFEST = b'id = "shop/product"\nversion = "1.0.0"\n'


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "remote")


@pytest.fixture
async def source(repository: GitRepository, tmp_path: Path) -> AsyncIterator[GitSource]:
    settings = SourceSettings.model_validate({"type": "git", "url": repository.url})
    source = GitSource(settings, tmp_path / "home", PATIENCE)
    yield source
    await source.stop()


@pytest.fixture
def objects(repository: GitRepository, tmp_path: Path) -> GitObjects:
    """Reads the author's own repository, where crooked objects need not pass git's checks."""
    settings = SourceSettings.model_validate({"type": "git", "url": repository.url})
    return GitObjects(Git(read_access(settings), tmp_path), repository.folder / ".git")


def hang(repository: GitRepository, tree: str) -> str:
    """A commit that has this tree as shop/product; returns nothing but makes it the branch."""
    site = repository.tree([("40000", tree, "product")])
    return repository.commit_tree(repository.tree([("40000", site, "shop")]))


async def offered(source: GitSource) -> Offer:
    offer = await source.poll("")
    assert offer is not None
    return offer


async def fetched(source: GitSource, folder: Path) -> dict[str, bytes]:
    (release,) = (await offered(source)).releases
    folder.mkdir()
    await source.fetch(release, folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd",
        "../../secret.txt",
        "../other/scraper.py",
        "missing.py",
        "lib",
        ".env",
        "a",
        "b",
        "./",
        "lib/../../x",
    ],
)
async def test_links_that_lead_out_to_nowhere_or_round_and_round_are_refused(
    repository: GitRepository, source: GitSource, tmp_path: Path, target: str
) -> None:
    repository.scraper("shop/product", "1.0.0")
    repository.write("shop/product/lib/x.py", "x")
    repository.write("shop/product/.env", "secret")
    repository.write("shop/other/scraper.py", "other")
    repository.write("secret.txt", "secret")
    (repository.folder / "shop/product/a").symlink_to("b")
    (repository.folder / "shop/product/b").symlink_to(target)
    repository.commit()
    with pytest.raises(ScraperInvalid, match="a link that leads to no file of this scraper"):
        await fetched(source, tmp_path / "out")
    assert not any(path.is_file() for path in (tmp_path / "out").rglob("*"))


async def test_a_link_inside_becomes_the_file_it_leads_to(
    repository: GitRepository, source: GitSource, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0", "script")
    repository.write("shop/product/lib/x.py", "x")
    (repository.folder / "shop/product/lib/script.py").symlink_to("../scraper.py")
    (repository.folder / "shop/product/again.py").symlink_to("lib/../lib/script.py")
    repository.commit()
    found = await fetched(source, tmp_path / "out")
    assert found["lib/script.py"] == found["again.py"] == b"script"
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))


async def test_a_manifest_may_be_a_link_but_only_inside(
    repository: GitRepository, source: GitSource, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    (repository.folder / "shop/product/scraper.toml").rename(repository.folder / "shop/product/real.toml")
    (repository.folder / "shop/product/scraper.toml").symlink_to("real.toml")
    repository.write("shop/evil/scraper.py", "")
    (repository.folder / "shop/evil/scraper.toml").symlink_to("../product/real.toml")
    repository.commit()
    offer = await offered(source)
    assert [release.id for release in offer.releases] == ["shop/product"]
    assert [fault.id for fault in offer.faults] == ["shop/evil"]


async def test_a_submodule_is_refused(repository: GitRepository, source: GitSource, tmp_path: Path) -> None:
    manifest = repository.blob(MANIFEST)
    hang(repository, repository.tree([("100644", manifest, "scraper.toml"), ("160000", "1" * 40, "vendored")]))
    with pytest.raises(ScraperInvalid, match="vendored: a submodule"):
        await fetched(source, tmp_path / "out")


CROOKED = {
    "up": [("100644", "..")],
    "git folder": [("100644", ".git")],
    "git folder in capitals": [("100644", ".GIT")],
    "git folder for HFS": [("100644", ".g\u200cit")],
    "git folder for NTFS": [("100644", "git~1")],
    "slash": [("100644", "a/../../b")],
    "backslash": [("100644", "a\\..\\b")],
    "line end": [("100644", "a\nb")],
    "escape": [("100644", "a\x1b[2J")],
    "not UTF-8": [("100644", "\udcff")],
    "invisible first": [("100644", "\u200c.git")],
    "too long": [("100644", "x" * 300)],
    "twice": [("100644", "x.py"), ("100644", "x.py")],
    "nameless": [("100644", "")],
}


@pytest.mark.parametrize("entries", CROOKED.values(), ids=CROOKED.keys())
def test_crooked_names_are_refused_or_passed_over(
    repository: GitRepository, objects: GitObjects, entries: list[tuple[str, str]]
) -> None:
    blob = repository.blob(b"evil")
    rows = [("100644", repository.blob(MANIFEST), "scraper.toml"), *((mode, blob, name) for mode, name in entries)]
    tree = repository.tree(rows)
    with objects:
        if all(name.startswith(".") for _, name in entries):
            assert [file.name for file in list_tree(objects, Trees(), tree)] == ["scraper.toml"]
        else:
            with pytest.raises(ScraperInvalid):
                list_tree(objects, Trees(), tree)


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", ".g\u200cit", "git~1"])
async def test_git_itself_refuses_trees_with_such_names(
    repository: GitRepository, source: GitSource, name: str
) -> None:
    rows = [("100644", repository.blob(MANIFEST), "scraper.toml"), ("100644", repository.blob(b"x"), name)]
    hang(repository, repository.tree(sorted(rows, key=lambda row: row[2])))
    with pytest.raises(SourceUnavailable, match="git: "):
        await source.poll("")


def test_bytes_that_are_no_tree_are_refused(repository: GitRepository, objects: GitObjects) -> None:
    rows = (b"100644 x", b"100644\0" + b"1" * 20, b"9 x\0" + b"1" * 20, b"100644 x\0" + b"1" * 19, b"\0", b"7" * 99)
    with objects:
        for raw in rows:
            tree = repository.git("hash-object", "--literally", "-t", "tree", "-w", "--stdin", text=raw)
            with pytest.raises(ScraperInvalid, match="not as git writes it"):
                Trees().read(objects, tree)
            search = Search(objects, Trees())
            assert list(search.spots(tree)) == []
            assert len(search.unreadable) == 1


def test_an_object_that_is_not_what_its_name_says_is_noticed(repository: GitRepository, objects: GitObjects) -> None:
    blob, other = repository.blob(b"good"), repository.blob(b"evil")
    path = repository.folder / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 4\0evil"))
    with objects:
        assert objects.read(other, "blob", 10) == b"evil"
        with pytest.raises(ObjectTooLarge):
            objects.read(other, "blob", 3)
        with pytest.raises(ObjectsBroken):
            objects.read(blob, "blob", 10)
    with pytest.raises(ObjectsBroken):
        objects.read(other, "blob", 10)


async def test_a_hundred_thousand_files_are_refused_before_one_is_read(
    repository: GitRepository, source: GitSource, tmp_path: Path
) -> None:
    blob = repository.blob(b"x")
    rows = [("100644", blob, f"f{number:06}") for number in range(100_000)]
    hang(repository, repository.tree([*rows, ("100644", repository.blob(MANIFEST), "scraper.toml")]))
    with pytest.raises(ScraperInvalid, match="more than 2000 files"):
        await fetched(source, tmp_path / "out")


async def test_a_folder_with_too_many_names_is_a_fault_and_others_are_offered(
    repository: GitRepository, source: GitSource
) -> None:
    blob = repository.blob(b"x")
    many = repository.tree([("100644", blob, f"{number:0100}") for number in range(70_000)])
    good = repository.tree([("100644", repository.blob(MANIFEST), "scraper.toml")])
    repository.commit_tree(repository.tree([("40000", good, "good"), ("40000", many, "many")]))
    offer = await offered(source)
    assert [release.id for release in offer.releases] == ["shop/product"]
    assert [fault.id for fault in offer.faults] == ["many"]
    repository.commit_tree(many)
    offer = await offered(source)
    assert offer.releases == ()
    assert "over 8 MB" in offer.faults[0].problem


async def test_folders_without_end_are_refused(repository: GitRepository, source: GitSource, tmp_path: Path) -> None:
    tree = repository.tree([("100644", repository.blob(b"x"), "x")])
    for _ in range(200):
        tree = repository.tree([("40000", tree, "d")])
    hang(repository, repository.tree([("40000", tree, "d"), ("100644", repository.blob(MANIFEST), "scraper.toml")]))
    with pytest.raises(ScraperInvalid, match="nested deeper than 16"):
        await fetched(source, tmp_path / "out")


async def test_a_tree_that_multiplies_itself_takes_no_time(
    repository: GitRepository, source: GitSource, tmp_path: Path
) -> None:
    """Ten folders in ten folders, ten deep: 31 objects, ten thousand million files."""
    tree = repository.tree([("100644", repository.blob(b"x"), f"f{number}") for number in range(10)])
    for _ in range(9):
        tree = repository.tree([("40000", tree, f"d{number}") for number in range(10)])
    repository.commit_tree(repository.tree([("40000", tree, "bomb")]))
    began = time.process_time()
    assert (await offered(source)).releases == ()
    hang(repository, repository.tree([("40000", tree, "bomb"), ("100644", repository.blob(MANIFEST), "scraper.toml")]))
    with pytest.raises(ScraperInvalid, match="more than 2000 f"):
        await fetched(source, tmp_path / "out")
    assert time.process_time() - began < 30


async def test_a_file_that_unpacks_to_more_than_is_allowed_is_refused(
    repository: GitRepository, source: GitSource, tmp_path: Path
) -> None:
    repository.scraper("shop/product", "1.0.0")
    with (repository.folder / "shop/product/zeros.bin").open("wb") as stream:
        stream.truncate((50 << 20) + 1)
    repository.commit()
    with pytest.raises(ScraperInvalid, match="larger than 50 MB"):
        await fetched(source, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_sizes_of_objects_that_are_missing_or_folders_are_faults(
    repository: GitRepository, objects: GitObjects
) -> None:
    folder = repository.tree([])
    with objects:
        for lost in ("2" * 40, folder):
            tree = repository.tree([("100644", lost, "x")])
            with pytest.raises(ObjectsBroken):
                check_sizes(objects, list_tree(objects, Trees(), tree))


async def test_hooks_filters_and_attributes_of_a_repository_do_nothing(
    repository: GitRepository, source: GitSource, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    repository.scraper("shop/product", "1.0.0", "text\n")
    repository.write("shop/product/.gitattributes", "* filter=evil text eol=crlf ident export-ignore\n")
    repository.write(".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = file://{trap}\n')
    repository.commit()
    hook = repository.bare / "hooks" / "post-upload-pack"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    found = await fetched(source, tmp_path / "out")
    assert found["scraper.py"] == b"text\n"
    assert not trap.exists()


async def test_configuration_of_the_user_and_of_the_environment_is_not_taken(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    home = tmp_path / "user"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[url "file://{trap}"]\n\tinsteadOf = file://\n[core]\n\tsshCommand = touch {trap}\n'
    )
    monkeypatch.setenv("HOME", str(home))
    for name in ("GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS"):
        monkeypatch.setenv(name, f"touch {trap}")
    monkeypatch.setenv("GIT_DIR", str(trap))
    repository.scraper("shop/product", "1.0.0")
    repository.commit()
    settings = SourceSettings.model_validate({"type": "git", "url": repository.url})
    source = GitSource(settings, tmp_path / "home", PATIENCE)
    assert len((await offered(source)).releases) == 1
    await source.stop()
    assert not trap.exists()


async def test_words_of_a_server_are_bounded_and_harmless(tmp_path: Path) -> None:
    noise = "head -c 5000000 /dev/zero | tr '\\0' 'x' >&2\nprintf '\\033[2Jhttp://u:pass@h/x\\n' >&2\nexit 1\n"
    with pytest.raises(SourceUnavailable) as failed:
        await pretended(tmp_path, noise).run(("version",), tmp_path)
    assert len(failed.value.message) < 700
    assert failed.value.message.isprintable()
    assert "pass" not in failed.value.message


async def test_words_without_end_are_broken_off_though_another_process_holds_the_pipes(tmp_path: Path) -> None:
    git = pretended(tmp_path, "setsid sleep 300 &\necho $! > stray\nexec cat /dev/zero\n")
    try:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(SourceUnavailable, match="more than 1024 KB"):
                await git.run(("version",), tmp_path)
    finally:
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
            os.kill(int((tmp_path / "stray").read_text()), signal.SIGKILL)


async def test_a_command_that_is_cancelled_while_nobody_reads_its_words_ends(tmp_path: Path) -> None:
    git = pretended(tmp_path, "touch began\nexec cat /dev/zero\n")
    task = asyncio.create_task(git.run(("version",), tmp_path, bounds=Bounds(output=1 << 40)))
    await eventually((tmp_path / "began").exists, lambda: "it never began")
    task.cancel()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await task


def pretended(folder: Path, script: str) -> Git:
    """A program that is taken for git."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "git").write_text(f"#!/bin/sh\n{script}")
    (tools / "git").chmod(0o755)
    settings = SourceSettings.model_validate({"type": "git", "url": "https://u:pass@h/x"})
    return Git(read_access(settings), folder, {"PATH": f"{tools}:{os.environ['PATH']}"})
