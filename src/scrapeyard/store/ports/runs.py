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
    """An attempt that ended. Carries the run as well: its row may not be written yet."""

    run: Run
    """As it was begun: worker_id, started_at and attempt set."""
    outcome: Outcome


class RunFilter(Struct, frozen=True, kw_only=True):
    """What a listing shows; None means any."""

    statuses: tuple[RunStatus, ...] | None = None
    exit_reasons: tuple[ExitReason, ...] | None = None
    scraper: str | None = None
    """An id (`shop/product`), whatever version was asked for."""
    created_after: float | None = None
    created_before: float | None = None


class RunPage(Struct, frozen=True, kw_only=True):
    """Runs, newest first, without `result`, `input` kept. `next_cursor` is None on the last page."""

    runs: tuple[Run, ...]
    next_cursor: str | None = None


class RunStore(Protocol):
    """Runs, from acceptance to their one recorded outcome."""

    async def add(self, runs: Sequence[Run]) -> None:
        """Write accepted runs, status QUEUED. A run already there (its worker was quicker) is left as it is."""

    async def begin(self, runs: Sequence[Run]) -> None:
        """Write that attempts began: status RUNNING with worker_id, started_at, lease_until. Inserts a run that is not
        there yet; leaves runs that are final already or stand at a later attempt. A requested cancel is kept."""

    async def finish(self, endings: Sequence[Ending]) -> list[bool]:
        """Record outcomes, with logs and artifacts, in one transaction. For each: True if this call recorded it.

        False means that the run is final already or has moved on to a later attempt: the outcome is dropped. A run that
        is not there yet is inserted in its final form. An outcome with `retry_after` set puts the run back to QUEUED at
        the next attempt (at the same one, if it is postponed) with `not_before`, unless a cancel was requested, which
        then ends it.
        """

    async def claim(self, run_id: str, attempt: int, worker_id: str, now: float, lease_until: float) -> bool:
        """Take a redelivered run: True if it was QUEUED at this attempt and now is RUNNING under this worker.

        False means that somebody else has it or it has ended; the caller drops the delivery.
        """

    async def renew(self, worker_id: str, run_ids: Sequence[str], lease_until: float) -> list[str]:
        """Prolong the leases of the runs this worker holds. Returns those it should stop: cancel was requested, or
        they are no longer RUNNING under this worker."""

    async def release(self, run_ids: Sequence[str], worker_id: str, now: float) -> None:
        """Give unfinished runs back: QUEUED again at the same attempt, due now. For a worker that drains."""

    async def cancel(self, run_id: str, now: float) -> Run | None:
        """Ask a run to end. QUEUED becomes CANCELLED at once; RUNNING is marked and its worker must be told; final
        runs stay. Returns the run as it then stands; None means no such run."""

    async def end(self, run_id: str, attempt: int, reason: ExitReason, error: RunError, now: float) -> bool:
        """Make an unfinished run final from outside (a lost worker). False if it ended or moved on meanwhile."""

    async def get(self, run_id: str) -> Run | None:
        """The whole run, `result` included when it is kept inline. None means no such run."""

    async def finals(self, run_ids: Sequence[str]) -> list[Run]:
        """Those of these runs that have ended, whole. For callers whose reply may have been lost."""

    async def logs(self, run_id: str) -> tuple[tuple[LogLine, ...], bool]:
        """The lines of the last recorded attempt, and whether they were cut."""

    async def page(self, where: RunFilter, cursor: str | None, limit: int) -> RunPage:
        """Newest first. Raises BadRequest when the cursor is not one of ours."""

    async def due(self, now: float, queued_before: float, limit: int) -> list[Run]:
        """QUEUED runs that should be in the queue: `not_before` has come, or none is set and they were queued before
        `queued_before`. The dispatcher compares them with what the queue still holds."""

    async def requeued(self, run_ids: Sequence[str], now: float) -> None:
        """Note that these QUEUED runs were published at `now`: sets `queued_at`, clears `not_before`."""

    async def expired(self, now: float, limit: int) -> list[Run]:
        """RUNNING runs whose lease has ended: their worker is lost."""

    async def retry(self, run_id: str, attempt: int, now: float) -> bool:
        """Put a RUNNING run whose worker was lost back to QUEUED at `attempt` + 1, due now. False if it moved on."""

    async def delete_before(self, finished_before: float, limit: int) -> list[str]:
        """Remove final runs older than the retention; returns their ids, so that their blobs can follow."""

    async def counts(self) -> dict[RunStatus, int]:
        """How many runs are not final, by status."""


class WorkerStore(Protocol):
    """Heartbeats."""

    async def beat(self, worker: WorkerInfo) -> None:
        """Write what a worker tells of itself."""

    async def workers(self, seen_after: float) -> tuple[WorkerInfo, ...]:
        """Workers seen since then, by id."""

    async def forget(self, worker_id: str) -> None:
        """A worker says goodbye."""

    async def forget_before(self, seen_before: float) -> None:
        """Drop workers that have long been silent."""


class KeyedAnswer(Struct, frozen=True, kw_only=True):
    """What an Idempotency-Key stands for."""

    key: str
    body_digest: str
    run_ids: tuple[str, ...]
    created_at: float


class IdempotencyStore(Protocol):
    """Idempotency-Keys: who came first."""

    async def remember(self, answer: KeyedAnswer, runs: Sequence[Run]) -> KeyedAnswer:
        """Claim the key and add its runs in one transaction. Returns the answer that holds the key: the given one if
        it is new, otherwise the first (nothing is then added)."""

    async def forget_keys_before(self, created_before: float) -> None:
        """Drop keys older than that."""


class ChannelMove(Struct, frozen=True, kw_only=True):
    """An operator moved a channel. `before` is empty when it was not moved until then, `after` when the move was taken
    back: the source decides."""

    scraper_id: str
    channel: str
    before: str
    after: str
    moved_at: float


class ChannelStore(Protocol):
    """Channels that operators moved. They win over what a source says."""

    async def channels(self) -> dict[str, dict[str, str]]:
        """By scraper id: channel → version. Only those that were moved and not taken back."""

    async def move_channel(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        """Point a channel to a version. None when it points there already; nothing is then noted."""

    async def clear_channel(self, scraper_id: str, channel: str, now: float) -> ChannelMove | None:
        """Take a move back: the source decides again. None when the channel was not moved."""

    async def channel_moves(self, scraper_id: str, limit: int) -> tuple[ChannelMove, ...]:
        """The moves of one scraper's channels, newest first."""


class SiteRules(Struct, frozen=True, kw_only=True):
    """How operators want one site to be treated. None: as the settings say for every site."""

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
    """Sites that operators want treated in their own way."""

    async def site_rules(self) -> tuple[SiteRules, ...]:
        """All of them, by site."""

    async def site_rules_mark(self) -> str:
        """Changes whenever any of them does, and costs little to ask."""

    async def put_site_rules(self, rules: SiteRules) -> None:
        """Write them, whole, over what was there."""

    async def remove_site_rules(self, site: str) -> bool:
        """The settings decide again. False when there were none."""


class KeptPool(Struct, frozen=True, kw_only=True):
    """A pool of proxies that an operator keeps by the API. Its `repr` does not tell the definition."""

    name: str
    definition: bytes
    """As JSON, passwords included: stored as given."""
    changed_at: float

    def __repr__(self) -> str:
        return f"KeptPool(name={self.name!r}, definition=***, changed_at={self.changed_at!r})"


class PoolStanding(Struct, frozen=True, kw_only=True):
    """How a pool does in one worker."""

    pool: str
    exits: int
    resting: int
    names: tuple[str, ...] = ()
    """Of those that rest, at most some dozens."""


class ProxyStore(Protocol):
    """Pools of proxies beside those of the settings, and how all of them do."""

    async def pools(self) -> tuple[KeptPool, ...]:
        """Every pool, by name."""

    async def put_pool(self, pool: KeptPool) -> None:
        """Write a pool, over one of the same name."""

    async def remove_pool(self, name: str) -> bool:
        """True if it was there."""

    async def put_standings(self, worker_id: str, standings: tuple[PoolStanding, ...], now: float) -> None:
        """Write how a worker's pools do, over what it last told."""

    async def standings(self, seen_after: float) -> dict[str, tuple[PoolStanding, ...]]:
        """By worker, of those that told since then."""

    async def forget_standings_before(self, seen_before: float) -> None:
        """Drop what workers told that have long been silent."""


class Meter(Struct, frozen=True, kw_only=True):
    """What one process received in one day for one site and job through one pool. Empty: no job, no pool."""

    day: str
    """In UTC: 2026-01-31."""
    writer: str
    """The process; nobody else writes this row."""
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
    """A sum of meters. What it is not broken down by is empty."""

    day: str = ""
    job_id: str = ""
    site: str = ""
    pool: str = ""
    proxy_class: str = ""
    requests: int
    failures: int
    bytes: int


class MeterStore(Protocol):
    """What was received, by day, site, job and proxy."""

    async def put_meters(self, meters: Sequence[Meter]) -> None:
        """Write numbers whole, over what the same writer wrote for the same key: doing it twice is harmless."""

    async def use(
        self, by: Sequence[UseBy], since: str, *, sites: Sequence[str] | None = None, limit: int = 1000
    ) -> tuple[Use, ...]:
        """Sums since a day, broken down by these, the most bytes first. `sites` (at most 1,000): of those alone; None:
        of all."""

    async def forget_meters_before(self, day: str) -> None:
        """Drop the days before."""


SessionChange = Callable[[bytes], bytes]
"""From what is kept (empty: nothing) to what is to be kept (empty: nothing any more). It may be called twice."""


class SessionStore(Protocol):
    """Named sessions of scrapers, as the engine packs them."""

    async def read_session(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was kept since then; empty when nothing was."""

    async def change_session(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is kept. Of two who change at once, the second is given what the first has kept."""

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
    """All of it, as the wiring hands it out. Services ask for the small port they need."""

    async def start(self) -> None:
        """Connect and bring the schema up to date. Safe to run twice, and from two processes at once."""

    async def stop(self) -> None:
        """Close the pool. May be called twice."""

    async def ping(self) -> float:
        """Round trip to the database in milliseconds."""
