"""Packages of a scraper in the author's commands: installed once, kept in the user's cache, shared by commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Stand
from tests.leaks import PATIENCE
from tests.services.package_index import PackageIndex, serve_packages
from tests.services.wheels import write_wheel

SCRIPT = "import tiny\ndef run(ctx): return tiny.VERSION\n"


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


@pytest.fixture
def index(stand: Stand) -> Iterator[PackageIndex]:
    write_wheel(stand.folder / "wheels", "tiny", "1.0", {"tiny.py": "VERSION = 1\n"})
    with serve_packages(stand.folder / "wheels") as index:
        yield index


@pytest.fixture
def folder(stand: Stand) -> Path:
    folder = stand.write("lab/tiny", SCRIPT)
    manifest = folder / "scraper.toml"
    manifest.write_text(manifest.read_text().replace("[limits]", 'requirements = ["tiny"]\n[limits]'))
    return folder


def test_the_second_command_installs_nothing(stand: Stand, folder: Path, index: PackageIndex) -> None:
    first = stand.cli("run", str(folder), SCRAPEYARD_ENVIRONMENTS__INDEX_URL=index.url)
    assert (first.status, first.json) == (0, 1), first.err
    index.status = 503
    again = stand.cli("run", str(folder), SCRAPEYARD_ENVIRONMENTS__INDEX_URL=index.url)
    assert (again.status, again.json) == (0, 1), again.err
    checked = stand.cli("validate", str(folder), SCRAPEYARD_ENVIRONMENTS__INDEX_URL=index.url)
    assert checked.status == 0, checked.out + checked.err
    assert (stand.cache / "scrapeyard" / "environments").is_dir()


def test_two_commands_at_once_share_one_build(stand: Stand, folder: Path, index: PackageIndex) -> None:
    environment = {"SCRAPEYARD_ENVIRONMENTS__INDEX_URL": index.url}
    with (
        stand.started("run", str(folder), **environment) as one,
        stand.started("run", str(folder), **environment) as two,
    ):
        ends = [process.communicate(timeout=PATIENCE) for process in (one, two)]
    assert [out.strip() for out, _ in ends] == [b"1", b"1"], ends
    environments = stand.cache / "scrapeyard" / "environments"
    assert len([place for place in environments.iterdir() if len(place.name) == 64]) == 1


def test_a_cache_that_cannot_be_written_is_done_without(stand: Stand, folder: Path, index: PackageIndex) -> None:
    blocked = stand.folder / "blocked"
    blocked.write_text("a file, not a folder")
    environment = {"SCRAPEYARD_ENVIRONMENTS__INDEX_URL": index.url, "XDG_CACHE_HOME": str(blocked)}
    ended = stand.cli("run", str(folder), **environment)
    assert (ended.status, ended.json) == (0, 1), ended.err
