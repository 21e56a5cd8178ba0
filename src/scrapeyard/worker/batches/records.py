"""Writes to the store which items of a batch began and how they ended: in parts, in order, each once, with retries
while the store is away."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from scrapeyard.errors import Unavailable
from scrapeyard.model import ExitReason, RunError
from scrapeyard.model.job import Batch, ItemOutcome
from scrapeyard.store.ports.jobs import BatchStore
from scrapeyard.telemetry.events import get_log

log = get_log("worker")
EVERY_SECONDS = 0.5
"""Maximum seconds that an outcome, or the start of an item, waits for others to be written with."""
PART = 250
"""Maximum outcomes in one write. More would block the event loop while rows are built."""
MOST_FOUND = 10_000
"""Maximum new items in one write, unless one outcome brings more."""
MOST_WAITING = 1000
MOST_BYTES = 8 * 1024 * 1024
"""Maximum outcomes that wait for the store; beyond it, `add` waits too."""
_OUTCOME_COST = 500
_FIRST_REST = 0.1
_LONGEST_REST = 3.0


class BatchRecords:
    """Serves one taken batch. Calls `on_refused` once, if the store says that this worker no longer holds it, and
    `on_written` with outcomes that were written, and from when to when that took."""

    def __init__(
        self,
        batches: BatchStore,
        batch: Batch,
        lease_until: float,
        on_refused: Callable[[], object] = lambda: None,
        on_written: Callable[[Sequence[ItemOutcome], float, float], None] = lambda *_: None,
    ) -> None:
        self.lease_until = lease_until
        self.left = batch.left
        """Items without a record, as far as this worker knows."""
        self._begun = 0
        self._noted = batch.begun or 0
        """How many items have begun, and how many the store knows of."""
        self.refused = False
        self._batches = batches
        self._batch = batch
        self._part = batch.part
        self._on_refused = on_refused
        self._on_written = on_written
        self._waiting: list[ItemOutcome] = []
        self._bytes = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._written = asyncio.Event()
        """Set, and replaced, after each write."""
        self._ending = False

    async def begin(self) -> bool:
        """Call it before an item begins, in the order of the batch. The store learns of it with the next write. If the
        batch was lost before, waits for that write: should this item kill its worker, it must be charged for it. False
        if this worker no longer holds the batch: the item must not begin."""
        self._begun += 1
        mine = self._begun
        while self._batch.lost_before and self._noted < mine and not self.refused:
            self._wake.set()
            await self._written.wait()
        return not self.refused

    async def add(self, outcome: ItemOutcome) -> None:
        """Queue an outcome; waits only if too many are queued. Drops it after a refusal."""
        if self.refused:
            return
        self._waiting.append(outcome)
        self._bytes += _weight(outcome)
        if len(self._waiting) >= PART:
            self._wake.set()
        if len(self._waiting) >= MOST_WAITING or self._bytes >= MOST_BYTES:
            self._wake.set()
            self._room.clear()
            await self._room.wait()

    async def run(self) -> None:
        """Record outcomes until `end` was called and all are recorded, or can never be, which is logged.

        Must not be cancelled: it would be unknown whether the current part was written.
        """
        try:
            while not (self._ending and (self.refused or not self._waiting)):
                woken = await self._woken()
                if not self._ending:
                    self._wake.clear()
                    if self._batch.lost_before or not woken:
                        await self._note_begun()
                await self._flush()
        except BaseException as error:
            self._give_up(len(self._waiting), repr(error))
            raise

    def end(self) -> None:
        """Nothing more is added."""
        self._ending = True
        self._wake.set()

    async def _woken(self) -> bool:
        """False if nobody called for a write within EVERY_SECONDS."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY_SECONDS):
                return await self._wake.wait()
        return False

    async def _note_begun(self) -> None:
        """Tell the store which items have begun, if no outcome that waits takes it along."""
        if not self._waiting and self._noted < self._begun and self.left:
            await self._write([])

    async def _flush(self) -> None:
        while self._waiting and not self.refused:
            part = self._next_part()
            await self._record(part)
            del self._waiting[: len(part)]
            self._bytes -= sum(map(_weight, part))
            self._room.set()

    def _next_part(self) -> list[ItemOutcome]:
        """Outcomes for one write: fewer if they bring many new items."""
        part: list[ItemOutcome] = []
        found = 0
        for outcome in self._waiting[:PART]:
            found += len(outcome.found)
            if part and found > MOST_FOUND:
                break
            part.append(outcome)
        return part

    async def _record(self, part: Sequence[ItemOutcome]) -> None:
        """Record a part. Finds an outcome that the database refuses by bisection and records an internal error."""
        try:
            await self._write(part)
        except Exception as error:  # noqa: BLE001 - one outcome that cannot be written must not take the others along
            if len(part) > 1:
                middle = len(part) // 2
                await self._record(part[:middle])
                await self._record(part[middle:])
                return
            log.error("batch.outcome_unstorable", job=self._batch.job_id, item=part[0].seq, error=repr(error)[:500])
            await self._write([_unstorable(part[0], error)])

    async def _write(self, part: Sequence[ItemOutcome]) -> None:
        if self.refused:
            return
        began = time.time()
        rest, asked_before, begun = _FIRST_REST, False, max(self._begun, self._noted)
        while True:
            try:
                recorded = await self._batches.record(
                    self._batch.id, self._batch.worker_id, self._part, part, time.time(), begun=begun
                )
                break
            except Unavailable as error:
                asked_before = True
                if time.time() + rest >= self.lease_until:
                    self._give_up(len(part), error.message)
                    return
                log.warning("batch.record_late", batch=self._batch.id, error=error.message)
            await asyncio.sleep(rest)
            rest = min(rest * 2, _LONGEST_REST)
        if recorded is None and not asked_before:
            self._give_up(len(part), "the batch is another's by now")
            return
        self._on_written(part, began, time.time())
        self._part += 1
        self._noted = begun
        self._pulse()
        self.left = recorded.left if recorded is not None else self.left - len(part)

    def _give_up(self, count: int, why: str) -> None:
        """Drop these outcomes; the items are handed out again when the lease expires."""
        waiting = max(count, len(self._waiting))
        log.warning("batch.outcomes_void", batch=self._batch.id, job=self._batch.job_id, count=waiting, why=why)
        self.refused = True
        self._room.set()
        self._pulse()
        self._on_refused()

    def _pulse(self) -> None:
        """Wake those that wait for a write."""
        self._written.set()
        self._written = asyncio.Event()


def _weight(outcome: ItemOutcome) -> int:
    found = sum(len(bytes(item.input)) for item in outcome.found) if outcome.found else 0
    return _OUTCOME_COST + found + (0 if outcome.result is None else outcome.result_bytes)


def _unstorable(outcome: ItemOutcome, error: Exception) -> ItemOutcome:
    message = f"the outcome could not be written: {type(error).__name__}; the worker's log has the rest"
    return ItemOutcome(
        seq=outcome.seq,
        attempt=outcome.attempt,
        exit_reason=ExitReason.INTERNAL_ERROR,
        error=RunError(message=message),
        started_at=outcome.started_at,
        finished_at=outcome.finished_at,
    )
