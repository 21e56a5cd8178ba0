"""The tree for people to look at, with its secrets hidden."""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from scrapeyard.settings.tree import Settings


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
