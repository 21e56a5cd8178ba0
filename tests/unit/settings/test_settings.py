"""Settings: where they come from, which source wins, what is refused, and what is never shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import Limits
from scrapeyard.settings import ALIASES, PREFIX, Settings, describe, hide_password, hide_user, load, redacted

Load = Callable[..., Settings]


@pytest.fixture
def read(tmp_path: Path) -> Load:
    """`load` in an empty folder with an empty environment, except for what is given."""

    def read(environ: dict[str, str] | None = None, *, toml: str = "", dotenv: str = "", **overrides: Any) -> Settings:
        if toml:
            (tmp_path / "scrapeyard.toml").write_text(toml, "utf-8")
        if dotenv:
            (tmp_path / ".env").write_text(dotenv, "utf-8")
        return load(overrides, environ=environ or {}, folder=tmp_path)

    return read


def test_defaults_stand_when_nothing_is_said(read: Load) -> None:
    assert read() == Settings()
    assert read().gateway.port == 8000
    assert read().worker.lanes == ("default",)


def test_each_source_beats_the_next(read: Load) -> None:
    toml = "[gateway]\nport = 1001\n[worker]\nslots = 1\nahead = 1\n[log]\nlevel = 'debug'\n"
    dotenv = "SCRAPEYARD_GATEWAY__PORT=1002\nSCRAPEYARD_WORKER__SLOTS=2\nSCRAPEYARD_WORKER__AHEAD=2\n"
    environ = {"SCRAPEYARD_GATEWAY__PORT": "1003", "SCRAPEYARD_WORKER__SLOTS": "3"}
    settings = read(environ, toml=toml, dotenv=dotenv, gateway={"port": 1004})
    assert settings.gateway.port == 1004
    assert settings.worker.slots == 3
    assert settings.worker.ahead == 2
    assert settings.log.level == "debug"


def test_overrides_that_are_none_count_as_not_given(read: Load) -> None:
    settings = read({"SCRAPEYARD_GATEWAY__PORT": "1003"}, gateway={"port": None, "host": None}, data_dir=None)
    assert settings.gateway.port == 1003
    assert settings.gateway.host == "127.0.0.1"


def test_a_file_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "scrapeyard.toml").write_text("[gateway]\nport = 1\n")
    (tmp_path / "other.toml").write_text("[gateway]\nport = 2\n")
    settings = load(environ={"SCRAPEYARD_CONFIG": str(tmp_path / "other.toml")}, folder=tmp_path)
    assert settings.gateway.port == 2


def test_a_named_file_that_is_missing_or_broken_is_an_error(tmp_path: Path, read: Load) -> None:
    with pytest.raises(SettingsInvalid, match="SCRAPEYARD_CONFIG"):
        read({"SCRAPEYARD_CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(SettingsInvalid, match="not TOML"):
        read(toml="[gateway\n")
    (tmp_path / "scrapeyard.toml").write_bytes(b"x = '\xff'")
    with pytest.raises(SettingsInvalid, match="not TOML"):
        read()


def test_names_that_other_tools_use(read: Load) -> None:
    settings = read(
        {
            "DATABASE_URL": "postgresql://u:p@db/x",
            "REDIS_URL": "redis://:p@r:1/0",
            "LOG_LEVEL": "WARNING",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
            "SCRAPEYARD_LANG": "KO",
        }
    )
    assert settings.database_url.get_secret_value() == "postgresql://u:p@db/x"
    assert settings.redis_url.get_secret_value() == "redis://:p@r:1/0"
    assert settings.log.level == "warning"
    assert settings.telemetry.otlp_endpoint == "http://c:4318"
    assert settings.log.lang == "ko"


def test_our_names_beat_those_of_other_tools(read: Load) -> None:
    both = {
        "LOG_LEVEL": "debug",
        "SCRAPEYARD_LOG__LEVEL": "error",
        "SCRAPEYARD_LANG": "ko",
        "SCRAPEYARD_LOG__LANG": "en",
    }
    assert read(both).log.level == "error"
    assert read(dict(reversed(both.items()))).log.lang == "en"


def test_aliases_work_in_dotenv_too_and_the_environment_beats_it(read: Load) -> None:
    settings = read({"LOG_LEVEL": "error"}, dotenv="LOG_LEVEL=debug\nREDIS_URL=redis://a\n")
    assert settings.log.level == "error"
    assert settings.redis_url.get_secret_value() == "redis://a"


def test_an_empty_alias_counts_as_not_set(read: Load) -> None:
    assert read({"DATABASE_URL": "", "LOG_LEVEL": ""}) == Settings()


def test_every_alias_names_a_key_that_exists() -> None:
    keys = {name for name, *_ in describe()}
    named = {".".join(key) for alias in ALIASES.values() for key in (*alias.keys, alias.blobs) if key}
    assert named <= keys


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({"SCRAPEYARD_GATEWAY__PROT": "1"}, "gateway.prot"),
        ({"SCRAPEYARD_NOTHING": "1"}, "nothing"),
        ({"SCRAPEYARD_NO__SUCH__KEY": "1"}, "no"),
    ],
)
def test_unknown_names_in_the_environment_are_refused(read: Load, environ: dict[str, str], key: str) -> None:
    with pytest.raises(SettingsInvalid, match=rf"\b{key}: no such setting"):
        read(environ)


def test_a_setting_that_was_removed_is_told_with_what_to_do(read: Load) -> None:
    with pytest.raises(SettingsInvalid, match=r"environments\.source_builds: .*environments\.find_links"):
        read({"SCRAPEYARD_ENVIRONMENTS__SOURCE_BUILDS": "true"})


def test_unknown_names_in_dotenv_and_toml_are_refused(read: Load, tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"worker\.slot: no such setting"):
        read(toml="[worker]\nslot = 3\n")
    (tmp_path / "scrapeyard.toml").unlink()
    with pytest.raises(SettingsInvalid, match=r"worker\.slot: no such setting"):
        read(dotenv="SCRAPEYARD_WORKER__SLOT=3\n")


def test_names_of_other_programs_are_left_alone(read: Load) -> None:
    assert read({"PATH": "/bin", "GATEWAY__PORT": "1"}, dotenv="OTHER=1\n") == Settings()


def test_names_of_the_command_line_are_left_alone(read: Load) -> None:
    url = "http://127.0.0.1:8000"
    environ = {"SCRAPEYARD_KEY": "sy_x", "SCRAPEYARD_SERVER": url, "SCRAPEYARD_URL": url}
    assert read(environ) == Settings()


def test_a_section_given_as_a_value_is_refused(read: Load) -> None:
    with pytest.raises(SettingsInvalid, match="gateway"):
        read({"SCRAPEYARD_GATEWAY": "1"})
    with pytest.raises(SettingsInvalid, match="gateway is a value"):
        read({"SCRAPEYARD_GATEWAY": "1", "SCRAPEYARD_GATEWAY__PORT": "1"})


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("SCRAPEYARD_GATEWAY__PORT", "many", "gateway.port"),
        ("SCRAPEYARD_GATEWAY__PORT", "70000", "gateway.port"),
        ("SCRAPEYARD_GATEWAY__WAIT_SECONDS", "301", "gateway.wait_seconds"),
        ("SCRAPEYARD_WORKER__SLOTS", "-1", "worker.slots"),
        ("SCRAPEYARD_WORKER__LANES", "", "worker.lanes"),
        ("SCRAPEYARD_WORKER__TAKES", "shop/*", "worker.takes"),
        ("SCRAPEYARD_LANES__PATTERNS", "shop", "lanes.patterns"),
        ("SCRAPEYARD_SANDBOX__MODE", "perhaps", "sandbox.mode"),
        ("LOG_LEVEL", "loud", "log.level"),
        ("SCRAPEYARD_LANG", "fr", "log.lang"),
    ],
)
def test_values_out_of_bounds_are_refused_by_name(read: Load, name: str, value: str, key: str) -> None:
    with pytest.raises(SettingsInvalid, match=key.replace(".", r"\.")):
        read({name: value})


def test_every_fault_is_named_at_once(read: Load) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        read({"SCRAPEYARD_GATEWAY__PORT": "x", "SCRAPEYARD_WORKER__SLOTS": "y", "SCRAPEYARD_ODD": "z"})
    assert all(key in caught.value.message for key in ("gateway.port", "worker.slots", "odd", "config --describe"))


def test_lists_may_be_written_with_commas(read: Load) -> None:
    assert read({"SCRAPEYARD_WORKER__LANES": "a, b,,c "}).worker.lanes == ("a", "b", "c")
    assert read(toml='[worker]\nlanes = ["x", "y"]\n').worker.lanes == ("x", "y")


@pytest.mark.parametrize("place", ["https://me:hush@packages.example/wheels", "file:///srv/wheels"])
def test_wheels_come_from_folders_alone(read: Load, place: str) -> None:
    assert read({"SCRAPEYARD_ENVIRONMENTS__FIND_LINKS": "/srv/wheels"}).environments.find_links == (
        Path("/srv/wheels"),
    )
    with pytest.raises(SettingsInvalid, match=r"environments\.index_url") as caught:
        read({"SCRAPEYARD_ENVIRONMENTS__FIND_LINKS": place})
    assert "hush" not in caught.value.message


def test_lists_may_be_written_as_json(read: Load) -> None:
    assert read({"SCRAPEYARD_WORKER__LANES": ' ["a", "b,c"] '}).worker.lanes == ("a", "b,c")
    assert read({"SCRAPEYARD_HTTP__ALLOW_HOSTS": "[]"}).http.allow_hosts == ()
    with pytest.raises(SettingsInvalid, match=r"worker\.lanes: .*commas"):
        read({"SCRAPEYARD_WORKER__LANES": '["a", "b"'})


def test_settings_do_not_change() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.gateway.port = 1  # type: ignore[misc]


def test_secrets_hide(read: Load) -> None:
    settings = read({"DATABASE_URL": "postgresql://me:hush@db/x", "REDIS_URL": "redis://:hush@r:6379/0"})
    assert "hush" not in repr(settings)
    assert "hush" not in str(settings)
    shown = redacted(settings)
    assert "hush" not in str(shown)
    assert shown["database_url"] == "postgresql://me:***@db/x"
    assert shown["redis_url"] == "redis://:***@r:6379/0"
    assert shown["gateway"]["port"] == 8000


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("sqlite:///data/x.db", "sqlite:///data/x.db"),
        ("redis://r:6379/0", "redis://r:6379/0"),
        ("redis://:p@r:6379/0", "redis://:***@r:6379/0"),
        ("postgresql://u:p%40q@[::1]:5432/x?sslmode=require", "postgresql://u:***@[::1]:5432/x?sslmode=require"),
        ("postgresql://u:a@b@h/x", "postgresql://u:***@h/x"),
        ("postgresql://u@h/x", "postgresql://u@h/x"),
    ],
)
def test_a_password_in_a_url_is_hidden(url: str, shown: str) -> None:
    assert hide_password(url) == shown


def test_every_key_is_described_and_can_be_set_by_the_name_it_is_described_with(read: Load) -> None:
    keys = list(describe())
    assert len({name for name, *_ in keys}) == len(keys) > 40
    for name, environ, _default, meaning in keys:
        assert meaning.endswith("."), f"{name} needs a sentence"
        assert environ == PREFIX + name.replace(".", "__").upper()
    for name, environ, default, _meaning in keys:
        if default is not None:
            text = ",".join(default) if isinstance(default, tuple) else str(default)
            assert read({environ: text}) == Settings(), name


def test_limits_become_the_models_noun() -> None:
    limits = Settings().limits.as_limits()
    assert isinstance(limits, Limits)
    assert limits.wall_seconds == 300
    assert Limits().within(limits) == Limits()


def test_a_url_that_cannot_be_read_is_hidden_whole() -> None:
    assert hide_password("redis://:secret@[bad") == "***"


def test_names_of_the_first_repository(read: Load) -> None:
    source = read(
        {
            "SCRIPT_REPOSITORY_TYPE": "s3",
            "S3_BUCKET_NAME": "scrapers",
            "S3_REGION": "eu-central-1",
            "S3_ACCESS_KEY": "key",
            "S3_SECRET_KEY": "hush",
            "S3_PREFIX": "team/",
        }
    ).repository.source
    assert (source.type, source.bucket, source.region, source.prefix) == ("s3", "scrapers", "eu-central-1", "team/")
    assert (source.access_key.get_secret_value(), source.secret_key.get_secret_value()) == ("key", "hush")
    git = {"SCRIPT_REPOSITORY_TYPE": "git", "SCRIPT_REPOSITORY_URL": "https://git.example/x.git"}
    assert read(git).repository.source.url.get_secret_value() == "https://git.example/x.git"
    assert read({**git, "SCRAPEYARD_REPOSITORY__SOURCE__TYPE": "http"}).repository.source.type == "http"


def test_more_repositories_stand_in_the_file(read: Load) -> None:
    toml = """
        [repository.source]
        type = "git"
        url = "https://git.example/first.git"
        [[repository.more]]
        type = "http"
        url = "https://scrapers.example/index.json"
        [[repository.more]]
        type = "folder"
        url = "/srv/scrapers"
    """
    repository = read(toml=toml).repository
    assert [source.type for source in (repository.source, *repository.more)] == ["git", "http", "folder"]
    with pytest.raises(SettingsInvalid, match=r"repository\.more\.0\.bukket: no such setting"):
        read(toml="[[repository.more]]\nbukket = 'b'\n")


def test_more_repositories_cannot_be_written_with_commas(read: Load) -> None:
    with pytest.raises(SettingsInvalid, match=r"^repository\.more: a list of tables, which only the file can hold"):
        read({"SCRAPEYARD_REPOSITORY__MORE": "https://a.example,https://b.example"})


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"SCRIPT_REPOSITORY_URL": "https://git.example/x.git"}, "type is not; set type"),
        ({"SCRIPT_REPOSITORY_TYPE": "git"}, "type is git, but url is not set"),
        ({"SCRIPT_REPOSITORY_TYPE": "s3"}, "set bucket"),
        ({"SCRIPT_REPOSITORY_TYPE": "s3", "S3_BUCKET_NAME": "b", "SCRIPT_REPOSITORY_URL": "u"}, "endpoint instead of"),
        ({"SCRIPT_REPOSITORY_TYPE": "svn"}, "source.type"),
    ],
)
def test_a_repository_says_where_it_is(read: Load, environ: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsInvalid, match=words) as caught:
        read(environ)
    assert caught.value.message.startswith("repository.source")


def test_s3_names_of_other_programs_are_no_fault(read: Load) -> None:
    assert read({"S3_REGION": "eu-central-1", "S3_ACCESS_KEY": "key"}).repository.source.type == ""


def test_secrets_of_repositories_hide(read: Load) -> None:
    toml = """
        [repository]
        hook_secret = "hush"
        [repository.source]
        type = "git"
        url = "https://hush@git.example/x.git?token=hush"
        token = "hush"
        [[repository.more]]
        type = "s3"
        bucket = "scrapers"
        access_key = "hush"
        secret_key = "hush"
        [[repository.more]]
        type = "git"
        url = "ssh://git:hush@git.example/x.git"
        [environments]
        index_url = "https://me:hush@packages.example/simple"
    """
    settings = read(toml=toml)
    assert "hush" not in repr(settings)
    shown = redacted(settings)
    assert "hush" not in str(shown)
    assert shown["repository"]["source"]["url"] == "https://***@git.example/x.git?***"
    assert shown["repository"]["more"][1]["url"] == "ssh://git:***@git.example/x.git"
    assert shown["environments"]["index_url"] == "https://***@packages.example/simple"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("/srv/scrapers", "/srv/scrapers"),
        ("git@git.example:team/x.git", "git@git.example:team/x.git"),
        ("https://git.example/x.git", "https://git.example/x.git"),
        ("https://[bad", "***"),
    ],
)
def test_a_url_without_secrets_stays_readable(url: str, shown: str) -> None:
    assert hide_user(url) == shown
