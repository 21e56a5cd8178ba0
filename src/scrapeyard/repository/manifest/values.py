"""Places in a manifest, what a value there may be, and TOML from outside."""

import difflib
import math
import re
import tomllib
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid

MAX_DEPTH = 32
SECRET = "secret"  # noqa: S105 - a key's name
"""The one key of a table that stands for a secret."""
WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""A name that stands in paths, keys and settings: `fullmatch` it."""
SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A secret's name, which may be written as a variable of an environment is."""


class Place(Struct, frozen=True):
    """A key of a file, for error messages."""

    where: str
    key: str

    def fault(self, remedy: str) -> ScraperInvalid:
        """An error that names the file, the key and the remedy. Control characters in the key are escaped."""
        key = self.key if self.key.isprintable() else ascii(self.key)
        return ScraperInvalid(f"{self.where}: {key}: {remedy}", file=self.where, key=key)


def meant(word: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown word: the nearest known word, or all of them."""
    close = difflib.get_close_matches(word[:100], list(known), n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(sorted(known))}"


def check_json(value: Any, place: Place, depth: int = 0) -> None:
    """Raises ScraperInvalid unless `value` can be written as JSON: no dates, no infinities, 64-bit integers."""
    if depth > MAX_DEPTH:
        raise place.fault(f"nested deeper than {MAX_DEPTH} levels; flatten it")
    if isinstance(value, dict):
        for key, child in value.items():
            check_json(child, Place(place.where, f"{place.key}.{key}"[:200]), depth + 1)
    elif isinstance(value, list):
        for child in value:
            check_json(child, place, depth + 1)
    else:
        _check_scalar(value, place)


def check_secrets(config: dict[str, Any], place: Place) -> None:
    """Raises ScraperInvalid if a table below `config` has `secret` beside other keys, or a `secret` that is not a name.

    `config` itself is never a reference: `secret` directly below [config] is an ordinary key.
    """
    for key, child in config.items():
        _check_reference(child, Place(place.where, f"{place.key}.{key}"[:200]))


def _check_reference(value: Any, place: Place) -> None:
    if isinstance(value, list):
        for child in value:
            _check_reference(child, place)
    elif isinstance(value, dict) and SECRET not in value:
        check_secrets(value, place)
    elif isinstance(value, dict):
        name = value[SECRET]
        if len(value) > 1 or not isinstance(name, str) or SECRET_NAME.fullmatch(name) is None:
            raise place.fault('a table with `secret` stands for one: write { secret = "name" }, alone')


def _check_scalar(value: Any, place: Place) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise place.fault("must be a finite number; JSON has no inf or nan")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise place.fault("must fit in 64 bits; write it as text")
    if value is not None and not isinstance(value, (str, int, float)):
        raise place.fault(f"must be a JSON value; write this {type(value).__name__} as text in quotes")


MAX_PARTS = 64
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}""")


def parse_toml(text: bytes) -> dict[str, Any]:
    """The document as a table. Raises ValueError, the base of UnicodeDecodeError and TOMLDecodeError.

    A key of more than MAX_PARTS parts (`a.b.c…`) is refused before it is parsed; so is text that looks like one.
    """
    decoded = text.decode()
    if _LONG_KEY.search(decoded) is not None:
        raise ValueError(f"a key of more than {MAX_PARTS} parts")
    try:
        return tomllib.loads(decoded)
    except RecursionError:
        raise ValueError("nested too deeply") from None
