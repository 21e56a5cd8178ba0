"""From settings to sources, in order of precedence."""

from pathlib import Path
from typing import Any

import pytest

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import load
from scrapeyard.wiring.catalogue import make_catalogue, make_sources


def sources(tmp_path: Path, environ: dict[str, str] | None = None, **repository: Any) -> list[tuple[str, str]]:
    settings = load({"repository": repository}, environ=environ or {}, folder=tmp_path)
    return [(source.kind, source.name) for source in make_sources(settings, tmp_path / "cache")]


def test_every_kind_in_order(tmp_path: Path) -> None:
    (tmp_path / "scrapeyard.toml").write_text(
        """
[repository]
scrapers = "mine"
[repository.source]
type = "git"
url = "https://me:secret@git.example/team/scrapers.git"
[[repository.more]]
type = "http"
url = "https://scrapers.example/team/"
name = "team"
[[repository.more]]
type = "s3"
bucket = "shared"
region = "eu-central-1"
[[repository.more]]
type = "folder"
url = "published"
"""
    )
    found = sources(tmp_path)
    assert [kind for kind, _ in found] == ["folder", "git", "http", "s3", "folder", "installed"]
    names = [name for _, name in found]
    assert names[0] == "scrapers"
    assert names[2:] == ["team", "s3://shared", "published", "installed"]
    assert "secret" not in names[1]


def test_without_settings_only_what_is_installed(tmp_path: Path) -> None:
    assert sources(tmp_path) == [("installed", "installed")]
    assert sources(tmp_path, installed=False) == []


def test_the_well_known_names_configure_the_first(tmp_path: Path) -> None:
    environ = {"SCRIPT_REPOSITORY_TYPE": "s3", "S3_BUCKET_NAME": "b", "S3_REGION": "r", "S3_PREFIX": "p/q"}
    assert sources(tmp_path, environ)[0] == ("s3", "s3://b/p/q")
    environ = {"SCRIPT_REPOSITORY_TYPE": "git", "SCRIPT_REPOSITORY_URL": "https://git.example/x.git"}
    assert sources(tmp_path, environ)[0][0] == "git"


@pytest.mark.parametrize(
    "source",
    [{"url": "https://git.example/x.git"}, {"type": "git"}, {"type": "http"}, {"type": "s3"}, {"type": "folder"}],
)
def test_half_a_source_says_what_is_missing(tmp_path: Path, source: dict[str, str]) -> None:
    with pytest.raises(SettingsInvalid, match=r"repository\.source.*(type|url|bucket)"):
        sources(tmp_path, source=source)


def test_two_repositories_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="called scrapers; give each a name"):
        sources(tmp_path, scrapers=tmp_path, source={"type": "folder", "url": "scrapers"})


def test_a_key_that_is_none_stops_the_start(tmp_path: Path) -> None:
    settings = load({"repository": {"public_keys": ("nonsense",)}}, environ={}, folder=tmp_path)
    with pytest.raises(SettingsInvalid, match="public_keys"):
        make_catalogue(settings)
