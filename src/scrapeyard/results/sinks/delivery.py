"""Delivers the results of jobs to their sinks, while the jobs run and until all is delivered.

    plan     the next batch is chosen and stored: its number and its items
    deliver  its records are loaded and given to the sink
    note     that it was taken is stored, with counters

A kill between two steps repeats the planned batch, with the same number and the same items. A sink that fails is asked
again after waits that double. It holds up neither items nor other sinks.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import BlobsUnavailable, ScrapeyardError, SinkUnavailable, StoreUnavailable
from scrapeyard.model.export import ITEMS_SINK, SinkDelivery, SinkState
from scrapeyard.model.job import Job
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.results.masking import Masking
from scrapeyard.results.sinks import progress as progresses
from scrapeyard.results.sinks.items import ITEMS_AT_ONCE, ITEMS_TARGET
from scrapeyard.results.sinks.port import RefusedRecord, ResultSink, SinkBatch
from scrapeyard.results.sinks.progress import ItemNumbers, SinkProgress
from scrapeyard.results.sinks.reading import MB, BatchLimits, LoadedBatch, RecordReader, is_settled, plan_batch
from scrapeyard.settings import SinkSettings, SinkTarget
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("sinks")
ROWS: Final = 100
"""Deliveries that one round begins."""
TURN_SECONDS: Final = 10.0
"""How long one job is delivered before another has its turn."""
LOOK_SECONDS: Final = (1.0, 15.0)
"""Shortest and longest wait before a job is looked at again that has nothing to deliver."""
MAX_ERROR: Final = 500
HOUR: Final = 3600.0


class _Lost(Exception):
    """Another process has changed the delivery: leave it to that one, or to the next round."""


class SinkDeliveries:
    """A MaintenanceTask. Delivers in the background, a few jobs to each sink at once. `stop` aborts; a batch that was
    planned is delivered again. `clock` gives Unix seconds, `spread` the random part of a wait, 0 to 1."""

    name = "sinks"
    waits_after_outage = False

    def __init__(
        self,
        settings: SinkSettings,
        sinks: Mapping[str, ResultSink],
        store: Store,
        blobs: Blobs,
        clock: Callable[[], float],
        *,
        masking: Masking | None = None,
        metrics: Metrics | None = None,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._sinks = sinks
        self._store = store
        self._masking = masking
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._spread = spread
        self._reader = RecordReader(store.items, blobs, int(settings.max_record_mb * MB))
        self._tasks = Background()
        self._running: Counter[str] = Counter()
        """Deliveries under way, by sink."""

    async def start(self) -> None:
        """Nothing to do: the first round starts deliveries."""

    async def stop(self) -> None:
        """Abort what is under way. May be called twice."""
        await self._tasks.stop()

    async def idle(self) -> None:
        """Wait until nothing is being delivered."""
        await self._tasks.idle()

    async def run_once(self) -> None:
        """One round: begin with what is due, and leave it to run."""
        busy = [sink for sink, count in self._running.items() if count >= self._most(sink)]
        for delivery in await self._store.sinks.due(self._clock(), ROWS, busy):
            key = (delivery.job_id, delivery.sink)
            if key not in self._tasks and self._running[delivery.sink] < self._most(delivery.sink):
                self._running[delivery.sink] += 1
                self._tasks.spawn(self._advance(delivery), name=f"sink {delivery.sink}", key=key)

    def _most(self, sink: str) -> int:
        """Jobs that are delivered to it at once. Behind `ITEMS_SINK` stands a receiver of each job."""
        return ITEMS_AT_ONCE if sink == ITEMS_SINK else self._settings.concurrency

    async def _advance(self, delivery: SinkDelivery) -> None:
        """Deliver for a while, and store when to look again."""
        try:
            await self._turn(delivery)
        except _Lost:
            log.debug("sinks.lost", job=delivery.job_id, sink=delivery.sink)
        except (StoreUnavailable, BlobsUnavailable) as error:  # ours, not the sink's: the next round tries again
            log.warning("dispatch.duty_failed", duty=self.name, error=error.message)
        except Exception as error:  # one delivery must not stop the others
            log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)
        finally:
            self._running[delivery.sink] -= 1

    async def _turn(self, delivery: SinkDelivery) -> None:
        is_of_items = delivery.sink == ITEMS_SINK
        target = ITEMS_TARGET if is_of_items else self._settings.target(delivery.sink)
        sink = self._sinks.get(delivery.sink)
        state = await self._begun(delivery)
        if state is None:
            return
        if state.job.archive:
            await self._give_up(state, "the job is archived; restore it, then deliver it again")
            return
        try:
            if target is None or sink is None:
                raise SinkUnavailable("there is no sink of this name in sinks.targets any more")
            await self._deliver(state, target, sink)
        except SinkUnavailable as error:
            await self._failed(state, error)

    async def _begun(self, delivery: SinkDelivery) -> "_Turn | None":
        """The job and its progress; None if the job is gone."""
        now = self._clock()
        job = await self._store.jobs.get(delivery.job_id)
        if job is None:
            return None
        progress = progresses.decode(delivery.progress)
        if progress.redrives != job.redrives:
            seen_at = max(progress.seen_at, delivery.woken_at or 0.0)
            progress = replace(progress, seen_at=seen_at).after_redrive(job.redrives)
            delivery = replace(delivery, covered=0)
        delivery = replace(delivery, woken_at=None)
        return _Turn(job=job, delivery=delivery, progress=replace(progress, seen_at=now))

    async def _deliver(self, turn: "_Turn", target: SinkTarget, sink: ResultSink) -> None:
        until = time.monotonic() + TURN_SECONDS
        limits = BatchLimits.of(target)
        is_whole = False
        while turn.progress.batch is not None or self._is_ready(turn, target):
            if turn.progress.batch is None:
                planned = await plan_batch(self._store.items, turn.job, turn.progress, limits)
                if is_settled(turn.job):
                    await self._check_rows(turn.job)
                covered = turn.delivery.covered + planned.unchanged
                is_whole = planned.is_whole
                turn = replace(turn, progress=planned.progress, delivery=replace(turn.delivery, covered=covered))
                if planned.progress.batch is None:
                    break
                turn = await self._put(turn, due_at=self._clock())
            turn = await self._deliver_batch(turn, sink, limits)
            if time.monotonic() > until:
                await self._put(turn, due_at=self._clock())
                return
            turn = await self._again(turn)
        await self._rest(turn, target, is_whole=is_whole)

    async def _check_rows(self, job: Job) -> None:
        """After reading items: rows of a job are moved to an archive only after it was marked. Raises _Lost if it is
        marked or gone, since items that were not found may have ended."""
        found = await self._store.jobs.get(job.id)
        if found is None or found.archive:
            raise _Lost

    async def _deliver_batch(self, turn: "_Turn", sink: ResultSink, limits: BatchLimits) -> "_Turn":
        """Deliver the planned batch and note it. Raises SinkUnavailable."""
        job, progress = turn.job, turn.progress
        assert progress.batch is not None  # noqa: S101 - planned before
        loaded = await self._load(job, progress.batch, limits.bytes)
        if len(loaded.numbers) < len(progress.batch.set_bits()):
            await self._check_rows(job)
        if loaded.is_cut:  # what is stored stays what is delivered; a batch never grows
            progress = replace(progress, batch=ItemNumbers.of(loaded.numbers[0], loaded.numbers))
            turn = await self._put(replace(turn, progress=progress), due_at=self._clock())
        refused: tuple[RefusedRecord, ...] = loaded.refused
        began = time.perf_counter()
        if loaded.records:
            batch = SinkBatch(id=_batch_id(turn), job_id=job.id, number=progress.number, records=loaded.records)
            refused += tuple(await self._given(sink, batch))
        taken = len(loaded.numbers) - len(refused)
        self._metrics.sink_took(sink.name, taken, len(refused), time.perf_counter() - began)
        delivery = replace(
            turn.delivery,
            covered=turn.delivery.covered + len(loaded.numbers),
            delivered=turn.delivery.delivered + taken,
            failed=turn.delivery.failed + len(refused),
            attempts=0,
            failing_since=None,
            delivered_at=self._clock(),
        )
        if refused:  # the last of a batch stands for all: a job may have millions
            last = refused[-1]
            delivery = replace(delivery, last_error=f"item {last.item_key}: {last.why}"[:MAX_ERROR])
            facts = {"job": job.id, "sink": sink.name, "records": len(refused), "item": last.item_key}
            log.warning("sinks.refused", **facts, error=last.why[:MAX_ERROR])
        turn = replace(turn, delivery=delivery, progress=progress.delivered(loaded.numbers))
        return await self._put(turn, due_at=self._clock())

    async def _load(self, job: Job, batch: ItemNumbers, most_bytes: int) -> LoadedBatch:
        """Every failure but the store's is a SinkUnavailable: one object that cannot be read must be told, and neither
        be asked for all the time nor for ever."""
        masker = None if self._masking is None else self._masking.of(job.policy.fetching)
        try:
            return await self._reader.read(job, batch, masker, most_bytes)
        except StoreUnavailable:
            raise
        except BlobsUnavailable as error:
            raise SinkUnavailable(f"the results cannot be read: {error.message}") from None
        except Exception as error:
            log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)
            raise SinkUnavailable(f"a fault of ours: {error!r}") from None

    async def _given(self, sink: ResultSink, batch: SinkBatch) -> tuple[RefusedRecord, ...]:
        """Deliver, within the time limit. Every failure is a SinkUnavailable: a fault of ours must not loop."""
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                return tuple(await sink.deliver(batch))
        except TimeoutError:
            raise SinkUnavailable(f"it did not take a batch within {self._settings.timeout_seconds:g} s") from None
        except ScrapeyardError as error:
            raise error if isinstance(error, SinkUnavailable) else SinkUnavailable(error.message) from None
        except Exception as error:
            log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)
            raise SinkUnavailable(f"a fault of ours: {error!r}") from None

    async def _again(self, turn: "_Turn") -> "_Turn":
        """The same with the job as it is now. Raises _Lost if it is gone."""
        begun = await self._begun(replace(turn.delivery, progress=progresses.encode(turn.progress)))
        if begun is None:
            raise _Lost
        return begun

    def _is_ready(self, turn: "_Turn", target: SinkTarget) -> bool:
        """Whether a batch is due: it is full, has been gathered for long enough, or nothing more will come."""
        behind = turn.behind
        last = turn.delivery.delivered_at or turn.delivery.created_at
        is_due = behind >= target.records or self._clock() >= last + target.seconds
        return is_settled(turn.job) or (behind > 0 and is_due)

    async def _rest(self, turn: "_Turn", target: SinkTarget, *, is_whole: bool) -> None:
        """Nothing to deliver now: the delivery is done, or looked at later."""
        now = self._clock()
        is_over = is_settled(turn.job) and is_whole and turn.progress.passed.at >= turn.job.counts.total
        if is_over and turn.may_end and now >= turn.delivery.open_until:
            turn = await self._end(turn, SinkState.DONE)
            log.info("sinks.done", job=turn.job.id, sink=turn.delivery.sink, records=turn.delivery.delivered)
            return
        shortest, longest = LOOK_SECONDS
        idle = now - (turn.delivery.delivered_at or turn.delivery.created_at)
        wait = min(max(shortest, idle / 10), longest)
        if turn.behind:
            wait = min(wait, max(target.seconds - idle, shortest))
        await self._put(turn, due_at=now if is_settled(turn.job) and not is_whole else now + wait)

    async def _failed(self, turn: "_Turn", error: SinkUnavailable) -> None:
        now = self._clock()
        delivery = turn.delivery
        self._metrics.sink_failed(delivery.sink)
        # The row may be newer than this turn: a batch was planned meanwhile.
        delivery = next(iter(await self._current(delivery)), delivery)
        since = delivery.failing_since if delivery.failing_since is not None else now
        words = error.message[:MAX_ERROR]
        delivery = replace(delivery, attempts=delivery.attempts + 1, failing_since=since, last_error=words)
        turn = replace(turn, delivery=delivery, progress=progresses.decode(delivery.progress))
        if turn.may_end and now - since >= self._settings.give_up_hours * HOUR:
            await self._give_up(turn, words)
            return
        doubled = self._settings.first_seconds * 2.0 ** min(delivery.attempts - 1, 30)
        wait = min(max(doubled, error.retry_after), self._settings.cap_seconds) * (1 + 0.2 * self._spread())
        await self._put(turn, due_at=now + wait)
        facts = {"job": delivery.job_id, "sink": delivery.sink}
        log.info("sinks.later", **facts, attempts=delivery.attempts, seconds=round(wait, 1), error=words)

    async def _current(self, delivery: SinkDelivery) -> list[SinkDelivery]:
        found = await self._store.sinks.of_jobs([delivery.job_id])
        return [each for each in found if each.sink == delivery.sink]

    async def _give_up(self, turn: "_Turn", words: str) -> None:
        delivery = replace(turn.delivery, last_error=words)
        await self._end(replace(turn, delivery=delivery), SinkState.FAILED)
        facts = {"job": delivery.job_id, "sink": delivery.sink}
        log.warning("sinks.given_up", **facts, attempts=delivery.attempts, error=words)

    async def _end(self, turn: "_Turn", state: SinkState) -> "_Turn":
        """Store the end, and tell it. That of a webhook's items is told first: the message of the job's end waits for
        it, so it may come twice after a kill, and is never lost."""
        is_first = turn.delivery.sink == ITEMS_SINK
        if is_first:
            await self._tell(replace(turn, delivery=replace(turn.delivery, state=state)))
        turn = await self._put(turn, due_at=None, state=state)
        if not is_first:
            await self._tell(turn)
        return turn

    async def _put(self, turn: "_Turn", *, due_at: float | None, state: SinkState = SinkState.ACTIVE) -> "_Turn":
        """Store it. Raises _Lost if another was faster."""
        packed = progresses.encode(turn.progress)
        written = await self._store.sinks.put(replace(turn.delivery, due_at=due_at, state=state, progress=packed))
        if written is None:
            raise _Lost
        return replace(turn, delivery=written)

    async def _tell(self, turn: "_Turn") -> None:
        delivery = turn.delivery
        told = {
            "sink": delivery.sink,
            "state": delivery.state.value,
            "delivered": delivery.delivered,
            "refused": delivery.failed,
            **({"error": delivery.last_error} if delivery.state is SinkState.FAILED else {}),
            **({"job_status": turn.job.status.value} if delivery.sink == ITEMS_SINK else {}),
        }
        data = Raw(msgspec.json.encode(told))
        await self._store.events.add(delivery.job_id, JobEventKind.SINK, data, self._clock())


def _batch_id(turn: "_Turn") -> str:
    """With the time of the job: one that is deleted and made again under the same id counts its batches from 1."""
    made = round(turn.job.created_at * 1000)
    return f"{turn.job.id}-{turn.delivery.sink}-{made:x}-{turn.progress.number:08d}"


class _Turn(Struct, frozen=True, kw_only=True):
    """A job, its delivery and the decoded progress."""

    job: Job
    delivery: SinkDelivery
    progress: SinkProgress

    @property
    def behind(self) -> int:
        """Ended items that the sink does not have yet."""
        return behind(self.job, self.delivery)

    @property
    def may_end(self) -> bool:
        """Whether it may be done or given up. That of a webhook's items waits for the job, whose end is told then."""
        return self.delivery.sink != ITEMS_SINK or self.job.status.is_final


def behind(job: Job, delivery: SinkDelivery) -> int:
    """Ended items of a job that the sink does not have yet."""
    return max(0, job.counts.success + job.counts.error - delivery.covered)
