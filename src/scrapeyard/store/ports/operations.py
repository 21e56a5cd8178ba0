"""What the processes write down for themselves: heartbeats, leaders, sessions of scrapers, traffic,
learned patterns, drift.

Every method raises StoreUnavailable when the database does not answer; nothing is then half done. Times are Unix
seconds (float), given by the caller.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from scrapeyard.model import WorkerInfo
from scrapeyard.model.drift import DriftSketch, Sight
from scrapeyard.model.worker import DrainWish


class WorkerStore(Protocol):
    """Heartbeats."""

    async def beat(self, worker: WorkerInfo) -> DrainWish:
        """Write a worker's heartbeat. Returns what was asked of it; its `drain` counts if it was not known."""

    async def set_drain(self, worker_id: str, wish: DrainWish) -> bool:
        """Ask a worker to drain, or no longer; its next heartbeat tells it. False if there is no such worker."""

    async def alive(self, seen_after: float) -> tuple[WorkerInfo, ...]:
        """Workers seen since `seen_after`, by id."""

    async def forget(self, worker_id: str) -> None:
        """Remove a worker that shut down."""

    async def forget_before(self, seen_before: float) -> None:
        """Remove workers that have been silent for long."""


class LoadSample(Struct, frozen=True, kw_only=True):
    """How busy the cluster was in one minute."""

    at: float
    """Its beginning."""
    busy: int
    slots: int
    workers: int
    waiting: int
    """Deliveries in the queue."""
    lanes: dict[str, float] = {}
    """Seconds that the oldest of them has waited, by lane; at most 50 lanes."""
    runs: int = 0
    """Runs that are not final."""
    items: int = 0
    """Items of jobs that are queued or run."""
    ended: int | None = None
    """Runs and items that ended since the sample before; None: unknown, since another process led."""


class LoadStore(Protocol):
    """One sample a minute, written by the leader."""

    async def put(self, sample: LoadSample) -> None:
        """Write a sample; does nothing if the minute has one."""

    async def since(self, at: float) -> tuple[LoadSample, ...]:
        """Samples from then on, the oldest first."""

    async def forget_before(self, at: float) -> None:
        """Drop earlier samples."""


class LeaderStore(Protocol):
    """One leader for each role."""

    async def claim(self, role: str, holder: str, now: float, until: float) -> bool:
        """Become or stay leader until then. True if `holder` leads now."""

    async def resign(self, role: str, holder: str) -> None:
        """Let another lead at once."""


SessionChange = Callable[[bytes], bytes]
"""From the stored value (empty: none) to the new one (empty: delete it). It may be called twice."""


MAX_SESSIONS = 1000
"""Maximum sessions of one scraper; those unchanged for longest are dropped."""


def session_place(scraper_id: str, name: str) -> str:
    """What the seal of a session is bound to."""
    return f"sessions/{scraper_id}/{name}"


class SessionStore(Protocol):
    """Named sessions of scrapers, as encoded by the engine."""

    async def read(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was stored since then; empty if nothing."""

    async def change(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is stored. Of two concurrent changes, the second receives what the first stored."""

    async def forget_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""


StateCheck = Callable[[bytes | None], bool]
"""Whether the present value may be replaced. It may be called twice."""
MAX_STATE_KEYS = 1000
"""Maximum keys in the state of one scraper."""


class StateEntry(Struct, frozen=True, kw_only=True):
    """One value of a scraper's state, without the value."""

    key: str
    bytes: int
    changed_at: float


class StateStore(Protocol):
    """Small values that scrapers keep between runs, as JSON. All versions of a scraper share them."""

    async def read(self, scraper_id: str, key: str) -> bytes | None:
        """The value; None if there is none."""

    async def change(
        self, scraper_id: str, key: str, value: bytes | None, now: float, *, only_if: StateCheck | None = None
    ) -> bool:
        """Write a value, or remove the key if it is None. `only_if` gets the present value, or None, and decides; of
        two concurrent changes, the second sees what the first wrote. False if nothing was changed. Raises BadRequest if
        the scraper has MAX_STATE_KEYS other keys."""

    async def entries(self, scraper_id: str) -> tuple[StateEntry, ...]:
        """Every key of a scraper, in order."""

    async def clear(self, scraper_id: str) -> int:
        """Remove the whole state of a scraper. Returns how many keys it had."""


class Meter(Struct, frozen=True, kw_only=True):
    """Traffic of one process in one day for one site and job through one pool. Empty: no job, no pool."""

    day: str
    """In UTC: 2026-01-31."""
    writer: str
    """The process; no other writes this row."""
    job_id: str
    site: str
    pool: str
    proxy_class: str
    requests: int
    failures: int
    """Requests without an answer."""
    bytes: int
    client: str = ""
    scraper: str = ""
    runs: int = 0
    """Runs and items that ended; in rows without a site."""
    browser_ms: int = 0
    ai_tokens: int = 0
    """Read and written by models."""
    ai_millionths: int = 0
    """What they cost, in millionths of the currency of their prices."""


UseBy = Literal["day", "job_id", "site", "pool", "proxy_class", "client", "scraper"]


class Use(Struct, frozen=True, kw_only=True):
    """A sum of meters. Fields it is not grouped by are empty."""

    day: str = ""
    job_id: str = ""
    site: str = ""
    pool: str = ""
    proxy_class: str = ""
    client: str = ""
    scraper: str = ""
    requests: int
    failures: int
    bytes: int
    runs: int = 0
    browser_ms: int = 0
    ai_tokens: int = 0
    ai_millionths: int = 0


class UseFilter(Struct, frozen=True, kw_only=True):
    """Which meters to sum; None for any."""

    until: str | None = None
    """The last day."""
    client: str | None = None
    scraper: str | None = None
    sites: tuple[str, ...] | None = None
    """At most 1,000."""


class MeterStore(Protocol):
    """Traffic by day, site, job and proxy."""

    async def put(self, meters: Sequence[Meter]) -> None:
        """Write totals, replacing what the same writer wrote for the same key: repeating it is harmless."""

    async def use(
        self,
        by: Sequence[UseBy],
        since: str,
        *,
        sites: Sequence[str] | None = None,
        where: UseFilter | None = None,
        limit: int = 1000,
    ) -> tuple[Use, ...]:
        """Sums since a day, grouped by these, the most bytes first. `sites` (at most 1,000) limits it to those; None
        for all."""

    async def forget_before(self, day: str) -> None:
        """Drop earlier days."""


PatternStatus = Literal["learning", "ready", "stale"]
PATTERN_VERSIONS = 20
"""Versions of a pattern that are kept."""


class AnsweredPage(Struct, frozen=True, kw_only=True):
    """A page that taught a pattern."""

    url: str
    html: str
    values: dict[str, Any]
    """As the page has them: texts, numbers, links; null for a field that it is without."""
    by: Literal["person", "model", "structured"] = "model"
    """Who answered it."""


class PatternHealth(Struct, frozen=True, kw_only=True):
    """How a pattern is doing, since its version."""

    pages: int = 0
    """That it read."""
    asked: int = 0
    """Those of them for which a model was asked as well."""
    filled: dict[str, int] = field(default_factory=dict)
    """By field: pages where it was found."""
    used_at: float = 0.0

    def plus(self, more: "PatternHealth") -> "PatternHealth":
        """Both together."""
        names = {**self.filled, **more.filled}
        return PatternHealth(
            pages=self.pages + more.pages,
            asked=self.asked + more.asked,
            filled={name: self.filled.get(name, 0) + more.filled.get(name, 0) for name in names},
            used_at=max(self.used_at, more.used_at),
        )


class StoredPattern(Struct, frozen=True, kw_only=True):
    """How the fields of one kind of page of one site are read."""

    id: str
    site: str
    client: str
    """Whose pages taught it; others do not use it."""
    key: str
    """Digest of the wanted fields."""
    fields: tuple[str, ...]
    """Their names."""
    status: PatternStatus
    version: int = 0
    """0: nothing is learned yet."""
    pattern: str = ""
    """JSON, as `scrapeyard_sdk.extract.patterns` has it."""
    marks: tuple[int, ...] = ()
    """Of the template."""
    absent: tuple[str, ...] = ()
    """Fields that pages may be without."""
    edited: bool = False
    """Whether a person wrote the rules: they stay until the pattern is stale."""
    examples: tuple[AnsweredPage, ...] = ()
    """Empty in lists: they are large."""
    taught: int = 0
    """How many examples there are."""
    checked: int = 0
    """Pages without answers on which its rules were compared."""
    health: PatternHealth = PatternHealth()
    created_at: float
    changed_at: float
    revision: int = 0
    """Counts changes: who changes a pattern must have seen the last one."""


class PatternVersion(Struct, frozen=True, kw_only=True):
    """One version of a pattern."""

    version: int
    pattern: str
    origin: str
    """`learned`, or `edited` by a person."""
    made_at: float


class PatternStore(Protocol):
    """Learned patterns."""

    async def known(self, site: str, client: str, key: str) -> tuple[StoredPattern, ...]:
        """Those for the same fields of the same site, without examples."""

    async def listed(
        self, *, site: str | None = None, client: str | None = None, after: str = "", limit: int = 100
    ) -> tuple[StoredPattern, ...]:
        """By id, without examples. None: any."""

    async def get(self, pattern_id: str) -> StoredPattern | None:
        """With its examples; None if there is none."""

    async def put(self, pattern: StoredPattern, origin: str = "learned") -> StoredPattern | None:
        """Write a pattern whose `revision` is the one last seen, 0 for a new one. A new version is kept among its
        versions. Returns it as written; None if another was faster: read it again."""

    async def versions(self, pattern_id: str) -> tuple[PatternVersion, ...]:
        """Newest first."""

    async def count(self, pattern_id: str, version: int, more: PatternHealth) -> None:
        """Add to the health of this version; nothing happens if there is a newer one."""

    async def remove(self, pattern_id: str) -> bool:
        """Remove a pattern with its examples and versions. False if there was none."""


class Watched(Struct, frozen=True, kw_only=True):
    """What is known of the fields of one scraper, or of one learned pattern, on one site."""

    subject: str
    """The scraper's id, or that of the pattern."""
    site: str
    sketch: DriftSketch
    changed_at: float


class DriftStore(Protocol):
    """Sketches of fields."""

    async def observe(
        self, subject: str, site: str, version: str, pages: Sequence[Mapping[str, Sight]], at: float
    ) -> tuple[str, ...]:
        """Add pages in order; the fields that have begun to drift with them. Another version begins anew."""

    async def watched(self, subject: str | None = None, *, drifted: bool = False) -> tuple[Watched, ...]:
        """By subject and site, at most `MOST_WATCHED`. None: of all; with `drifted`, those where a field drifts."""

    async def forget(self, subject: str) -> None:
        """Remove what is known: the next pages begin anew."""

    async def forget_before(self, changed_before: float) -> None:
        """Remove what no page was added to since."""


MOST_WATCHED = 1000
"""Sketches of one answer, and sites of one subject that are watched."""
