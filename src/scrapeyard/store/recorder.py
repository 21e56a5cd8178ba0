"""Write-behind for runs, so that no disk is in the hot path.

Changes are buffered, merged and written in one batch a moment later: add, then begin, then finish. While the database
is away everything is buffered in order and retried; endings are never dropped. Changes that a killed process had not
written are lost: a caller that must not lose a run awaits `flush`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, Self, TypeVar

from msgspec import Struct, field

from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import ExitReason, Outcome, Run, RunError
from scrapeyard.store.ports.runs import Ending, RunStore
from scrapeyard.telemetry.events import get_log

K = TypeVar("K")
V = TypeVar("V")

_ROWS: Final = 1000
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 1.0
_REFUSED: Final = RunError(message="the outcome could not be recorded: the database refused its data")


class Changes(Struct, kw_only=True):
    """Changes to write. A run is in `added` or in `begun`, never in both; a run that ended here is in neither, since
    its ending includes it."""

    added: dict[str, Run] = field(default_factory=dict)
    begun: dict[str, Run] = field(default_factory=dict)
    ended: list[Ending] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.added) + len(self.begun) + len(self.ended)

    def accept(self, run: Run) -> None:
        """Add an accepted run."""
        self.added[run.id] = run

    def begin(self, run: Run) -> None:
        """Add an attempt that began. Its row also serves as the accepted one."""
        self.added.pop(run.id, None)
        self.begun[run.id] = run

    def finish(self, ending: Ending) -> None:
        """Add an attempt that ended."""
        self.added.pop(ending.run.id, None)
        begun = self.begun.get(ending.run.id)
        if begun is not None and begun.attempt <= ending.outcome.attempt:
            del self.begun[ending.run.id]
        self.ended.append(ending)

    def take(self, most: int) -> "Changes":
        """Remove and return the first `most` of each kind."""
        taken = Changes(added=_cut(self.added, most), begun=_cut(self.begun, most), ended=self.ended[:most])
        del self.ended[:most]
        return taken


class Recorder:
    """Buffers changes of runs and writes them at most `interval_seconds` later. For one event loop."""

    def __init__(
        self,
        runs: RunStore,
        *,
        interval_seconds: float = 0.05,
        max_pending: int = 50_000,
        patience_seconds: float = 5.0,
        on_written: Callable[[Sequence[Ending], float, float], None] = lambda *_: None,
    ) -> None:
        """`on_written` is told which endings were written, and when that began and ended, in Unix seconds."""
        self._runs = runs
        self._interval = interval_seconds
        self._max_pending = max_pending
        self._patience = patience_seconds
        self._on_written = on_written
        self._log = get_log("store")
        self._buffer = Changes()
        self._batch = Changes()
        self._part = Changes()
        self._given = self._written = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._something = asyncio.Event()
        self._hurry = asyncio.Event()
        self._away_since: float | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def pending(self) -> int:
        """Changes that are not written yet."""
        return len(self._buffer) + len(self._batch) + len(self._part)

    @property
    def away(self) -> bool:
        """Whether the last write found no database."""
        return self._away_since is not None

    def accept(self, run: Run) -> None:
        """Buffer an accepted run. Raises StoreUnavailable if `max_pending` changes are already waiting."""
        if self.pending >= self._max_pending:
            raise StoreUnavailable(f"{self.pending} changes wait for the database; try again when it keeps up")
        self._buffer.accept(run)
        self._note()

    def begin(self, run: Run) -> None:
        """Buffer the start of an attempt: `run` has worker_id, started_at and lease_until."""
        self._buffer.begin(run)
        self._note()

    def finish(self, ending: Ending) -> None:
        """Buffer the end of an attempt. Never refused, since the work is done."""
        self._buffer.finish(ending)
        self._note()

    async def start(self) -> None:
        """Start writing. Does nothing if already started."""
        if self._task is None:
            self._task = asyncio.create_task(self._write_on(), name="recorder")

    async def stop(self, limit_seconds: float = 10.0) -> None:
        """Write what is buffered, for at most `limit_seconds`, and stop. Logs what is left. May be called twice."""
        task, self._task = self._task, None
        if task is None:
            return
        with suppress(StoreUnavailable):
            await self._written_by(limit_seconds)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if self.pending:
            self._log.error("store.unwritten", count=self.pending)

    async def flush(self) -> None:
        """Wait until everything buffered so far is written. Raises StoreUnavailable if that takes longer than the
        patience; the changes stay buffered and are written later."""
        await self._written_by(self._patience)

    def _note(self) -> None:
        self._given += 1
        self._something.set()

    async def _written_by(self, seconds: float) -> None:
        if self._written >= self._given:
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._given, written))
        self._hurry.set()
        try:
            async with asyncio.timeout(seconds):
                await written
        except TimeoutError:
            raise StoreUnavailable("the database did not take the run in time; it is kept and tried again") from None

    async def _write_on(self) -> None:
        while True:
            await self._something.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._hurry.wait()
            self._something.clear()
            self._hurry.clear()
            await self._write_all()

    async def _write_all(self) -> None:
        """Write everything buffered until now, in parts small enough for one transaction each."""
        given, self._batch, self._buffer = self._given, self._buffer, Changes()
        while len(self._batch):
            self._part = self._batch.take(_ROWS)
            await self._persist()
        self._report(given)

    async def _persist(self) -> None:
        """Write the part, retrying for as long as the database is away."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._write_part()
            except StoreUnavailable as error:
                self._went_away(error, pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return self._came_back()

    async def _write_part(self) -> None:
        part = self._part
        try:
            if part.added:
                await self._runs.add(list(part.added.values()))
            if part.begun:
                await self._runs.begin(list(part.begun.values()))
            if part.ended:
                began = time.time()
                await self._runs.finish(part.ended)
                self._on_written(part.ended, began, time.time())
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  a row that the database refuses must not block the others
            self._log.warning("store.batch_refused", count=len(part), error=str(error))
            await self._write_singly()
        self._part = Changes()

    async def _write_singly(self) -> None:
        """Write row by row, so that a refused one affects no other. Written rows are removed from the part at once."""
        part = self._part
        await self._each(part.added, self._runs.add)
        await self._each(part.begun, self._runs.begin)
        while part.ended:
            await self._write_ending(part.ended[0])
            del part.ended[0]

    async def _each(self, runs: dict[str, Run], write: Callable[[Sequence[Run]], Awaitable[None]]) -> None:
        for run in list(runs.values()):
            await self._unless_refused(run, lambda run=run: write([run]))  # type: ignore[misc]
            del runs[run.id]

    async def _write_ending(self, ending: Ending) -> None:
        if not await self._unless_refused(ending.run, lambda: self._runs.finish([ending])):
            plain = _without_data(ending)
            await self._unless_refused(ending.run, lambda: self._runs.finish([plain]))

    async def _unless_refused(self, run: Run, write: Callable[[], Awaitable[object]]) -> bool:
        try:
            await write()
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  see _write_part
            self._log.error("store.row_refused", run=run.id, error=str(error))
            return False
        return True

    def _report(self, given: int) -> None:
        self._written = given
        for wanted, written in self._waiting:
            if wanted <= given and not written.done():
                written.set_result(None)
        self._waiting = [waiter for waiter in self._waiting if not waiter[1].done()]

    def _went_away(self, error: StoreUnavailable, pause: float) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._log.warning("store.away", error=error.message, retry_seconds=pause, pending=self.pending)

    def _came_back(self) -> None:
        if self._away_since is not None:
            away, self._away_since = time.monotonic() - self._away_since, None
            self._log.info("store.back", away_seconds=round(away, 1), pending=self.pending)


def _without_data(ending: Ending) -> Ending:
    """An ending that any database accepts, for a run whose own ending was refused: it must not stay open."""
    outcome = ending.outcome
    plain = Outcome(
        run_id=outcome.run_id,
        attempt=outcome.attempt,
        exit_reason=ExitReason.INTERNAL_ERROR,
        error=_REFUSED,
        worker_id=outcome.worker_id,
        started_at=outcome.started_at,
        finished_at=outcome.finished_at,
    )
    return Ending(run=ending.run, outcome=plain)


def _cut(things: dict[K, V], most: int) -> dict[K, V]:
    return {key: things.pop(key) for key in list(islice(things, most))}
