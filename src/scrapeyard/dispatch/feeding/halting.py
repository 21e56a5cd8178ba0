"""When a job is halted: while its breaker is open, and when its budget is spent."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.engines.budget.clients import BY_CLIENT, FRESH_SECONDS, ClientBudgets, UsedUp
from scrapeyard.model import BudgetLimits, Usage
from scrapeyard.model.breaker import closed, half_opened
from scrapeyard.model.identity import ClientLimits
from scrapeyard.model.instants import instant
from scrapeyard.model.job import BY_BUDGET, BreakerState, Job, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
BY_BREAKER = "breaker"
"""Value of `pause_reason` for jobs halted by their breaker."""
_NO_LIMIT = 2**62


class JobBreakers:
    """One leader's view of every breaker. An event is written before its step, so that a crash may repeat but never
    lose it. Only a leader that saw the breaker half open writes the event that it closed."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._told: dict[str, tuple[str, int]] = {}

    async def allow(self, job: Job) -> int:
        """How many items the breaker allows to be handed out now."""
        breaker, policy = job.breaker, job.policy.breaker
        if not policy.enabled:
            return await self._without(job)
        if breaker.state == "closed":
            await self._tell_closed(job)
            return _NO_LIMIT
        if breaker.state == "half_open":
            self._told[job.id] = ("half_open", breaker.trips)
            return max(0, policy.probes - breaker.in_a_row - _out(job))
        return await self._while_open(job)

    def forget(self, job_id: str) -> None:
        """Forget a job that has nothing left to hand out."""
        self._told.pop(job_id, None)

    async def _while_open(self, job: Job) -> int:
        """Probes start only after all earlier items have ended, since those would be mistaken for probes."""
        breaker, policy = job.breaker, job.policy.breaker
        opened_at = breaker.opened_at or 0.0
        if self._clock() < opened_at + policy.cooldown_seconds or _out(job):
            await self._pause(job)
            return 0
        probed = half_opened(policy, breaker)
        await self._say(job, probed)
        await self._store.jobs.set_breaker(job.id, probed, _unless_creating(job, JobStatus.RUNNING), "")
        return policy.probes

    async def _pause(self, job: Job) -> None:
        """A job whose source is still being read cannot be paused; it just gets no batches."""
        if job.status is JobStatus.PAUSED or self._told.get(job.id) == ("open", job.breaker.trips):
            return
        await self._say(job, job.breaker)
        await self._store.jobs.set_breaker(job.id, job.breaker, _unless_creating(job, JobStatus.PAUSED), BY_BREAKER)

    async def _without(self, job: Job) -> int:
        """The breaker was disabled while it was open: close it."""
        if job.breaker.state != "closed":
            await self._store.jobs.set_breaker(
                job.id, closed(job.breaker), _unless_creating(job, JobStatus.RUNNING), ""
            )
        return _NO_LIMIT

    async def _tell_closed(self, job: Job) -> None:
        if self._told.get(job.id, ("", 0))[0] == "half_open":
            await self._say(job, job.breaker)
        self._told.pop(job.id, None)

    async def _say(self, job: Job, breaker: BreakerState) -> None:
        told: dict[str, Any] = {"state": breaker.state, "reason": breaker.reason, "trips": breaker.trips}
        if breaker.state == "open":
            told["until"] = instant((breaker.opened_at or 0.0) + job.policy.breaker.cooldown_seconds)
            log.warning("jobs.breaker_opened", job=job.id, reason=breaker.reason)
        else:
            log.info("jobs.breaker_moved", job=job.id, state=breaker.state)
        await self._store.events.add(job.id, JobEventKind.BREAKER, Raw(msgspec.json.encode(told)), self._clock())
        self._told[job.id] = (breaker.state, breaker.trips)


def _out(job: Job) -> int:
    return job.counts.queued + job.counts.in_progress


def _unless_creating(job: Job, status: JobStatus) -> JobStatus | None:
    return None if job.status is JobStatus.CREATING else status


_NO_LIMITS = BudgetLimits()
_MEGABYTE = 2**20
_RESIDENTIAL = ("residential", "unlocker")
_PAGE = 1000


class JobBudgets:
    """Compares what a job's recorded items have used with its budget.

    Items already handed out when the budget ends are not stopped here: workers refuse their requests. `seconds` is
    compared with the run time of items, which is what is summed; time spent in fetches alone is less.
    """

    def __init__(self, store: Store, warn_share: float, clock: Callable[[], float]) -> None:
        self._store = store
        self._warn_share = warn_share
        self._clock = clock
        self._told: dict[str, set[tuple[str, str, float]]] = {}

    async def allows(self, job: Job) -> bool:
        """Whether the job may continue. Writes a warning and an end event, each once per budget value."""
        if job.policy.budget == _NO_LIMITS:
            return True
        for name, used, allowed in spending(job.use, job.policy.budget):
            if not allowed:
                continue  # residential proxies are not used at all: that is no budget which is used up
            if used >= allowed:
                await self._end(job, name, used, allowed)
                return False
            if used >= self._warn_share * allowed:
                await self._report(job, "nearly_used", name, used, allowed)
        return True

    def forget(self, job_id: str) -> None:
        """Forget a job that has nothing left to hand out."""
        self._told.pop(job_id, None)

    async def _end(self, job: Job, name: str, used: float, allowed: float) -> None:
        """Pause the job. A worker may do the same at this moment; whoever pauses it reports why."""
        if job.status not in (JobStatus.CREATING, JobStatus.RUNNING):
            await self._report(job, "used_up", name, used, allowed)
        elif ("used_up", name, allowed) in (told := await self._told_of(job.id)):
            await self._store.jobs.set_paused(job.id, True, BY_BUDGET, self._clock())
        else:
            words = _words("used_up", name, used, allowed)
            data = Raw(msgspec.json.encode(words))
            if await self._store.jobs.pause_and_tell(job.id, BY_BUDGET, JobEventKind.BUDGET, data, self._clock()):
                log.warning("jobs.budget", job=job.id, **words)
            told.add(("used_up", name, allowed))

    async def _report(self, job: Job, state: str, name: str, used: float, allowed: float) -> None:
        told = await self._told_of(job.id)
        if (state, name, allowed) in told:
            return
        words = _words(state, name, used, allowed)
        log.warning("jobs.budget", job=job.id, **words)
        await self._store.events.add(job.id, JobEventKind.BUDGET, Raw(msgspec.json.encode(words)), self._clock())
        told.add((state, name, allowed))

    async def _told_of(self, job_id: str) -> set[tuple[str, str, float]]:
        told = self._told.get(job_id)
        if told is None:
            told = self._told[job_id] = await self._told_before(job_id)
        return told

    async def _told_before(self, job_id: str) -> set[tuple[str, str, float]]:
        """Read from the job's events what earlier leaders reported."""
        told, after = set(), 0
        while events := await self._store.events.after(job_id, after, _PAGE):
            after = events[-1].number
            for event in events:
                if event.kind == "budget":
                    words = msgspec.json.decode(event.data)
                    told.add((words["state"], words["budget"], float(words["allowed"])))
        return told


class ClientHalt:
    """Pauses jobs of clients whose budget of the day or month is used up. Items already handed out run to their end,
    so that no budget turns an item into an error."""

    def __init__(self, store: Store, default: ClientLimits, clock: Callable[[], float]) -> None:
        self._store = store
        self._default = default
        self._budgets = ClientBudgets(store.meters, clock)
        self._clock = clock
        self._limits: dict[str, ClientLimits] = {}
        self._read_at = -FRESH_SECONDS

    async def allows(self, job: Job) -> bool:
        """Whether the job's owner may go on. Otherwise the job is paused, and its `pause_reason` says why."""
        if not job.owner:
            return True
        over = await self.over(job.owner)
        if over is None:
            return True
        if job.status in (JobStatus.CREATING, JobStatus.RUNNING):
            told = {"state": "used_up", "budget": f"client_{over.name}", "period": over.period}
            words = {**told, "used": round(over.used, 3), "allowed": over.allowed}
            data = Raw(msgspec.json.encode(words))
            if await self._store.jobs.pause_and_tell(job.id, over.words, JobEventKind.BUDGET, data, self._clock()):
                log.warning("jobs.client_budget", job=job.id, client=job.owner, why=over.words)
        return False

    async def over(self, client: str, share: float = 1.0) -> UsedUp | None:
        """A budget of the client of which this share is used; None if there is none."""
        limits = (await self._of_keys()).get(client, ClientLimits())
        return await self._budgets.used_up(client, limits.over(self._default), share)

    async def _of_keys(self) -> dict[str, ClientLimits]:
        """The budgets of every client that has a key; of several keys, the largest of each."""
        now = self._clock()
        if now - self._read_at >= FRESH_SECONDS:
            found: dict[str, ClientLimits] = {}
            for key in await self._store.api_keys.all():
                if not key.fault(now):
                    found[key.client] = key.limits.or_more(found.get(key.client, key.limits))
            self._limits, self._read_at = found, now
        return self._limits


class ClientResume:
    """A MaintenanceTask: lets jobs go on that a budget of their client halted, when the next day or month has begun or
    the budget is larger."""

    name = "client_resume"
    waits_after_outage = False

    def __init__(self, settings: Settings, store: Store, clock: Callable[[], float]) -> None:
        self._is_on = settings.clients.resume_jobs
        self._store = store
        self._clients = ClientHalt(store, settings.clients.as_limits(), clock)
        self._clock = clock
        self._next = clock()

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        if not self._is_on or self._clock() < self._next:
            return
        self._next = self._clock() + FRESH_SECONDS
        cursor: str | None = None
        while True:
            page = await self._store.jobs.page(JobFilter(statuses=(JobStatus.PAUSED,)), cursor, _PAGE)
            for job in page.jobs:
                if job.pause_reason.startswith(BY_CLIENT) and await self._clients.over(job.owner) is None:
                    await self._resume(job)
            if (cursor := page.next_cursor) is None:
                return

    async def _resume(self, job: Job) -> None:
        """The event is written first: a crash may repeat it but never lose it."""
        now = self._clock()
        told = {"status": JobStatus.RUNNING.value, "reason": "client_budget"}
        await self._store.events.add(job.id, JobEventKind.STATUS, Raw(msgspec.json.encode(told)), now)
        await self._store.jobs.set_paused(job.id, False, "", now)
        log.info("jobs.client_resumed", job=job.id, client=job.owner)


def _words(state: str, name: str, used: float, allowed: float) -> dict[str, Any]:
    return {"state": state, "budget": name, "used": round(used, 3), "allowed": allowed}


def spending(use: Usage, limits: BudgetLimits) -> Iterator[tuple[str, float, float]]:
    """Name, used and allowed of each budget that is set."""
    residential = sum(use.bytes_by_class.get(name, 0) for name in _RESIDENTIAL)
    used = {
        "requests": float(use.requests),
        "megabytes": use.bytes_received / _MEGABYTE,
        "residential_megabytes": residential / _MEGABYTE,
        "seconds": use.wall_ms / 1000,
    }
    for name, amount in used.items():
        if (allowed := getattr(limits, name)) is not None:
            yield name, amount, float(allowed)
