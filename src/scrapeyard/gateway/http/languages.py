"""The language of problems: what the request accepts, else what the operator chose."""

from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

LANGUAGES: Final = ("en", "ko")
_spoken: ContextVar[str] = ContextVar("language", default="en")
speak = _spoken.set
"""Choose the language of the answer to this request."""
stop = _spoken.reset


class ProblemTexts(Struct, frozen=True):
    """The texts of problems in one language."""

    problems: dict[str, tuple[str, str]]
    """Title and remedy by code."""
    exits: dict[str, str]
    """Remedy by exit reason."""


def translated() -> ProblemTexts | None:
    """The texts in the language of this request; None if that is English."""
    language = _spoken.get()
    return None if language == "en" else texts(language)


@cache
def texts(language: str) -> ProblemTexts:
    """The texts in a language other than English."""
    file = files("scrapeyard.gateway.http").joinpath(f"problems.{language}.toml")
    return msgspec.toml.decode(file.read_bytes(), type=ProblemTexts)


def accepted(header: bytes) -> str | None:
    """The language that an Accept-Language header names first; None if we do not speak it."""
    first = header.split(b",", 1)[0].split(b";", 1)[0].strip().lower().split(b"-", 1)[0]
    name = first.decode("latin-1")
    return name if name in LANGUAGES else None
