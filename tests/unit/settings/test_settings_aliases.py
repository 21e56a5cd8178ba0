"""Names of other tools: each does what a person who knows it expects, or says that it does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import ALIASES, Settings, load, not_used

S3 = {
    "S3_ENDPOINT": "http://localhost:9000",
    "S3_BUCKET": "scraper-artifacts",
    "S3_ACCESS_KEY": "minioadmin",
    "S3_SECRET_KEY": "minioadmin",
}
Read = Callable[..., Settings]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def loaded(environ: dict[str, str] | None = None, dotenv: str = "", toml: str = "", **more: Any) -> Settings:
        (tmp_path / ".env").write_text(dotenv)
        (tmp_path / "scrapeyard.toml").write_text(toml)
        return load(more, environ=environ or {}, folder=tmp_path)

    return loaded


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("redis:6379", "redis://redis:6379"),
        ("localhost", "redis://localhost"),
        ("cache.example:6380/1", "redis://cache.example:6380/1"),
        ("rediss://u:p@cache.example", "rediss://u:p@cache.example"),
        ("", ""),
    ],
)
def test_an_address_of_redis_needs_no_scheme(read: Read, given: str, meant: str) -> None:
    assert read({"REDIS_URL": given}).redis_url.get_secret_value() == meant


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://flaresolverr:8191", "http://flaresolverr:8191/v1"),
        ("http://flaresolverr:8191/", "http://flaresolverr:8191/v1"),
        ("http://flaresolverr:8191/v1", "http://flaresolverr:8191/v1"),
        ("https://proxy.example/solver", "https://proxy.example/solver"),
    ],
)
def test_the_solver_is_found_with_and_without_its_endpoint(read: Read, given: str, meant: str) -> None:
    assert read({"FLARESOLVERR_URL": given}).escalation.solver_url == meant


def test_a_bucket_takes_the_results(read: Read) -> None:
    blobs = read(S3).blobs
    assert (blobs.url, blobs.endpoint) == ("s3://scraper-artifacts", "http://localhost:9000")
    assert blobs.access_key.get_secret_value() == blobs.secret_key.get_secret_value() == "minioadmin"


def test_a_bucket_and_its_credentials_may_stand_in_two_places(read: Read) -> None:
    secret = {"S3_SECRET_KEY": S3["S3_SECRET_KEY"]}
    rest = "".join(f"{name}={value}\n" for name, value in S3.items() if name not in secret)
    assert read(secret, dotenv=rest).blobs == read(S3).blobs


def test_credentials_without_a_bucket_are_those_of_scripts(read: Read) -> None:
    settings = read({name: value for name, value in S3.items() if name != "S3_BUCKET"})
    assert settings.blobs == Settings().blobs
    assert settings.repository.source.access_key.get_secret_value() == "minioadmin"


def test_local_storage_wins_over_a_bucket(read: Read) -> None:
    assert read(S3 | {"USE_LOCAL_STORAGE": "true"}).blobs == Settings().blobs
    assert read(S3 | {"USE_LOCAL_STORAGE": "false"}).blobs.url == "s3://scraper-artifacts"
    with pytest.raises(SettingsInvalid, match="there is no bucket"):
        read({"USE_LOCAL_STORAGE": "false"})
    with pytest.raises(SettingsInvalid, match="write true or false"):
        read({"USE_LOCAL_STORAGE": "maybe"})


@pytest.mark.parametrize("given", ["http://localhost:3000,http://b", '["http://localhost:3000", "http://b"]'])
def test_origins_of_web_pages(read: Read, given: str) -> None:
    assert read({"CORS_ORIGINS": given}).gateway.cors_origins == ("http://localhost:3000", "http://b")


def test_a_name_that_has_no_effect_is_told(tmp_path: Path) -> None:
    ((name, reason),) = not_used({"KAFKA_BROKERS": "kafka:9092"}, tmp_path)
    assert (name, "Redis" in reason) == ("KAFKA_BROKERS", True)
    assert not_used({}, tmp_path) == []


@pytest.mark.parametrize(
    ("environ", "lang"),
    [
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko_KR"}, "ko"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": ""}, "ko"),
        ({"LANG": "kok_IN"}, "en"),
        ({"LANG": "ko_KR.UTF-8", "SCRAPEYARD_LANG": "en"}, "en"),
        ({"LANG": "C", "SCRAPEYARD_LANG": "ko_KR.UTF-8"}, "ko"),
        ({}, "en"),
    ],
)
def test_the_locale_chooses_the_language(read: Read, environ: dict[str, str], lang: str) -> None:
    assert read(environ).log.lang == lang


def test_a_setting_wins_over_the_locale(read: Read) -> None:
    assert read({"LANG": "ko_KR.UTF-8"}, toml='[log]\nlang = "en"\n').log.lang == "en"


def test_every_name_is_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "settings.md").read_text("utf-8")
    for name, alias in ALIASES.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{'.'.join(key)}`" in row for key in (*alias.keys, alias.blobs) if key)
        assert alias.note in row
