"""The store: the truth about runs, workers, keys, moved channels and sites; jobs, schedules and webhooks have others.

Several small ports, one implementation on SQLite and PostgreSQL. Every method raises StoreUnavailable when the
database does not answer; nothing is then half done. Times are Unix seconds (float), given by the caller.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from scrapeyard.model import ExitReason, LogLine, Outcome, Run, RunError, RunStatus, WorkerInfo
from scrapeyard.model.fetching import RobotsMode
from scrapeyard.store.ports.jobs import BatchStore, ItemStore, JobStore
from scrapeyard.store.ports.schedules import ScheduleStore
from scrapeyard.store.ports.webhooks import WebhookStore


class Ending(Struct, frozen=True, kw_only=True):
    """An attempt that ended. Includes the run, whose row may not be written yet."""

    run: Run
    """The run as started: worker_id, started_at and attempt set."""
    outcome: Outcome


class RunFilter(Struct, frozen=True, kw_only=True):
    """What a listing shows; None means any."""

    statuses: tuple[RunStatus, ...] | None = None
    exit_reasons: tuple[ExitReason, ...] | None = None
    scraper: str | None = None
    """An id (`shop/product`), whatever version was requested."""
    created_after: float | None = None
    created_before: float | None = None


class RunPage(Struct, frozen=True, kw_only=True):
    """Runs, newest first, without `result` but with `input`. `next_cursor` is None on the last page."""

    runs: tuple[Run, ...]
    next_cursor: str | None = None


class RunStore(Protocol):
    """Runs, from acceptance to their one recorded outcome."""

    async def add(self, runs: Sequence[Run]) -> None:
        """Write accepted runs as QUEUED. An existing run (its worker was faster) is left as it is."""

    async def begin(self, runs: Sequence[Run]) -> None:
        """Write that attempts began: status RUNNING with worker_id, started_at, lease_until. Inserts a run that does
        not exist yet; leaves runs that are final or at a later attempt. A requested cancel is preserved."""

    async def finish(self, endings: Sequence[Ending]) -> list[bool]:
        """Record outcomes, with logs and artifacts, in one transaction. For each: True if this call recorded it.

        False if the run is already final or at a later attempt: the outcome is dropped. A run that does not exist yet
        is inserted in its final form. An outcome with `retry_after` puts the run back to QUEUED at the next attempt (at
        the same one if postponed) with `not_before`, unless a cancel was requested, which then ends it.
        """

    async def claim(self, run_id: str, attempt: int, worker_id: str, now: float, lease_until: float) -> bool:
        """Claim a redelivered run: True if it was QUEUED at this attempt and now is RUNNING under this worker.

        False if another worker has it or it has ended; the caller drops the delivery.
        """

    async def renew(self, worker_id: str, run_ids: Sequence[str], lease_until: float) -> list[str]:
        """Renew the leases of this worker's runs. Returns those to stop: cancel was requested, or they are no longer
        RUNNING under this worker."""

    async def release(self, run_ids: Sequence[str], worker_id: str, now: float) -> None:
        """Give unfinished runs back: QUEUED again at the same attempt, due now. For a worker that drains."""

    async def cancel(self, run_id: str, now: float) -> Run | None:
        """Cancel a run. QUEUED becomes CANCELLED at once; RUNNING is marked and its worker must be signalled; final
        runs stay. Returns the resulting run; None if there is no such run."""

    async def end(self, run_id: str, attempt: int, reason: ExitReason, error: RunError, now: float) -> bool:
        """Make an unfinished run final from outside (a lost worker). False if it ended or moved on meanwhile."""

    async def get(self, run_id: str) -> Run | None:
        """The whole run, `result` included if it is stored inline. None if there is no such run."""

    async def finals(self, run_ids: Sequence[str]) -> list[Run]:
        """The ended ones of these runs, whole. For callers whose reply may have been lost."""

    async def logs(self, run_id: str) -> tuple[tuple[LogLine, ...], bool]:
        """The lines of the last recorded attempt, and whether they were cut."""

    async def page(self, where: RunFilter, cursor: str | None, limit: int) -> RunPage:
        """Newest first. Raises BadRequest for an invalid cursor."""

    async def due(self, now: float, queued_before: float, limit: int) -> list[Run]:
        """QUEUED runs that should be in the queue: `not_before` has come, or none is set and they were queued before
        `queued_before`. The dispatcher compares them with the queue."""

    async def requeued(self, run_ids: Sequence[str], now: float) -> None:
        """Record that these QUEUED runs were published at `now`: sets `queued_at`, clears `not_before`."""

    async def expired(self, now: float, limit: int) -> list[Run]:
        """RUNNING runs whose lease has ended: their worker is lost."""

    async def retry(self, run_id: str, attempt: int, now: float) -> bool:
        """Put a RUNNING run whose worker was lost back to QUEUED at `attempt` + 1, due now. False if it moved on."""

    async def delete_before(self, finished_before: float, limit: int) -> list[str]:
        """Delete final runs past the retention; returns their ids, so that their blobs can be deleted too."""

    async def counts(self) -> dict[RunStatus, int]:
        """How many runs are not final, by status."""


class WorkerStore(Protocol):
    """Heartbeats."""

    async def beat(self, worker: WorkerInfo) -> None:
        """Write a worker's heartbeat."""

    async def workers(self, seen_after: float) -> tuple[WorkerInfo, ...]:
        """Workers seen since `seen_after`, by id."""

    async def forget(self, worker_id: str) -> None:
        """Remove a worker that shut down."""

    async def forget_before(self, seen_before: float) -> None:
        """Remove workers that have been silent for long."""


class KeyedAnswer(Struct, frozen=True, kw_only=True):
    """The answer stored for an Idempotency-Key."""

    key: str
    body_digest: str
    run_ids: tuple[str, ...]
    created_at: float


class IdempotencyStore(Protocol):
    """Idempotency-Keys."""

    async def remember(self, answer: KeyedAnswer, runs: Sequence[Run]) -> KeyedAnswer:
        """Claim the key and add its runs in one transaction. Returns the answer that holds the key: the given one if
        the key is new, otherwise the first one, and nothing is added."""

    async def forget_keys_before(self, created_before: float) -> None:
        """Drop older keys."""


class ChannelMove(Struct, frozen=True, kw_only=True):
    """A move of a channel by an operator. `before` is empty if it was not moved until then, `after` if the move was
    undone and the source decides."""

    scraper_id: str
    channel: str
    before: str
    after: str
    moved_at: float


class ChannelStore(Protocol):
    """Channels moved by operators. They override the source."""

    async def channels(self) -> dict[str, dict[str, str]]:
        """By scraper id: channel → version. Only channels that are currently moved."""

    async def move_channel(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        """Point a channel to a version. None if it already points there; no move is then recorded."""

    async def clear_channel(self, scraper_id: str, channel: str, now: float) -> ChannelMove | None:
        """Undo a move, so that the source decides again. None if the channel was not moved."""

    async def channel_moves(self, scraper_id: str, limit: int) -> tuple[ChannelMove, ...]:
        """The moves of one scraper's channels, newest first."""


class SiteRules(Struct, frozen=True, kw_only=True):
    """Rules of operators for one site. None if the setting for every site applies."""

    site: str
    rate: float | None = None
    """Requests a second; 0: no limit."""
    burst: int | None = None
    concurrency: int | None = None
    """Requests in flight; 0: any number."""
    adapt: bool | None = None
    min_rate: float | None = None
    breaker_failures: int | None = None
    breaker_ratio: float | None = None
    breaker_seconds: float | None = None
    robots: RobotsMode | None = None
    note: str = ""
    updated_at: float = 0.0


class SiteStore(Protocol):
    """Rules of operators for sites."""

    async def site_rules(self) -> tuple[SiteRules, ...]:
        """All rules, by site."""

    async def site_rules_mark(self) -> str:
        """A mark that changes whenever any rule does; cheap to read."""

    async def put_site_rules(self, rules: SiteRules) -> None:
        """Write the rules of a site, replacing existing ones."""

    async def remove_site_rules(self, site: str) -> bool:
        """Remove the rules of a site, so that the settings apply. False if there were none."""


class KeptPool(Struct, frozen=True, kw_only=True):
    """A pool of proxies created through the API. Its `repr` hides the definition."""

    name: str
    definition: bytes
    """As JSON, passwords included: stored as given."""
    changed_at: float

    def __repr__(self) -> str:
        return f"KeptPool(name={self.name!r}, definition=***, changed_at={self.changed_at!r})"


class PoolStanding(Struct, frozen=True, kw_only=True):
    """State of a pool in one worker."""

    pool: str
    exits: int
    resting: int
    names: tuple[str, ...] = ()
    """Names of resting proxies, at most some dozens."""


class ProxyStore(Protocol):
    """Pools of proxies besides those of the settings, and the state of all."""

    async def pools(self) -> tuple[KeptPool, ...]:
        """Every pool, by name."""

    async def put_pool(self, pool: KeptPool) -> None:
        """Write a pool, replacing one of the same name."""

    async def remove_pool(self, name: str) -> bool:
        """Remove a pool; True if it existed."""

    async def put_standings(self, worker_id: str, standings: tuple[PoolStanding, ...], now: float) -> None:
        """Write the state of a worker's pools, replacing its last report."""

    async def standings(self, seen_after: float) -> dict[str, tuple[PoolStanding, ...]]:
        """Reports since then, by worker."""

    async def forget_standings_before(self, seen_before: float) -> None:
        """Drop reports of workers that have been silent for long."""


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


UseBy = Literal["day", "job_id", "site", "pool", "proxy_class"]


class Use(Struct, frozen=True, kw_only=True):
    """A sum of meters. Fields it is not grouped by are empty."""

    day: str = ""
    job_id: str = ""
    site: str = ""
    pool: str = ""
    proxy_class: str = ""
    requests: int
    failures: int
    bytes: int


class MeterStore(Protocol):
    """Traffic by day, site, job and proxy."""

    async def put_meters(self, meters: Sequence[Meter]) -> None:
        """Write totals, replacing what the same writer wrote for the same key: repeating it is harmless."""

    async def use(
        self, by: Sequence[UseBy], since: str, *, sites: Sequence[str] | None = None, limit: int = 1000
    ) -> tuple[Use, ...]:
        """Sums since a day, grouped by these, the most bytes first. `sites` (at most 1,000) limits it to those; None
        for all."""

    async def forget_meters_before(self, day: str) -> None:
        """Drop earlier days."""


SessionChange = Callable[[bytes], bytes]
"""From the stored value (empty: none) to the new one (empty: delete it). It may be called twice."""


class SessionStore(Protocol):
    """Named sessions of scrapers, as encoded by the engine."""

    async def read_session(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was stored since then; empty if nothing."""

    async def change_session(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is stored. Of two concurrent changes, the second receives what the first stored."""

    async def forget_sessions_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""


class LeaderStore(Protocol):
    """One leader among dispatchers."""

    async def lead(self, role: str, holder: str, now: float, until: float) -> bool:
        """Become or stay leader until then. True if `holder` leads now."""

    async def resign(self, role: str, holder: str) -> None:
        """Let another lead at once."""


class Store(
    RunStore,
    WorkerStore,
    IdempotencyStore,
    ChannelStore,
    SiteStore,
    ProxyStore,
    MeterStore,
    SessionStore,
    LeaderStore,
    JobStore,
    BatchStore,
    ItemStore,
    ScheduleStore,
    WebhookStore,
    Protocol,
):
    """All ports, as wired. Services require only the small port they need."""

    async def start(self) -> None:
        """Connect and migrate the schema. Safe to run twice, and from two processes at once."""

    async def stop(self) -> None:
        """Close the pool. May be called twice."""

    async def ping(self) -> float:
        """Round trip to the database in milliseconds."""
