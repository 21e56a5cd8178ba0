"""Runs, from acceptance to their one recorded outcome; and the Idempotency-Keys they are created under.

Every method raises StoreUnavailable when the database does not answer. Each run is then written whole or not at all; of
a call for many, some may be written: repeat it. It is StoreUncertain if all may be done: the database went away after
it was asked to write. Times are Unix seconds (float), given by the caller.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.model import ExitReason, LogLine, Outcome, Run, RunError, RunProgress, RunStatus, RunWait


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
    owner: str | None = None
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
        """Record outcomes, each with its logs and artifacts. For each: True if this call recorded it.

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
        RUNNING under this worker. Do not name runs whose `claim` has not returned."""

    async def note_progress(
        self, run_id: str, attempt: int, progress: RunProgress | None, waiting: RunWait | None = None
    ) -> bool:
        """Write how far a RUNNING run is, if it tells, and what it waits for. False if it is not running at this
        attempt."""

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

    async def waiting(self) -> dict[tuple[str, str], int]:
        """How many QUEUED runs wait for a worker, by lane and owner. Those that wait for a later attempt do not
        count."""

    async def due(self, now: float, queued_before: float, limit: int) -> list[Run]:
        """QUEUED runs that should be in the queue: `not_before` has come, or none is set and they were queued before
        `queued_before`. The dispatcher compares them with the queue."""

    async def requeued(self, run_ids: Sequence[str], now: float) -> None:
        """Record that these QUEUED runs were published at `now`: sets `queued_at`, clears `not_before`."""

    async def expired(self, now: float, limit: int) -> list[Run]:
        """RUNNING runs whose lease has ended: their worker is lost."""

    async def retry(self, run_id: str, attempt: int, now: float) -> bool:
        """Put a RUNNING run whose worker was lost back to QUEUED at `attempt` + 1, due now. False if it moved on."""

    async def counts(self) -> dict[RunStatus, int]:
        """How many runs are not final, by status."""

    async def unfinished(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that have not ended."""

    async def ended_since(self, finished_after: float) -> dict[tuple[str, RunStatus], int]:
        """How many runs have ended since then, by id of the scraper and status."""


class KeyedAnswer(Struct, frozen=True, kw_only=True):
    """The answer stored for an Idempotency-Key."""

    key: str
    body_digest: str
    run_ids: tuple[str, ...]
    created_at: float


class KeyStore(Protocol):
    """Idempotency-Keys."""

    async def remember(self, answer: KeyedAnswer, runs: Sequence[Run]) -> KeyedAnswer:
        """Claim the key and add its runs in one transaction. Returns the answer that holds the key: the given one if
        the key is new, otherwise the first one, and nothing is added."""

    async def forget_before(self, created_before: float) -> None:
        """Drop older keys."""
