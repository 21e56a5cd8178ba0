"""Every key with its names, default and meaning."""

from collections.abc import Iterator
from typing import Any

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
