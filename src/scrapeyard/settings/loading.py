"""Loads settings from files, environment and command line, and validates them; describes them with secrets hidden."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from dotenv import dotenv_values
from pydantic import BaseModel, SecretStr, ValidationError

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings.aliases import ALIASES, NOT_USED, language, values_of, wants_local
from scrapeyard.settings.origins import SettingOrigins, at_key
from scrapeyard.settings.section import Section
from scrapeyard.settings.tree import Settings

PREFIX = "SCRAPEYARD_"
CONFIG_FILE = "scrapeyard.toml"
_NOT_KEYS = {"SCRAPEYARD_CONFIG", "SCRAPEYARD_SERVER", "SCRAPEYARD_URL", "SCRAPEYARD_KEY", *ALIASES}
"""SCRAPEYARD_CONFIG names the file; SCRAPEYARD_SERVER, formerly SCRAPEYARD_URL, tells the command line which server to
call, and SCRAPEYARD_KEY with which key."""


def load(
    overrides: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Settings:
    """Read every source and validate the whole tree. Raises SettingsInvalid naming each wrong key.

    `overrides` is a nested mapping, such as the command line builds; None values in it count as not given.
    """
    folder = folder or Path.cwd()
    dotenv = read_dotenv(folder)
    everywhere = {**dotenv, **environ}
    spoken = language(everywhere)
    tree: dict[str, Any] = {"log": {"lang": spoken}} if spoken else {}
    path = Path(environ.get("SCRAPEYARD_CONFIG") or folder / CONFIG_FILE)
    written = _read_file(path, is_named=bool(environ.get("SCRAPEYARD_CONFIG")))
    given = _given(overrides or {})
    for weaker in (written, _from_environment(dotenv, everywhere), _from_environment(environ, everywhere), given):
        _merge(tree, weaker)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsInvalid(_explain(error)) from None
    if wants_local(everywhere) is False and not settings.blobs.url:
        raise SettingsInvalid("USE_LOCAL_STORAGE is false, but there is no bucket; set S3_BUCKET or blobs.url")
    settings.keep_origins(SettingOrigins(given=given, environ=environ, dotenv=dotenv, file=(path.name, written)))
    return settings


def read_dotenv(folder: Path) -> dict[str, str]:
    """The variables of `.env`."""
    return {name: value for name, value in dotenv_values(folder / ".env").items() if value is not None}


def not_used(environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> list[tuple[str, str]]:
    """Variables that are set and known, but have no effect: each with the reason."""
    everywhere = {**read_dotenv(folder or Path.cwd()), **environ}
    return [(name, ALIASES[name].note) for name in sorted(NOT_USED) if everywhere.get(name)]


def _read_file(path: Path, *, is_named: bool) -> dict[str, Any]:
    if not is_named and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsInvalid(f"cannot read {path}: {error.strerror}; check SCRAPEYARD_CONFIG") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path} is not TOML: {error}") from None


def _from_environment(environ: Mapping[str, str], everywhere: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, read in values_of(environ, everywhere):
        _put(tree, path, read)
    for name, value in environ.items():
        if name.startswith(PREFIX) and name not in _NOT_KEYS:
            _put(tree, tuple(name.removeprefix(PREFIX).lower().split("__")), value)
    return tree


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        branch = tree.setdefault(part, {})
        if not isinstance(branch, dict):
            raise SettingsInvalid(f"{'.'.join(path)}: {part} is a value, not a section")
        tree = branch
    tree[path[-1]] = value


def _given(tree: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: _given(value) if isinstance(value, Mapping) else value for key, value in tree.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def _merge(tree: dict[str, Any], stronger: Mapping[str, Any]) -> None:
    for key, value in stronger.items():
        if isinstance(value, Mapping) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


REMOVED = {
    "environments.source_builds": "building a package runs its code outside of the sandbox, so packages come as wheels "
    "only; build the wheel yourself and put it into your index or a folder of environments.find_links",
}
"""Settings that there were, and what to do instead."""


def _explain(error: ValidationError) -> str:
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"])
        unknown = fault["type"] == "extra_forbidden"
        words = REMOVED.get(key, "no such setting") if unknown else fault["msg"].removeprefix("Value error, ")
        lines.append(f"{key}: {words}")
    return "; ".join(lines) + " (`scrapeyard config --describe` lists every key)"


def describe() -> Iterator[tuple[str, str, Any, str]]:
    """Every key: (dotted name, environment name, default, meaning), a section's own keys before its branches. For docs
    and `scrapeyard config --describe`."""
    yield from _describe(Settings, ())


def _describe(section: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[str, str, Any, str]]:
    branches = []
    for name, info in section.model_fields.items():
        here = (*path, name)
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            branches.append((info.annotation, here))
        else:
            default = info.default.get_secret_value() if isinstance(info.default, SecretStr) else info.default
            yield ".".join(here), PREFIX + "__".join(here).upper(), default, info.description or ""
    for branch, here in branches:
        yield from _describe(branch, here)


class EffectiveSetting(NamedTuple):
    """One setting as it is in force."""

    key: str
    environment: str
    value: Any
    """As JSON; passwords are hidden."""
    default: Any
    source: str
    """`command line`, `environment NAME`, `.env NAME`, the file's name, or `default`."""
    meaning: str


def effective(settings: Settings) -> Iterator[EffectiveSetting]:
    """Every setting with its value in force and where that came from."""
    tree = redacted(settings)
    for key, environment, default, meaning in describe():
        plain = str(default) if isinstance(default, Path) else default
        source = settings.origin(key, environment)
        yield EffectiveSetting(key, environment, at_key(tree, key), plain, source, meaning)


def redacted(settings: Settings) -> dict[str, Any]:
    """The effective tree as plain values, with passwords hidden."""
    tree = settings.model_dump(mode="json")
    for name in ("database_url", "redis_url"):
        tree[name] = hide_password(getattr(settings, name).get_secret_value())
    tree["queue"]["url"] = hide_password(settings.queue.url.get_secret_value())
    tree["environments"]["index_url"] = hide_user(settings.environments.index_url.get_secret_value())
    repository = settings.repository
    for shown, source in zip(
        (tree["repository"]["source"], *tree["repository"]["more"]), (repository.source, *repository.more), strict=True
    ):
        shown["url"] = hide_user(source.url.get_secret_value())
    return tree


def hide_password(url: str) -> str:
    """The URL with its password replaced by `***`; hidden entirely if it cannot be parsed as a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    if not parts.password:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{host}"))


def hide_user(url: str) -> str:
    """As `hide_password`; for http and https also hides the user, which is often a token, and the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    if parts.scheme not in ("http", "https"):
        return hide_password(url)
    user, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{'***' if user else ''}{at}{host}", query="***" if parts.query else "")
    return urlunsplit(shown)
