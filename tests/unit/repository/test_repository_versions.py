"""Semantic versions: which are good, and which is newer."""

import random

import pytest

from scrapeyard.repository.manifest.semver import is_prerelease, is_version, precedence

IN_ORDER = [
    "0.0.1",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.0+build",
    "1.2.0",
    "1.10.0",
    "2.0.0-0",
    "2.0.0",
]


def test_newer_sorts_later() -> None:
    shuffled = IN_ORDER.copy()
    random.Random(7).shuffle(shuffled)
    assert sorted(shuffled, key=precedence) == IN_ORDER


@pytest.mark.parametrize("text", [*IN_ORDER, "1.0.0-x-y.1+z.-"])
def test_good_versions(text: str) -> None:
    assert is_version(text)


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.0", "v1.0.0", "1.0.01", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0\n", "1.0.0-" + "a" * 60, "\u0661.0.0"],
)
def test_bad_versions(text: str) -> None:
    assert not is_version(text)
    with pytest.raises(ValueError, match="semantic version"):
        precedence(text if len(text) < 64 else "x")


def test_a_prerelease_is_told_from_build_metadata() -> None:
    assert is_prerelease("1.0.0-rc.1")
    assert not is_prerelease("1.0.0+a-b")
