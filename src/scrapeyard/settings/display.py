"""The tree of settings for people: every key with its default and meaning, secrets hidden."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, SecretStr

from scrapeyard.settings.loading import PREFIX
from scrapeyard.settings.section import Section
from scrapeyard.settings.tree import Settings


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


def redacted(settings: Settings) -> dict[str, Any]:
    """The effective tree as plain values, with passwords hidden."""
    tree = settings.model_dump(mode="json")
    for name in ("database_url", "redis_url"):
        tree[name] = hide_password(getattr(settings, name).get_secret_value())
    tree["environments"]["index_url"] = hide_user(settings.environments.index_url.get_secret_value())
    repository = settings.repository
    for shown, source in zip(
        (tree["repository"]["source"], *tree["repository"]["more"]), (repository.source, *repository.more), strict=True
    ):
        shown["url"] = hide_user(source.url.get_secret_value())
    return tree


def hide_password(url: str) -> str:
    """The same URL with its password as `***`; all of it hidden when it cannot be read as a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    if not parts.password:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{host}"))


def hide_user(url: str) -> str:
    """As `hide_password`; over http and https the user as well, since a token is often written there, and the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    if parts.scheme not in ("http", "https"):
        return hide_password(url)
    user, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{'***' if user else ''}{at}{host}", query="***" if parts.query else "")
    return urlunsplit(shown)
