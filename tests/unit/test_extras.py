"""The extras: the table of the program, pyproject.toml, and what users read when one is missing."""

import tomllib
from pathlib import Path

import pytest

from scrapeyard import extras

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED: dict[str, list[str]] = PROJECT["optional-dependencies"]
IN_THE_BASE = {"s3"}
"""Extras of packages that the base has, too."""


def test_the_table_has_every_extra_that_adds_a_package() -> None:
    assert set(extras.EXTRAS) == set(DECLARED) - IN_THE_BASE - {"all"}
    assert all(set(DECLARED[name]) <= set(PROJECT["dependencies"]) for name in IN_THE_BASE)


def test_all_names_every_other_extra() -> None:
    names = ",".join(sorted(set(DECLARED) - {"all", "captcha", "light", "local-ai"}))  # these are large, for few
    assert DECLARED["all"] == [f"scrapeyard[{names}]"]


def test_the_docs_list_every_extra() -> None:
    page = (ROOT / "docs" / "installing.md").read_text("utf-8")
    for name in DECLARED:
        purpose = extras.EXTRAS[name].purpose if name in extras.EXTRAS else ""
        assert f"\n| `{name}` | {purpose}" in page, f"docs/installing.md does not tell of {name}"


def test_all_are_installed_where_the_tests_run() -> None:
    assert [name for name in extras.EXTRAS if extras.missing(name)] == []


def test_a_missing_one_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    assert extras.missing("parquet") == (
        "the extra for exports as Parquet is not installed; run: pip install 'scrapeyard[parquet]'"
    )


def test_a_program_on_the_path_serves_instead_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not extras.is_installed("environments")
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    assert extras.is_installed("environments")
