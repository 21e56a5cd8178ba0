"""The installed Python packages of a scraper: where they are, and how far their build is."""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct


class EnvironmentStatus(StrEnum):
    """How far a scraper's environment has come on one machine.

        waiting ──► building ──► ready
                        │
                        └──────► failed ──► waiting   (tried again later)

    `none`: the scraper requires nothing and shares the base. A ready environment that made room for others waits again.
    """

    NONE = "none"
    WAITING = "waiting"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


class EnvironmentState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a scraper's environment."""

    status: EnvironmentStatus
    key: str = ""
    """Names the environment; empty until its requirements are resolved."""
    problem: str = ""
    """Why it could not be built."""
    size_bytes: int = 0
    built_at: float | None = None
    """Unix seconds."""


class Environment(Struct, frozen=True, kw_only=True):
    """A built environment. Its files never change, and stay while `marker` is locked (shared)."""

    key: str
    packages: Path
    """Added to a script's `sys.path`, inside its sandbox."""
    marker: Path
    """Written last: if it exists, the environment is complete."""
