"""Semantic versions, strictly as semver.org 2.0 writes them."""

import re
from functools import lru_cache
from typing import Any

_NUMBER = r"(0|[1-9]\d{0,8})"
_LABEL = r"(?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-(?P<pre>{_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
MAX_LENGTH = 64


def is_version(text: str) -> bool:
    """Whether `text` is a version such as `1.4.2` or `2.0.0-rc.1`; no `v`, no missing part."""
    return len(text) <= MAX_LENGTH and _VERSION.fullmatch(text) is not None


def is_prerelease(version: str) -> bool:
    """Whether a good version is one before a release, such as `2.0.0-rc.1`."""
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
