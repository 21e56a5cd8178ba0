"""The map of the packages: the docstring of `scrapeyard`, the table in docs/architecture.md and the folders agree."""

import re
from collections.abc import Iterator
from pathlib import Path

import scrapeyard

ROOT = Path(__file__).parents[2]


def test_docs_table_equals_the_map() -> None:
    assert docs_table() == package_map()


def test_map_names_every_package_once() -> None:
    names = [name for name, _ in package_map()]
    assert sorted(names) == sorted(packages_on_disk())


def test_every_package_is_told_in_one_sentence() -> None:
    for name, sentence in package_map():
        assert re.fullmatch(r"[A-Z].*\.", sentence), f"{name}: {sentence}"
        assert ". " not in sentence.replace("robots.txt", ""), f"{name}: {sentence}"


def package_map() -> list[tuple[str, str]]:
    """Name and sentence, in order: the lines of the docstring that begin with a name and two or more spaces."""
    return re.findall(r"^([a-z_]+) {2,}(\S.*)$", scrapeyard.__doc__ or "", re.MULTILINE)


def docs_table() -> list[tuple[str, str]]:
    """Name and sentence of each row of the table under "Packages"."""
    section = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("\n## Packages\n")[2]
    return re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)


def packages_on_disk() -> Iterator[str]:
    """What stands directly under `scrapeyard`, folders and modules, and its sister packages."""
    source = ROOT / "src"
    for folder in (source, source / "scrapeyard"):
        yield from (init.parent.name for init in folder.glob("*/__init__.py") if init.parent.name != "scrapeyard")
    yield from (path.stem for path in (source / "scrapeyard").glob("*.py") if path.stem != "__init__")
