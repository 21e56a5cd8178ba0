"""What a script imports must be declared: the machine that certifies it may have more installed than a worker."""

from pathlib import Path

import pytest

from scrapeyard.authoring.findings import Finding
from scrapeyard.authoring.imports import check_imports
from scrapeyard.repository.archive.files import scraper_files
from scrapeyard.repository.manifest.manifest import read_manifest

RUN = "def run(ctx): ...\n"


def findings(
    folder: Path, script: str, *, requirements: str = "[]", packages: Path | None = None, **more: str
) -> list[Finding]:
    folder.mkdir(exist_ok=True)
    text = f'id = "a/b"\nversion = "1.0.0"\nrequirements = {requirements}\n'
    (folder / "scraper.toml").write_text(text)
    for name, content in {"scraper": script, **more}.items():
        (folder / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(content)
    manifest = read_manifest(text.encode(), "scraper.toml", lambda name: (folder / name).read_bytes())
    return check_imports(manifest, scraper_files(folder, folder.resolve(), str(folder)), packages)


@pytest.mark.parametrize(
    ("script", "place", "line"),
    [
        ("import pandas\n" + RUN, "scraper.py:1", 'requirements = ["pandas"]'),
        ("import os, sqlalchemy.orm as orm\n" + RUN, "scraper.py:1", 'requirements = ["SQLAlchemy"]'),
        ("import os\nfrom yaml import safe_load\n" + RUN, "scraper.py:2", 'requirements = ["PyYAML"]'),
        ("def run(ctx):\n    import nowhere_known\n", "scraper.py:2", 'requirements = ["nowhere_known"]'),
        ("try:\n    import pandas\nexcept ValueError: ...\n" + RUN, "scraper.py:2", 'requirements = ["pandas"]'),
        ("import scrapeyard.model\n" + RUN, "scraper.py:1", "import scrapeyard_sdk instead"),
    ],
)
def test_an_undeclared_import_is_told_with_the_line_to_add(tmp_path: Path, script: str, place: str, line: str) -> None:
    (finding,) = findings(tmp_path / "a", script)
    assert finding.state == "fail"
    assert place in finding.detail
    assert line.lower() in finding.remedy.lower()


@pytest.mark.parametrize(
    "script",
    [
        "from __future__ import annotations\nimport json, xml.etree, zoneinfo\n",
        "import scrapeyard_sdk\nfrom selectolax.lexbor import LexborHTMLParser\n",
        "import helper\nfrom helper.deep import x\nfrom . import helper\n",
        "try:\n    import pandas\nexcept ImportError:\n    pandas = None\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n",
        "import typing\nif typing.TYPE_CHECKING:\n    import pandas\n",
    ],
)
def test_what_every_script_has_needs_no_declaration(tmp_path: Path, script: str) -> None:
    (finding,) = findings(tmp_path / "a", script + RUN, helper="x = 1\n")
    assert finding.state == "ok"


def test_modules_beside_the_script_are_read_and_cases_are_not(tmp_path: Path) -> None:
    more = {"lib/parse": "import pandas\n", "tests/case/page": "import numpy\n"}
    (finding,) = findings(tmp_path / "a", "import lib.parse\n" + RUN, **more)
    assert "lib/parse.py:1: pandas" in finding.detail


def test_what_the_requirements_bring_is_declared(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    (packages / "bs4").mkdir(parents=True)
    (packages / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    (packages / "six.py").touch()
    script = "import bs4, fast, six\ndef run(ctx):\n    import pandas\n"
    asked = '["beautifulsoup4"]'
    (finding,) = findings(tmp_path / "a", script, requirements=asked, packages=packages)
    assert "scraper.py:3: pandas" in finding.detail
    assert 'requirements = ["beautifulsoup4", "pandas"]' in finding.remedy
    assert findings(tmp_path / "a", script, requirements=asked) == [], "not known before they are installed"
