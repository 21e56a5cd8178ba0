"""A scraper as the platform knows it: its identity, how it is called and its limits."""

import re
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from scrapeyard.model.fetching import FetchPolicy

SCRAPER_ID = re.compile(r"^[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}$")


class ScraperRef(Struct, frozen=True, kw_only=True):
    """One exact version of one scraper. `digest` is empty for built-in scrapers."""

    id: str
    version: str
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.id}@{self.version}"


def pinned_ref(name: str, digest: str) -> ScraperRef | None:
    """The reference of a pinned `site/task@1.4.2` and its digest; None if there is no digest."""
    scraper_id, _, version = name.partition("@")
    return ScraperRef(id=scraper_id, version=version, digest=digest) if digest else None


class Limits(Struct, frozen=True, kw_only=True):
    """What one run may use before it is ended from outside."""

    wall_seconds: float = 30.0
    cpu_seconds: float = 10.0
    memory_mb: int = 512
    disk_mb: int = 64
    output_mb: float = 10.0
    """Size of the result and all records the run sends, as JSON."""
    log_kb: int = 256
    """stdout, stderr and ctx.log together; the rest is cut, with a note."""
    artifact_mb: float = 50.0
    threads: int = 32
    fetches: int = 1000

    def within(self, ceiling: "Limits") -> "Limits":
        """These limits, each capped by `ceiling`."""
        return Limits(**{name: min(getattr(self, name), getattr(ceiling, name)) for name in self.__struct_fields__})


class Defaults(Struct, frozen=True, kw_only=True):
    """Defaults for calls: the manifest's `[policy]`. None and empty if the platform's own default applies."""

    retries: int | None = None
    timeout_seconds: float | None = None
    priority: str = ""
    fetching: FetchPolicy = FetchPolicy()
    """Its keys are in `[policy]` beside the others."""


class Scraper(Struct, frozen=True, kw_only=True):
    """One version of a scraper, parsed, checked and ready to run."""

    ref: ScraperRef
    folder: Path | None
    """An immutable copy of the scraper's files; None for a built-in."""
    entry: str = "scraper.py:run"
    name: str = ""
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    limits: Limits = Limits()
    allowed_hosts: tuple[str, ...] = ()
    """Host patterns a fetch may reach (`shop.example`, `*.shop.example`); empty means any."""
    network: str = "engines"
    """`engines`, or `direct` where the operator grants it."""
    lane: str = "default"
    nan: str = "error"
    """What becomes of NaN and infinity in its results: `null`, or `error`."""
    isolation: str = "run"
    """`run`: each call has a child of its own; `warm`: a child serves one call after another."""
    config: dict[str, Any] = field(default_factory=dict)
    """A value `{"secret": "name"}` is replaced by that secret in the worker."""
    policy: Defaults = Defaults()
    requirements: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    """Capabilities the script requires of a worker, such as `http` or `browser`."""

    @property
    def is_builtin(self) -> bool:
        """Whether this is our own code, which runs in the worker without a child."""
        return self.folder is None
