"""Semantic versions, and ranges of them as npm writes them.

^1.4   ~1.4.2   1.x   *   >=1.2 <2      a space means "and"; there may be spaces after an operator
1.2 - 1.4                               from 1.2.0 up to the last 1.4
^1.4 || ^3                              either
v1.4.2   =1.4.2   ~>1.4                 the same as 1.4.2, 1.4.2 and ~1.4
"""

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from scrapeyard.errors import BadRequest

_NUMBER = r"(0|[1-9]\d{0,8})"
_LABEL = r"(?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-(?P<pre>{_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
MAX_LENGTH = 64
MAX_RANGE_LENGTH = 200


def is_version(text: str) -> bool:
    """Whether `text` is a version such as `1.4.2` or `2.0.0-rc.1`; no `v`, no missing part."""
    return len(text) <= MAX_LENGTH and _VERSION.fullmatch(text) is not None


def is_prerelease(version: str) -> bool:
    """Whether a valid version is a prerelease, such as `2.0.0-rc.1`."""
    return "-" in version.partition("+")[0]


@lru_cache(maxsize=8192)
def precedence(version: str) -> tuple[Any, ...]:
    """A key that sorts good versions from oldest to newest.

    Versions that differ only in build metadata rank by its text, so that the order never depends on the folder's.
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"{version!r} is not a semantic version")
    pre = found["pre"]
    labels = tuple(_rank(label) for label in pre.split(".")) if pre else ()
    return (*(int(found[part]) for part in (1, 2, 3)), pre is None, labels, version)


def _rank(label: str) -> tuple[int, int, str]:
    return (0, int(label), "") if label.isdigit() else (1, 0, label)


Key = tuple[Any, ...]
"""A sort key as `precedence` makes it."""
Triple = tuple[int, int, int]

_ANY = r"[xX*]"
_RANGE_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PART = re.compile(
    rf"(?P<sign>\^|~>?|>=|<=|>|<|=)?v?(?P<a>{_RANGE_NUMBER}|{_ANY})(?:\.(?P<b>{_RANGE_NUMBER}|{_ANY})(?:\.(?P<c>{_RANGE_NUMBER}|{_ANY})"
    r"(?P<rest>[-+][0-9A-Za-z.+-]+)?)?)?"
)
_SPACED_SIGN = re.compile(r"(\^|~>?|>=|<=|>|<|=) +")
_HYPHEN = re.compile(r"(?P<low>[^ ]+) +- +(?P<high>[^ ]+)")
_WIDTH = 5
"""The length of a key without build metadata."""
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "=": operator.eq,
}


class Bound(Struct, frozen=True):
    """One comparison: with a whole version, or with its first three numbers alone."""

    compare: Callable[[Any, Any], bool]
    limit: Key
    width: int


class Comparisons(Struct, frozen=True, kw_only=True):
    """Comparisons that must all hold."""

    bounds: tuple[Bound, ...]
    prereleases: frozenset[Triple]
    """Versions whose prereleases the range names."""

    def holds(self, key: Key) -> bool:
        """Whether all hold for the version with this key."""
        if not key[3] and key[:3] not in self.prereleases:
            return False
        for bound in self.bounds:  # noqa: SIM110  twice as fast as all(…), on the road of every call
            if not bound.compare(key[: bound.width], bound.limit):
                return False
        return True


class Range(Struct, frozen=True, kw_only=True):
    """A range, understood."""

    either: tuple[Comparisons, ...]

    def holds(self, key: Key) -> bool:
        """Whether the version with this key is in the range."""
        for comparisons in self.either:  # noqa: SIM110  as above
            if comparisons.holds(key):
                return True
        return False


@lru_cache(maxsize=1024)
def parse_range(text: str) -> Range:
    """Understand a range. Raises BadRequest that names the part and shows what to write."""
    if not text.strip(" ") or len(text) > MAX_RANGE_LENGTH:
        raise _bad(text)
    return Range(either=tuple(_comparisons(part.strip(" ")) for part in text.split("||")))


def exact_version(text: str) -> str:
    """The version that `v1.4.2`, `=1.4.2` or `1.4.2` names; empty if the text does not name a single version."""
    version = text.strip(" ").removeprefix("=").lstrip(" ").removeprefix("v")
    return version if is_version(version) else ""


def looks_like_range(text: str) -> bool:
    """Whether `text` is meant as a range rather than as the name of a channel. `v1` is a good name for a channel."""
    return not text[:1].isalpha() or (text[:1] != "v" and _PART.fullmatch(text) is not None)


def _bad(part: str) -> BadRequest:
    return BadRequest(
        f"{part[:MAX_LENGTH]!r} is not a version or a range; write 1.4.2, ^1.4, ~1.4, 1.x, >=1.2 <2, 1.2 - 1.4 or "
        "^1.4 || ^2"
    )


def _comparisons(text: str) -> Comparisons:
    """One side of `||`; an empty one means any release, as in npm."""
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        parts = [f">={hyphen['low']}", f"<={hyphen['high']}"]
    else:
        parts = [part for part in _SPACED_SIGN.sub(r"\1", text).split(" ") if part]
    bounds: list[Bound] = []
    prereleases: set[Triple] = set()
    for part in parts:
        found = _PART.fullmatch(part)
        if found is None:
            raise _bad(text if hyphen is not None else part)
        bounds += _bounds(found, part, prereleases)
    return Comparisons(bounds=tuple(bounds), prereleases=frozenset(prereleases))


def _bounds(found: re.Match[str], part: str, prereleases: set[Triple]) -> list[Bound]:
    sign = "~" if found["sign"] == "~>" else found["sign"] or "="
    numbers = _numbers(found)
    if len(numbers) < 3:
        if found["rest"]:
            raise _bad(part)
        return _partial(sign, numbers)
    version = part.removeprefix(found["sign"] or "").removeprefix("v")
    if not is_version(version):
        raise _bad(part)
    key = precedence(version)[:_WIDTH]
    if not key[3]:
        prereleases.add(key[:3])
    if sign in _COMPARE:
        return [Bound(_COMPARE[sign], key, _WIDTH)]
    return [Bound(operator.ge, key, _WIDTH), _below(_next(sign, numbers))]


def _numbers(found: re.Match[str]) -> list[int]:
    """The numbers before the first wildcard or missing one."""
    numbers: list[int] = []
    for name in ("a", "b", "c"):
        if not (found[name] or "").isdecimal():
            break
        numbers.append(int(found[name]))
    return numbers


def _partial(sign: str, numbers: list[int]) -> list[Bound]:
    """`1`, `1.4`, `1.x`, `*` and the like; a missing or wildcard part matches any number."""
    if not numbers:
        return [Bound(operator.lt, (0, 0, 0), 3)] if sign in ("<", ">") else []
    low, above = _filled(numbers), _filled([*numbers[:-1], numbers[-1] + 1])
    if sign == ">=":
        return [_from(low)]
    if sign == ">":
        return [_from(above)]
    if sign == "<":
        return [_below(low)]
    if sign == "<=":
        return [_below(above)]
    return [_from(low), _below(_next(sign, numbers))]


def _next(sign: str, numbers: list[int]) -> Triple:
    """The first version that is too new: `^` keeps the leftmost number that is not 0, `~` keeps the minor."""
    if sign == "~":
        kept = min(len(numbers), 2)
    elif sign == "^":
        kept = next((place for place, number in enumerate(numbers, 1) if number), len(numbers))
    else:
        kept = len(numbers)
    return _filled([*numbers[: kept - 1], numbers[kept - 1] + 1])


def _filled(numbers: list[int]) -> Triple:
    first, second, third = (*numbers, 0, 0, 0)[:3]
    return first, second, third


def _from(triple: Triple) -> Bound:
    return Bound(operator.ge, triple, 3)


def _below(triple: Triple) -> Bound:
    """Prereleases of the limit itself are not below it."""
    return Bound(operator.lt, triple, 3)
