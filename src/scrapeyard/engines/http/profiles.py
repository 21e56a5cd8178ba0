"""Browsers that the client can look like: TLS and headers of one and the same browser, never of two.

A profile is a family (`chrome`: its newest version here) or one version of it (`chrome131`, `safari18.5`).
"""

import re
from functools import lru_cache

from wreq import Emulation, Platform, Profile

FAMILIES = ("chrome", "edge", "firefox", "opera", "safari", "okhttp")
NONE = "none"
"""No browser: plain TLS and few headers."""

_VERSIONED = re.compile(r"([a-z]+)([0-9]+(?:_[0-9]+)*)")
_AGENTS = (
    ("edge", re.compile(r"Edg/([0-9]+)")),
    ("opera", re.compile(r"OPR/([0-9]+)")),
    ("chrome", re.compile(r"Chrome/([0-9]+)")),
    ("firefox", re.compile(r"Firefox/([0-9]+)")),
    ("safari", re.compile(r"Version/([0-9]+)(?:\.([0-9]+))?.* Safari/")),
)
_PLATFORMS = (
    ("Android", Platform.Android),
    ("iPhone", Platform.IOS),
    ("iPad", Platform.IOS),
    ("Windows", Platform.Windows),
    ("Macintosh", Platform.MacOS),
    ("Linux", Platform.Linux),
)


@lru_cache(maxsize=512)
def emulation(profile: str, user_agent: str = "") -> Emulation | None:
    """How to look; None for `none`. `user_agent` chooses the platform. Raises ValueError for an unknown profile."""
    if profile == NONE:
        return None
    platform = next((platform for word, platform in _PLATFORMS if word in user_agent), Platform.MacOS)
    return Emulation(profile=find_profile(profile), platform=platform)


def find_profile(name: str) -> Profile:
    """The newest of a family, or one version. Raises ValueError."""
    known = _known()
    wanted = name.lower().replace(".", "_")
    if wanted in FAMILIES:
        return known[max(version for version in known if version[0] == wanted)]
    if match := _VERSIONED.fullmatch(wanted):
        found = known.get((match[1], _numbers(match[2])))
        if found is not None:
            return found
    raise ValueError(f"{name[:40]!r} is unknown; use one of {', '.join(FAMILIES)}, {NONE}, or a version like chrome131")


def profile_of(user_agent: str) -> str:
    """The profile that a user agent belongs to, at the nearest version that is not newer; empty when none does."""
    for family, pattern in _AGENTS:
        match = pattern.search(user_agent)
        if match is None:
            continue
        wanted = tuple(int(part) for part in match.groups() if part)
        versions = [version for name, version in _known() if name == family]
        nearest = max((version for version in versions if version <= wanted), default=min(versions))
        return family + "_".join(str(part) for part in nearest)
    return ""


@lru_cache(maxsize=1)
def _known() -> dict[tuple[str, tuple[int, ...]], Profile]:
    found = ((_VERSIONED.fullmatch(name.lower()), name) for name in dir(Profile))
    return {(match[1], _numbers(match[2])): getattr(Profile, name) for match, name in found if match}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("_"))
