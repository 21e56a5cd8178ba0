"""Scrapy projects that nobody would write by mistake, and those that only look so."""

import os
import tomllib
from pathlib import Path

import pytest

from scrapeyard.errors import BadRequest
from scrapeyard.repository.scrapy.project import read_project
from scrapeyard.repository.scrapy.scrapers import Imported, write_scrapers

SPIDER = "import scrapy\nclass A(scrapy.Spider):\n    name = 'a'\n"
SETTINGS = "SPIDER_MODULES = ['p.spiders']\n"


def _import(root: Path, files: dict[str, str]) -> Imported:
    whole = {
        "scrapy.cfg": "[settings]\ndefault = p.settings\n",
        "p/__init__.py": "",
        "p/settings.py": SETTINGS,
        "p/spiders/__init__.py": "",
        "p/spiders/a.py": SPIDER,
        **files,
    }
    for name, text in whole.items():
        (root / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "made" / name).write_text(text)
    return write_scrapers(read_project(root / "made"), root / "to")


@pytest.mark.parametrize(
    "settings",
    [
        "B = 'yyyyyyyy'\n" + "B = B + B\n" * 60,
        "B = [1, 2]\n" + "B = [B, B, B, B]\n" * 60 + "ITEM_PIPELINES = B\n",
        "B = {'a': 1}\n" + "B = {'a': B, 'b': B}\n" * 60 + "ITEM_PIPELINES = B\n",
        "B = 'a'\n" + "B = f'{B}{B}{B}'\n" * 60,
        f"B = f'{{0x{'f' * 9000}}}'\n",
        "B = " + "+".join(["'a'"] * 2500),
    ],
    ids=["sums", "lists", "tables", "texts", "a number", "a long sum"],
)
def test_settings_that_stand_for_more_than_memory_holds_are_not_read(tmp_path: Path, settings: str) -> None:
    assert _import(tmp_path, {"p/settings.py": SETTINGS + settings}).scrapers == ("p/a",)


@pytest.mark.parametrize("module", ["/etc/passwd", "../../x", "p/settings", "p..settings", ""])
def test_modules_are_looked_for_in_the_project_alone(tmp_path: Path, module: str) -> None:
    (tmp_path / "x.py").write_text(SETTINGS)
    with pytest.raises(BadRequest):
        _import(tmp_path, {"scrapy.cfg": f"[settings]\ndefault = {module}\n"})
    settings = f"SPIDER_MODULES = ['/etc', '../../', '{module}', 'p.spiders.', 'p.spiders']"
    done = _import(tmp_path, {"scrapy.cfg": "\ufeff[settings]\r\ndefault = p.settings\r\n", "p/settings.py": settings})
    assert done.scrapers == ("p/a",), "and Windows may begin a file with a mark"


def test_names_of_any_kind_become_scrapers(tmp_path: Path) -> None:
    names = [
        "../../x",
        "a/b",
        " ",
        "\U0001f577",
        "x" * 900,
        "q'\n",
        '"""',
        "\x7f",
        "builtin",
        "{0}",
        "\ud800",
        "A",
        "a",
    ]
    spiders = "".join(f"class S{at}(scrapy.Spider):\n    name = {name!r}\n" for at, name in enumerate(names))
    (tmp_path / "made").mkdir()
    os.mkfifo(tmp_path / "made" / "pipe.py")
    (tmp_path / "made" / "link.txt").symlink_to("/etc/passwd")
    files = {"p/spiders/a.py": f"import scrapy\n{spiders}", "p/$(a)\n.txt": "", "p/settings.py": "BOT_NAME = '\u4e2d'"}
    done = _import(tmp_path, files)
    assert len(set(done.scrapers)) == len(names)
    for folder in done.folders:
        assert folder.parent == tmp_path / "to" / "p"
        assert tomllib.loads((folder / "scraper.toml").read_text())["id"] == f"p/{folder.name}"
        compile((folder / "scraper.py").read_text(), "scraper.py", "exec")
        assert not {"pipe.py", "link.txt"} & {path.name for path in (folder / "project").iterdir()}


def test_more_python_than_is_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="more than 6 MB of Python"):
        _import(tmp_path, {f"p/f{at}.py": "#" * 1_000_000 for at in range(7)})


def test_a_project_with_too_many_copies_is_refused(tmp_path: Path) -> None:
    spiders = "".join(f"class S{at}(scrapy.Spider):\n    name = 's{at}'\n" for at in range(2100))
    files = {f"p/f{at}.txt": "" for at in range(100)}
    with pytest.raises(BadRequest, match="2100 spiders with a copy each"):
        _import(tmp_path, {"p/spiders/a.py": f"import scrapy\n{spiders}", **files})
    assert not (tmp_path / "to").exists()
