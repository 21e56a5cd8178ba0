"""Scrapers from a real folder: found, copied, watched, and never lost by another's fault."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scrapeyard.errors import BadRequest, ScraperInvalid, ScraperNotFound
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.archive import files
from scrapeyard.repository.archive.copies import DAY, Cache
from scrapeyard.repository.archive.files import find_scrapers, scraper_files
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.loading import LoadTerms, load_folder
from scrapeyard.repository.sources.folder import FolderSource
from tests.leaks import PATIENCE

CEILING = Limits(wall_seconds=60, memory_mb=256)
PAGE = Scraper(ref=ScraperRef(id="builtin/page", version="1.0.0"), folder=None)
SCRIPT = "async def run(ctx, url: str):\n    return url\n"


def put(
    folder: Path, scraper_id: str = "shop/product", version: str = "1.0.0", script: str = SCRIPT, more: str = ""
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scraper.py").write_text(script)
    (folder / "scraper.toml").write_text(f'id = "{scraper_id}"\nversion = "{version}"\n{more}')
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "scrapers"
    folder.mkdir()
    return folder


@pytest.fixture
async def make(root: Path, tmp_path: Path) -> AsyncIterator[Callable[..., SourcedCatalogue]]:
    made: list[SourcedCatalogue] = []

    def build(
        refresh_seconds: float = 3600.0, *, scrapers: Path | None = root, direct_network: tuple[str, ...] = ()
    ) -> SourcedCatalogue:
        made.append(
            SourcedCatalogue(
                [FolderSource(scrapers, avoid=tmp_path / "cache")] if scrapers else [],
                tmp_path / "cache",
                {"builtin/page": PAGE},
                LoadTerms(ceiling=CEILING, direct_network=direct_network),
                Upkeep(refresh_seconds=refresh_seconds),
            )
        )
        return made[-1]

    yield build
    for catalogue in made:
        await catalogue.stop()
        await catalogue.stop()


Make = Callable[..., SourcedCatalogue]


async def test_a_scraper_is_found_copied_and_cut_to_the_ceiling(root: Path, make: Make, tmp_path: Path) -> None:
    put(root / "shop" / "product", more="[limits]\nwall_seconds = 9999\nmemory_mb = 64\n")
    catalogue = make()
    await catalogue.start()
    scraper = catalogue.resolve("shop/product")
    assert scraper.folder == tmp_path / "cache" / scraper.ref.digest
    assert (scraper.folder / "scraper.py").read_text() == SCRIPT
    assert (scraper.limits.wall_seconds, scraper.limits.memory_mb) == (60, 64)
    assert scraper.input_schema["required"] == ["url"]
    assert catalogue.resolve("shop/product@1.0.0") is scraper
    assert catalogue.resolve("builtin/page@1.0.0") is PAGE
    assert [listing.id for listing in catalogue.listings()] == ["builtin/page", "shop/product"]


async def test_without_a_folder_the_built_in_ones_serve(make: Make) -> None:
    catalogue = make(scrapers=None)
    await catalogue.start()
    await catalogue.refresh()
    assert catalogue.resolve("builtin/page") is PAGE


async def test_the_newest_release_is_the_default(root: Path, make: Make) -> None:
    for version in ("1.9.0", "1.10.0", "2.0.0-rc.1"):
        put(root / version, version=version)
    put(root / "pre", scraper_id="shop/pre", version="0.1.0-a.1")
    catalogue = make()
    await catalogue.start()
    assert catalogue.resolve("shop/product").ref.version == "1.10.0"
    assert catalogue.resolve("shop/product@1.9.0").ref.version == "1.9.0"
    assert catalogue.resolve("shop/product@2.0.0-rc.1").ref.version == "2.0.0-rc.1"
    assert catalogue.resolve("shop/pre").ref.version == "0.1.0-a.1"


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ("shop/nothing", ScraperNotFound),
        ("shop/product@9.9.9", ScraperNotFound),
        ("builtin/page@9.9.9", ScraperNotFound),
        ("shop", BadRequest),
        ("", BadRequest),
        ("shop/product@", BadRequest),
        ("shop/product@latest", ScraperNotFound),
        ("../../etc", BadRequest),
        ("shop/product\n", BadRequest),
        ("x" * 100_000, BadRequest),
    ],
)
async def test_a_name_that_means_nothing(root: Path, make: Make, wanted: str, error: type[Exception]) -> None:
    put(root / "a")
    catalogue = make()
    await catalogue.start()
    with pytest.raises(error) as caught:
        catalogue.resolve(wanted)
    assert len(str(caught.value)) < 400


async def test_an_invalid_scraper_is_listed_and_hides_no_other(root: Path, make: Make) -> None:
    put(root / "shop" / "good", scraper_id="shop/good")
    put(root / "shop" / "bad", scraper_id="shop/bad", script="def run(: ...")
    (put(root / "shop" / "worse") / "scraper.toml").write_bytes(b"\xff\x00")
    catalogue = make()
    await catalogue.start()
    assert catalogue.resolve("shop/good")
    problems = {listing.id: listing.problem for listing in catalogue.listings() if listing.scraper is None}
    assert "shop/bad/scraper.py:1" in problems["shop/bad"]
    assert "shop/worse/scraper.toml: not UTF-8" in problems["shop/worse"]
    with pytest.raises(ScraperInvalid, match=r"shop/bad/scraper\.py:1"):
        catalogue.resolve("shop/bad")


async def test_an_edit_that_breaks_is_shown_and_an_edit_that_mends_too(root: Path, make: Make) -> None:
    folder = put(root / "p")
    catalogue = make()
    await catalogue.start()
    first = catalogue.resolve("shop/product")
    (folder / "scraper.toml").write_text("id = ")
    await catalogue.refresh()
    with pytest.raises(ScraperInvalid, match="not TOML"):
        catalogue.resolve("shop/product")
    put(folder, script=SCRIPT + "# mended\n")
    await catalogue.refresh()
    mended = catalogue.resolve("shop/product")
    assert mended.ref.digest != first.ref.digest
    assert first.folder is not None
    assert (first.folder / "scraper.py").read_text() == SCRIPT, "a copy in use never changes"


async def test_a_broken_newest_version_does_not_fall_back_silently(root: Path, make: Make) -> None:
    put(root / "1", version="1.0.0")
    put(root / "2", version="2.0.0", script="nothing = 1\n")
    catalogue = make()
    await catalogue.start()
    with pytest.raises(ScraperInvalid, match="no function run"):
        catalogue.resolve("shop/product")
    assert catalogue.resolve("shop/product@1.0.0")


async def test_one_version_with_two_contents_names_both_folders(root: Path, make: Make) -> None:
    put(root / "one")
    put(root / "two")
    catalogue = make()
    await catalogue.start()
    assert catalogue.resolve("shop/product"), "the same content twice is one scraper"
    put(root / "two", script=SCRIPT + "\n")
    await catalogue.refresh()
    with pytest.raises(ScraperInvalid, match="one, two"):
        catalogue.resolve("shop/product")


async def test_a_broken_twin_does_not_hide_the_good_one(root: Path, make: Make) -> None:
    put(root / "a-broken", script="x = 1\n")
    put(root / "good")
    catalogue = make()
    await catalogue.start()
    assert catalogue.resolve("shop/product").ref.version == "1.0.0"
    assert sum(listing.scraper is None for listing in catalogue.listings()) == 1


async def test_built_in_names_are_reserved(root: Path, make: Make) -> None:
    put(root / "a", scraper_id="builtin/page", version="9.0.0")
    put(root / "b", scraper_id="builtin/other")
    catalogue = make()
    await catalogue.start()
    assert catalogue.resolve("builtin/page@1.0.0") is PAGE
    with pytest.raises(ScraperInvalid, match="built-in"):
        catalogue.resolve("builtin/other")


async def test_a_stranger_cannot_take_a_built_in_name_by_a_higher_version(root: Path, make: Make) -> None:
    put(root / "a", scraper_id="builtin/page", version="9.0.0")
    catalogue = make()
    await catalogue.start()
    assert catalogue.resolve("builtin/page") is PAGE


async def test_direct_network_needs_a_grant(root: Path, make: Make) -> None:
    put(root / "a", more='network = "direct"\n')
    refused, granted = make(direct_network=("shop/other",)), make(direct_network=("shop/product",))
    await refused.start()
    await granted.start()
    with pytest.raises(ScraperInvalid, match="not granted"):
        refused.resolve("shop/product")
    assert granted.resolve("shop/product").network == "direct"


async def test_a_change_is_seen_without_being_told(root: Path, make: Make) -> None:
    catalogue = make(refresh_seconds=0.02)
    await catalogue.start()
    put(root / "a")
    async with asyncio.timeout(PATIENCE):
        while len(catalogue.listings()) < 2 or catalogue.listings()[1].scraper is None:
            await asyncio.sleep(0.01)
    (root / "a" / "scraper.toml").unlink()
    async with asyncio.timeout(PATIENCE):
        while len(catalogue.listings()) > 1:
            await asyncio.sleep(0.01)


async def test_a_second_edit_in_the_same_instant_is_seen(root: Path, make: Make) -> None:
    folder = put(root / "a", script="async def run(ctx, one): ...\n")
    catalogue = make()
    await catalogue.start()
    before = (folder / "scraper.py").stat()
    (folder / "scraper.py").write_text("async def run(ctx, two): ...\n")
    os.utime(folder / "scraper.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    await catalogue.refresh()
    assert catalogue.resolve("shop/product").input_schema["required"] == ["two"]


async def test_an_unchanged_folder_is_not_read_again(root: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(root / "a")
    monkeypatch.setattr("scrapeyard.repository.sources.folder.SETTLING_NS", -(10**18))
    catalogue = make()
    await catalogue.start()
    reads: list[str] = []
    real = files.read_chunks
    monkeypatch.setattr(
        "scrapeyard.repository.archive.copies.read_chunks", lambda file: reads.append(file.name) or real(file)
    )
    await catalogue.refresh()
    assert reads == []
    (folder / "scraper.py").write_text(SCRIPT + "\n")
    await catalogue.refresh()
    assert "scraper.py" in reads


async def test_a_vanished_folder_keeps_what_was_known(root: Path, make: Make) -> None:
    put(root / "a")
    catalogue = make()
    await catalogue.start()
    root.rename(root.with_name("elsewhere"))
    with capture_logs() as logs:
        await catalogue.refresh()
        await catalogue.refresh()
        assert catalogue.resolve("shop/product")
        root.with_name("elsewhere").rename(root)
        await catalogue.refresh()
    assert [entry["event"] for entry in logs] == ["repository.stale", "repository.fresh"]


async def test_a_folder_that_was_never_there_does_not_stop_the_start(root: Path, make: Make) -> None:
    catalogue = make(scrapers=root / "absent")
    await catalogue.start()
    assert catalogue.resolve("builtin/page") is PAGE
    put(root / "absent" / "a")
    await catalogue.refresh()
    assert catalogue.resolve("shop/product")


async def test_looking_does_not_block_the_loop(root: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root / "a")
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    real = find_scrapers

    def held(folder: Path, avoid: Path | None) -> object:
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(PATIENCE)
        return real(folder, avoid)

    monkeypatch.setattr("scrapeyard.repository.sources.folder.find_scrapers", held)
    catalogue = make()
    looking = asyncio.create_task(catalogue.refresh())
    await asyncio.sleep(0)
    gate.set()
    await looking
    assert catalogue.resolve("shop/product")


def test_depth_hidden_folders_and_links(root: Path, tmp_path: Path) -> None:
    put(root / "a" / "b" / "c" / "d")
    put(root / "a" / "b" / "c" / "d" / "too-deep")
    put(root / ".hidden" / "x")
    put(root / "__pycache__")
    put(tmp_path / "outside")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    (root / "again").symlink_to(root / "a")
    found = find_scrapers(root)
    assert [folder.resolve() for folder in found.folders] == [root / "a" / "b" / "c" / "d"]


def test_the_number_of_scrapers_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.repository.archive.files.MAX_SCRAPERS", 3)
    for number in range(5):
        put(root / str(number))
    found = find_scrapers(root)
    assert (len(found.folders), found.cut) == (3, True)


def test_a_nested_scraper_is_its_own(root: Path, tmp_path: Path) -> None:
    put(root / "outer")
    put(root / "outer" / "v2", version="2.0.0")
    (root / "outer" / "lib").mkdir()
    (root / "outer" / "lib" / "part.py").write_text("x = 1\n")
    assert len(find_scrapers(root).folders) == 2
    names = [file.name for file in scraper_files(root / "outer", root, "outer")]
    assert names == ["lib/part.py", "scraper.py", "scraper.toml"]


def test_only_a_scrapers_own_files_are_copied(root: Path, tmp_path: Path) -> None:
    folder = put(root / "a")
    for name in ("__pycache__/x.pyc", ".env", ".git/config", "sub/data.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    scraper = load_folder(folder, tmp_path / "cache", CEILING)
    assert scraper.folder is not None
    copied = sorted(str(path.relative_to(scraper.folder)) for path in scraper.folder.rglob("*") if path.is_file())
    assert copied == ["scraper.py", "scraper.toml", "sub/data.txt"]


def test_a_copy_is_readable_by_all_and_writable_by_none(root: Path, tmp_path: Path) -> None:
    folder = put(root / "a")
    (folder / "sub").mkdir(mode=0o700)
    (folder / "sub" / "x.txt").write_text("x")
    (folder / "scraper.py").chmod(0o600)
    before = os.umask(0o077)
    try:
        scraper = load_folder(folder, tmp_path / "cache", CEILING)
    finally:
        os.umask(before)
    assert scraper.folder is not None
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [scraper.folder, *scraper.folder.rglob("*")]}
    assert modes == {
        scraper.folder.name: 0o755,
        "sub": 0o755,
        "x.txt": 0o444,
        "scraper.py": 0o444,
        "scraper.toml": 0o444,
    }
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o755


@pytest.mark.parametrize("kind", ["link", "pipe", "folder-link", "dangling"])
def test_what_is_not_a_regular_file_is_refused(root: Path, tmp_path: Path, kind: str) -> None:
    folder = put(root / "a")
    odd = folder / "odd"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to({"link": "/etc/passwd", "folder-link": folder, "dangling": folder / "absent"}[kind])
    with pytest.raises(ScraperInvalid, match=r"odd|cannot be read"):
        load_folder(folder, tmp_path / "cache", CEILING)
    assert not (tmp_path / "cache").exists()


def test_a_link_inside_the_folder_is_copied_as_a_file(root: Path, tmp_path: Path) -> None:
    folder = put(root / "a")
    (folder / "alias.py").symlink_to("scraper.py")
    scraper = load_folder(folder, tmp_path / "cache", CEILING)
    assert scraper.folder is not None
    assert not (scraper.folder / "alias.py").is_symlink()
    assert (scraper.folder / "alias.py").read_text() == SCRIPT


def test_size_and_number_of_files_are_bounded(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(root / "a")
    with (folder / "big.bin").open("wb") as stream:
        stream.truncate(files.MAX_BYTES)
    with pytest.raises(ScraperInvalid, match="larger than 50 MB"):
        load_folder(folder, tmp_path / "cache", CEILING)
    monkeypatch.setattr(files, "MAX_FILES", 2)
    (folder / "big.bin").write_text("")
    with pytest.raises(ScraperInvalid, match="more than 2 files"):
        load_folder(folder, tmp_path / "cache", CEILING)


def test_the_digest_covers_paths_and_contents(root: Path, tmp_path: Path) -> None:
    def digest(folder: Path) -> str:
        return load_folder(folder, tmp_path / "cache", CEILING).ref.digest

    one, two = put(root / "one"), put(root / "two")
    assert digest(one) == digest(two)
    (one / "x.txt").write_text("1")
    (two / "y.txt").write_text("1")
    assert digest(one) != digest(two)
    (two / "y.txt").rename(two / "x.txt")
    assert digest(one) == digest(two)
    (two / "x.txt").write_text("2")
    assert digest(one) != digest(two)


def test_a_damaged_copy_is_made_again(root: Path, tmp_path: Path) -> None:
    folder = put(root / "a")
    first = load_folder(folder, tmp_path / "cache", CEILING)
    assert first.folder is not None
    (first.folder / "scraper.py").unlink()
    again = load_folder(folder, tmp_path / "cache", CEILING)
    assert again.folder == first.folder
    assert (first.folder / "scraper.py").read_text() == SCRIPT


@pytest.mark.parametrize(
    "edit",
    [
        lambda number: SCRIPT + f"# {number}\n",
        lambda number: SCRIPT[:-1] + str(number % 10),
        lambda number: SCRIPT[: number % 5],
    ],
    ids=["grows", "same size", "shrinks"],
)
def test_a_file_that_changes_while_it_is_copied_is_never_kept(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[int], str]
) -> None:
    folder = put(root / "a")
    real = files.read_chunks
    passes = iter(range(100))

    def changing(file: files.SourceFile) -> object:
        (folder / "scraper.py").write_text(edit(next(passes)))
        return real(file)

    monkeypatch.setattr("scrapeyard.repository.archive.copies.read_chunks", changing)
    with pytest.raises(files.ChangedMeanwhile):
        Cache(tmp_path / "cache").put(scraper_files(folder, root, "a"))
    assert list((tmp_path / "cache").glob("*")) == []


async def test_old_copies_that_nothing_refers_to_are_removed_at_start(root: Path, make: Make, tmp_path: Path) -> None:
    folder = put(root / "a")
    cache = tmp_path / "cache"
    old = load_folder(folder, cache, CEILING).folder
    put(folder, script=SCRIPT + "# 2\n")
    recent = load_folder(folder, cache, CEILING).folder
    put(folder, script=SCRIPT + "# 3\n")
    used = load_folder(folder, cache, CEILING).folder
    assert old is not None
    assert recent is not None
    assert used is not None
    (cache / ".new-left").mkdir()
    (cache / "somebody-elses").mkdir()
    for path in (old, used, cache / ".new-left", cache / "somebody-elses"):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - DAY - 60))
    await make().start()
    assert {path.name for path in cache.iterdir()} == {recent.name, used.name, "somebody-elses"}


async def test_a_cache_inside_the_scrapers_folder_is_not_a_source(root: Path) -> None:
    cache = root / "data" / "cache"
    catalogue = SourcedCatalogue([FolderSource(root, avoid=cache)], cache, {}, LoadTerms(ceiling=CEILING))
    put(root / "p")
    await catalogue.refresh()
    put(root / "p", script=SCRIPT + "# 2\n")
    await catalogue.refresh()
    assert [listing.problem for listing in catalogue.listings()] == [""]


def test_a_data_folder_inside_a_scraper_is_no_part_of_it(root: Path) -> None:
    folder = put(root / "p")
    (folder / "data").mkdir()
    (folder / "data" / "runs.db").write_text("1")
    first = load_folder(folder, folder / "data" / "cache", CEILING)
    (folder / "data" / "runs.db").write_text("2")
    assert load_folder(folder, folder / "data" / "cache", CEILING).ref == first.ref


def test_a_folder_without_a_manifest_says_so(tmp_path: Path) -> None:
    with pytest.raises(ScraperInvalid, match=r"no scraper\.toml"):
        load_folder(tmp_path, tmp_path / "cache", CEILING)


def test_a_missing_script_names_the_entry(root: Path, tmp_path: Path) -> None:
    folder = put(root / "a", more='entry = "main.py:run"\n')
    with pytest.raises(ScraperInvalid, match=r"main\.py: no such file"):
        load_folder(folder, tmp_path / "cache", CEILING)


@pytest.mark.parametrize("name", ["product", "category", "prices"])
def test_the_examples_load(name: str, tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "examples" / "scrapers" / "shop" / name
    scraper = load_folder(folder, tmp_path, Limits())
    assert scraper.ref.id == f"shop/{name}"
    assert scraper.description
