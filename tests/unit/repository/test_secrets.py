"""Secrets: granted by id, put in place at the last moment, never told."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapeyard.errors import ScraperInvalid, SettingsInvalid
from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.trust.secrets import (
    MAX_BYTES,
    MAX_VALUE,
    Secrets,
    redact,
    redact_json,
    secret_names,
    written_forms,
)

KEY = "k3y-of-the-shop"
FILE = f"""
["shop/product"]
api_key = "{KEY}"
["shop/*"]
api_key = "of-the-site"
proxy = "proxy-password"
"""


def scraper(config: dict[str, Any], scraper_id: str = "shop/product") -> Scraper:
    return Scraper(ref=ScraperRef(id=scraper_id, version="1.0.0", digest="d"), folder=Path("x"), config=config)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "secrets.toml", FILE)


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(SettingsInvalid, match=r"^repository\.secrets_file: ") as caught:
        Secrets(path).check()
    return caught.value.message


def test_a_config_is_filled_at_any_depth(path: Path) -> None:
    config = {"key": {"secret": "api_key"}, "deep": [{"a": {"b": {"secret": "proxy"}}}, 1], "plain": "x"}
    filled = Secrets(path).fill(scraper(config))
    assert filled == {"key": KEY, "deep": [{"a": {"b": "proxy-password"}}, 1], "plain": "x"}
    assert config["key"] == {"secret": "api_key"}
    assert secret_names(config) == {"api_key", "proxy"}


def test_a_grant_to_a_site_serves_its_scrapers_alone(path: Path) -> None:
    secrets = Secrets(path)
    assert secrets.fill(scraper({"key": {"secret": "api_key"}}, "shop/list")) == {"key": "of-the-site"}
    for stranger in ("shopper/list", "other/product"):
        with pytest.raises(ScraperInvalid) as caught:
            secrets.fill(scraper({"key": {"secret": "api_key"}}, stranger))
        assert "api_key" in caught.value.message
        assert f"secrets set {stranger} api_key" in caught.value.message
        assert "secrets_file" in caught.value.message
        assert KEY not in caught.value.message


def test_without_a_file_only_a_scraper_that_names_a_secret_is_refused() -> None:
    secrets = Secrets(None)
    secrets.check()
    assert secrets.fill(scraper({"secret": "a plain value"})) == {"secret": "a plain value"}
    assert secrets.named_by(scraper({})) == ()
    with pytest.raises(ScraperInvalid, match="is not granted"):
        secrets.fill(scraper({"key": {"secret": "api_key"}}))


def test_a_change_is_seen_and_a_withdrawn_grant_ends(path: Path) -> None:
    secrets = Secrets(path)
    wanting = scraper({"key": {"secret": "api_key"}})
    assert secrets.fill(wanting) == {"key": KEY}
    write(path, FILE.replace(KEY, "another"))
    assert secrets.fill(wanting) == {"key": "another"}
    write(path, "")
    with pytest.raises(ScraperInvalid, match="is not granted"):
        secrets.fill(wanting)
    path.unlink()
    with pytest.raises(ScraperInvalid, match="cannot be read"):
        secrets.fill(wanting)
    write(path, FILE)
    assert secrets.fill(wanting) == {"key": KEY}


def test_a_file_that_breaks_while_we_run_fails_closed_without_its_words(path: Path) -> None:
    secrets = Secrets(path)
    wanting = scraper({"key": {"secret": "api_key"}})
    secrets.check()
    write(path, FILE + "api_key = oops-half-a-secret")
    for _ in range(2):
        with pytest.raises(ScraperInvalid) as caught:
            secrets.fill(wanting)
        assert "oops" not in caught.value.message
        assert str(path) not in caught.value.message


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o660, 0o777])
def test_a_file_open_to_others_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert "chmod it to 600" in refusal(path)


def test_a_group_may_read(path: Path) -> None:
    path.chmod(0o640)
    Secrets(path).check()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", "not TOML"),
        ('["shop/product"]\nkey = oops', "not TOML"),
        ("a = " + "[" * 5000, "not TOML"),
        ('api_key = "x"', "must be a table"),
        ('[shop]\nproduct = "x"', "must be a table"),
        ('["*"]\na = "x"', "must be a table"),
        ('["*/*"]\na = "x"', "must be a table"),
        ('["shop/pro*"]\na = "x"', "must be a table"),
        ('["shop/product"]\n"K Y" = "oops"', "no name"),
        ('["shop/product"]\nkey = 3', "must be text"),
        ('["shop/product"]\nkey = ""', "must be text"),
        ('["shop/product"]\nkey.a = "oops"', "must be text"),
        (f'["shop/product"]\nkey = "{"x" * (MAX_VALUE + 1)}"', "must be text"),
        ("#" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_a_value(tmp_path: Path, text: str, told: str) -> None:
    message = refusal(write(tmp_path / "secrets.toml", text))
    assert told in message
    assert "oops" not in message
    assert len(message) < 600


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "none.toml")
    assert "cannot read" in refusal(tmp_path)
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe")
    path.chmod(0o600)
    assert "not TOML" in refusal(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_we_may_not_read_is_refused(path: Path) -> None:
    path.chmod(0)
    assert "Permission denied" in refusal(path)


def test_values_are_taken_out_of_what_a_script_says(path: Path) -> None:
    hidden = Secrets(path).named_by(scraper({"a": {"secret": "api_key"}, "b": [{"secret": "proxy"}]}))
    assert hidden == (KEY, "proxy-password")
    assert redact(f"key={KEY}, again {KEY}", hidden) == "key=***, again ***"
    assert redact({"fields": [f"<{KEY}>", ("x", 1)], "n": None}, hidden) == {"fields": ["<***>", ("x", 1)], "n": None}
    assert redact("a 123 b", ("123",)) == "a 123 b"


def test_a_longer_value_is_hidden_before_one_inside_it() -> None:
    assert redact("password-2", ("password-2", "password")) == "***"


def test_secrets_of_the_store_stand_behind_those_of_the_file(path: Path) -> None:
    path.write_text('["shop/product"]\napi_key = "of the file"\n')
    secrets = Secrets(path)
    both = scraper({name: {"secret": name} for name in ("api_key", "API_TOKEN")})
    assert secrets.lacks(both)
    secrets.adopt({"shop/*": {"API_TOKEN": "of the site"}, "shop/product": {"api_key": "of the store"}})
    assert not secrets.lacks(both)
    assert secrets.fill(both) == {"api_key": "of the file", "API_TOKEN": "of the site"}
    secrets.adopt({"shop/product": {"API_TOKEN": "its own"}, "shop/*": {"API_TOKEN": "of the site"}})
    assert secrets.fill(both)["API_TOKEN"] == "its own"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"a": ["x t0k3n y", {"t0k3n": 1}]}, {"a": ["x *** y", {"***": 1}]}),
        ({"pin": 123456, "other": 1234567}, {"pin": "***", "other": 1234567}),
        ({"quoted": 'é"\\x'}, {"quoted": "***"}),
        ({"plain": "nothing"}, {"plain": "nothing"}),
    ],
)
def test_values_are_taken_out_of_a_result(result: Any, told: Any) -> None:
    hidden = tuple(form for value in ("t0k3n", "123456", 'é"\\x') for form in written_forms(value))
    assert json.loads(redact_json(msgspec.json.encode(result), hidden)) == told
