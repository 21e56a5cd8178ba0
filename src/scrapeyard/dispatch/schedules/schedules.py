"""Starts what schedules ask for, once for each due time.

    fire     a time has come: firings are written and the schedule moves on, one transaction
    decide   a firing waits: under a lease it is started, skipped, failed, or let go to wait for the last one to end

The id of what is started is derived from the firing. So nothing starts twice, even if a dispatcher is killed between
starting and recording it, or decides after its lease has ended.
"""

from collections.abc import Callable
from typing import Final, Protocol

from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.dispatch.feeding.halting import ClientHalt
from scrapeyard.dispatch.schedules.timetable import at, next_due, passed
from scrapeyard.errors import ScrapeyardError, Unavailable
from scrapeyard.model.schedule import Firing, FiringState, Schedule, Target, subject_id
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("schedules")
BATCH: Final = 100
AT_ONCE: Final = 4
"""Firings decided concurrently by one process; creating a job may take a while."""
LEASE_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 60.0
"""A time that was not acted upon for this long counts as missed."""
MOST_MISSED: Final = 100
"""Missed times that `run_all` starts at once; older ones are only counted."""
MAX_REASON: Final = 500


class Starter(Protocol):
    """Creates jobs and runs from templates."""

    async def start(self, schedule: Schedule, subject: str) -> None:
        """Create what the template describes, under this id, durably; do nothing if it already exists. Raises
        Unavailable if it should be tried again, another of our errors if it cannot be created."""

    async def going(self, target: Target, subject: str) -> bool | None:
        """Whether it has not ended yet. None if there is no such job or run."""

    async def cancel(self, target: Target, subject: str) -> None:
        """Cancel it. May be repeated."""


class Schedules:
    """A MaintenanceTask. Decides in the background, so that other tasks continue. After `stop`, another process
    continues once the lease has ended."""

    name = "schedules"
    waits_after_outage = False

    def __init__(
        self,
        store: Store,
        starter: Starter,
        clock: Callable[[], float],
        holder: str,
        budgets: ClientHalt | None = None,
    ) -> None:
        """`budgets` are those of the owners of schedules; without them nothing is skipped for a budget."""
        self._budgets = budgets
        self._store = store
        self._starter = starter
        self._clock = clock
        self._holder = holder
        self._tasks = Background()

    async def start(self) -> None:
        """Nothing to do: the first round begins the work."""

    async def stop(self) -> None:
        """Abort what is under way. May be called twice."""
        await self._tasks.stop()

    async def idle(self) -> None:
        """Wait until no firing is being decided here."""
        await self._tasks.idle()

    async def run_once(self) -> None:
        """One round."""
        for schedule in await self._store.schedules.due(self._clock(), BATCH):
            await self._fire(schedule)
        for firing in await self._store.firings.waiting(self._clock(), BATCH):
            if len(self._tasks) >= AT_ONCE:
                return
            if firing.schedule_id not in self._tasks:
                self._tasks.spawn(self._decide(firing), name=f"schedule {firing.schedule_id}", key=firing.schedule_id)

    async def _fire(self, schedule: Schedule) -> None:
        now = self._clock()
        times = passed(schedule, now, MOST_MISSED + 1)
        if not times:
            return
        due = next_due(schedule, times[-1])
        firings = firings_of(schedule, times, now)
        if await self._store.schedules.fire(schedule, firings, due, None if due is None else at(schedule, due)):
            missed = next((firing.reason for firing in firings if firing.state is FiringState.MISSED), "")
            if missed:
                log.warning("schedules.missed", schedule=schedule.id, reason=missed)

    async def _decide(self, firing: Firing) -> None:
        try:
            schedule = await self._store.schedules.get(firing.schedule_id)
            if schedule is None or await self._waits_on(schedule, firing):
                return
            now = self._clock()
            if await self._store.firings.claim(firing, self._holder, now, now + LEASE_SECONDS):
                end = await self._end(schedule, replace(firing, holder=self._holder))
                await self._settle(schedule, end)
        except ScrapeyardError as error:
            log.warning("dispatch.duty_failed", duty=self.name, error=error.message)
        except Exception as error:
            log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)

    async def _waits_on(self, schedule: Schedule, firing: Firing) -> bool:
        """Whether it already waits for the previous one, which has not ended: then there is nothing to write."""
        if not firing.reason or firing.reason != _goes_on(schedule):
            return False
        return bool(await self._starter.going(schedule.target, schedule.last_subject))

    async def _end(self, schedule: Schedule, firing: Firing) -> Firing:
        """Decide a claimed firing; returns its new state."""
        try:
            return await self._started(schedule, firing)
        except Unavailable as error:
            return replace(firing, reason=error.message[:MAX_REASON])
        except ScrapeyardError as error:
            return self._settled(firing, FiringState.FAILED, error.message)
        except Exception as error:
            log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)
            return self._settled(firing, FiringState.FAILED, "a fault of ours; the dispatcher's log has it")

    async def _started(self, schedule: Schedule, firing: Firing) -> Firing:
        target, last = schedule.target, schedule.last_subject
        subject = subject_id(target, schedule.id, firing.due_at)
        if await self._starter.going(target, subject) is None:
            if last and await self._starter.going(target, last):
                return await self._overlapping(schedule, firing)
            if self._budgets and schedule.owner and (over := await self._budgets.over(schedule.owner)) is not None:
                return self._settled(firing, FiringState.SKIPPED, over.words)
            await self._starter.start(schedule, subject)
        return replace(self._settled(firing, FiringState.STARTED, ""), subject=subject)

    async def _overlapping(self, schedule: Schedule, firing: Firing) -> Firing:
        reason = _goes_on(schedule)
        if schedule.overlap == "skip":
            return self._settled(firing, FiringState.SKIPPED, reason)
        if schedule.overlap == "cancel_previous":
            await self._starter.cancel(schedule.target, schedule.last_subject)
        return replace(firing, reason=reason)

    def _settled(self, firing: Firing, state: FiringState, reason: str) -> Firing:
        return replace(firing, state=state, reason=reason[:MAX_REASON], settled_at=self._clock())

    async def _settle(self, schedule: Schedule, firing: Firing) -> None:
        if not await self._store.firings.settle(firing) or firing.state is FiringState.WAITING:
            return
        if firing.state is FiringState.STARTED:
            log.info("schedules.started", schedule=schedule.id, subject=firing.subject)
        else:
            log.warning("schedules.not_started", schedule=schedule.id, state=firing.state.value, reason=firing.reason)


def firings_of(schedule: Schedule, times: list[float], now: float) -> list[Firing]:
    """Firings for the times that have come, the oldest first: one per time that the missed-run policy starts, and a
    single MISSED one for all others."""
    newest = times[-1]
    if schedule.missed == "run_all":
        acted = times[-MOST_MISSED:]
    elif schedule.missed == "skip" and now - at(schedule, newest) > GRACE_SECONDS:
        acted = []
    else:
        acted = [newest]
    missed = times[: len(times) - len(acted)]
    firings = [Firing(schedule_id=schedule.id, due_at=due, created_at=now) for due in acted]
    return [_missed(schedule, missed, now, more=len(times) > MOST_MISSED), *firings] if missed else firings


def _missed(schedule: Schedule, times: list[float], now: float, *, more: bool) -> Firing:
    count = f"{len(times)} or more" if more else str(len(times))
    return Firing(
        schedule_id=schedule.id,
        due_at=times[-1],
        state=FiringState.MISSED,
        reason=f"{count} missed: nobody was there to start what was due",
        created_at=now,
        settled_at=now,
    )


def _goes_on(schedule: Schedule) -> str:
    if schedule.overlap == "cancel_previous":
        return f"{schedule.last_subject} was asked to end"
    return f"{schedule.last_subject} still goes on"
