"""The rules of alerts: each tells what is wrong now, by subject, or that it cannot tell.

Rules on runs, queue, budgets, schedules and workers read the store and the queue. Two need to know what changed within
their window, of items and of sites, and remember counts in this process: a new leader cannot tell until it has some.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from scrapeyard.dispatch.feeding.halting import ClientHalt
from scrapeyard.engines.budget.clients import BUDGET_WORDS
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model import RunStatus
from scrapeyard.model.export import SinkState
from scrapeyard.model.job import BY_BUDGET, FINAL_JOB, Job, JobStatus
from scrapeyard.queues.port import Queue
from scrapeyard.settings import AlertRule, Settings
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.ports.operations import Watched
from scrapeyard.store.ports.store import Store
from scrapeyard.store.ports.webhooks import Alert

ALL: Final = "all"
_DAY: Final = 86_400.0
_MOST: Final = 1000
_SHOWN: Final = 5
"""Fields that an alert names."""
_GOING: Final = tuple(status for status in JobStatus if status not in FINAL_JOB)


class Breach(Struct, frozen=True, kw_only=True):
    """What is wrong with one subject."""

    words: str
    value: float


Breaches = Mapping[str, Breach]
_Pair = tuple[int, int]
_NONE: Final[_Pair] = (0, 0)


class CountHistory:
    """Pairs of counts that only grow, by key, as they were within a window."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._past: deque[tuple[float, Mapping[str, _Pair]]] = deque()

    def add(self, now: float, counts: Mapping[str, _Pair]) -> None:
        """Remember these. One older than the window is kept, to compare with."""
        self._past.append((now, counts))
        while len(self._past) > 1 and self._past[1][0] <= now - self._seconds:
            self._past.popleft()

    def grown(self, new_ones: Callable[[str], bool] = lambda _: True) -> dict[str, _Pair]:
        """How much each grew within the window. What was not there before counts in full if it is one of the
        `new_ones`, and not at all if it is not."""
        first, last = self._past[0][1], self._past[-1][1]
        keys = (key for key in last if key in first or new_ones(key))
        return {key: _minus(last[key], first.get(key, _NONE)) for key in keys}

    def is_whole(self, now: float) -> bool:
        """Whether it reaches back to the beginning of the window."""
        return bool(self._past) and self._past[0][0] <= now - self._seconds


def _minus(last: _Pair, first: _Pair) -> _Pair:
    """Counts that are smaller than before began anew."""
    begun_anew = last[0] < first[0] or last[1] < first[1]
    return last if begun_anew else (last[0] - first[0], last[1] - first[1])


class AlertRules:
    """Evaluates rules for the leader."""

    def __init__(self, settings: Settings, store: Store, queue: Queue, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._store = store
        self._queue = queue
        self._clock = clock
        self._clients = ClientHalt(store, settings.clients.as_limits(), clock)
        self._histories: dict[str, CountHistory] = {}
        self._kinds = {
            "failure_rate": self._failure_rate,
            "queue_age": self._queue_age,
            "budget": self._budget,
            "stale_schedules": self._stale_schedules,
            "no_data": self._no_data,
            "worker_loss": self._worker_loss,
            "drift": self._drift,
            "sinks": self._sinks,
        }

    async def evaluate(self, rule: AlertRule, firing: Sequence[Alert]) -> Breaches | None:
        """What is wrong now; None if that cannot be told. `firing` are the alerts of this rule that last."""
        return await self._kinds[rule.kind](rule, firing)

    def _history(self, rule: AlertRule) -> CountHistory:
        return self._histories.setdefault(rule.label, CountHistory(rule.window_seconds))

    async def _failure_rate(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches | None:
        now = self._clock()
        good, bad = 0, 0
        for (scraper, status), count in (await self._store.runs.ended_since(now - rule.window_seconds)).items():
            if _is_of(rule, scraper):
                good += count if status is RunStatus.SUCCEEDED else 0
                bad += count if status is RunStatus.FAILED else 0
        for succeeded, failed in await self._items_ended(rule, now):
            good, bad = good + succeeded, bad + failed
        ended = good + bad
        if ended < rule.minimum:
            return {} if not ended and self._history(rule).is_whole(now) else None
        share = bad / ended
        words = f"{bad} of {ended} runs and items failed in the last {rule.window_seconds / 60:g} minutes ({share:.0%})"
        return {ALL: Breach(words=words, value=share)} if share > rule.limit else {}

    async def _items_ended(self, rule: AlertRule, now: float) -> Sequence[_Pair]:
        since = now - rule.window_seconds
        ended = await self._jobs(JobFilter(finished_after=since))
        found = {job.id: job for job in (*await self._jobs(JobFilter(statuses=_GOING)), *ended)}
        jobs = {key: job for key, job in found.items() if _is_of(rule, job.scraper.partition("@")[0])}
        history = self._history(rule)
        history.add(now, {job.id: (job.counts.success, job.counts.error) for job in jobs.values()})
        # Of an older job that this process sees for the first time, nobody knows when its items ended.
        is_whole = history.is_whole(now)
        return list(history.grown(lambda key: is_whole or jobs[key].created_at > since).values())

    async def _jobs(self, where: JobFilter) -> tuple[Job, ...]:
        return (await self._store.jobs.page(where, None, _MOST)).jobs

    async def _queue_age(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches:
        now = self._clock()
        found: dict[str, Breach] = {}
        for (lane, priority), count in (await self._queue.depth()).items():
            queued_at = await self._queue.oldest(lane, priority) if count and _is_of(rule, lane) else None
            age = 0.0 if queued_at is None else now - queued_at
            if age > rule.limit and (lane not in found or age > found[lane].value):
                words = f"work has waited in lane {lane} for {age:.0f} seconds"
                found[lane] = Breach(words=words, value=round(age, 1))
        return found

    async def _budget(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches:
        found = {}
        month = day_of(self._clock())[:8] + "01"
        for use in await self._store.meters.use(["client"], month):
            if not use.client or not _is_of(rule, use.client):
                continue
            over = await self._clients.over(use.client, rule.limit)
            if over is not None:
                share = over.used / over.allowed
                words = (
                    f"client {use.client} has used {over.used:.0f} of {over.allowed:g} {BUDGET_WORDS[over.name]} "
                    f"of this {over.period} ({share:.0%})"
                )
                found[f"client {use.client}"] = Breach(words=words, value=round(share, 4))
        for job in await self._jobs(JobFilter(statuses=(JobStatus.PAUSED,))):
            if job.pause_reason == BY_BUDGET and _is_of(rule, job.id):
                words = f"job {job.id} is paused: its budget is used up"
                found[f"job {job.id}"] = Breach(words=words, value=1.0)
        return found

    async def _stale_schedules(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches:
        now = self._clock()
        found = {}
        for schedule in await self._store.schedules.due(now - rule.limit, _MOST):
            if _is_of(rule, schedule.id) or _is_of(rule, schedule.name):
                late = now - (schedule.next_at or now)
                words = f"schedule {schedule.name or schedule.id} should have started {late:.0f} seconds ago"
                found[schedule.id] = Breach(words=words, value=round(late, 1))
        return found

    async def _no_data(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches | None:
        now, history = self._clock(), self._history(rule)
        uses = await self._store.meters.use(["site"], day_of(now - _DAY))
        history.add(
            now, {use.site: (use.requests, use.failures) for use in uses if use.site and _is_of(rule, use.site)}
        )
        if not history.is_whole(now):
            return None
        minutes = rule.window_seconds / 60
        found = {}
        expected = {site: _NONE for site in rule.only if "*" not in site and "?" not in site}
        for site, (asked, failed) in (expected | history.grown()).items():
            if asked >= rule.minimum and failed >= asked:
                words = f"{site} answered none of {asked} requests of the last {minutes:g} minutes"
                found[site] = Breach(words=words, value=0.0)
            elif site in rule.only and not asked:
                found[site] = Breach(words=f"nothing was asked of {site} for {minutes:g} minutes", value=0.0)
        return found

    async def _worker_loss(self, rule: AlertRule, firing: Sequence[Alert]) -> Breaches:
        """The row of a worker that stopped cleanly is gone, and that of a silent one stays for ten leases."""
        now, lease = self._clock(), self._settings.worker.lease_seconds
        workers = await self._store.workers.alive(now - rule.window_seconds)
        alive = {worker.id for worker in workers if worker.seen_at >= now - lease}
        found = {
            worker.id: Breach(words=f"worker {worker.id} on {worker.host} has fallen silent", value=1.0)
            for worker in workers
            if worker.id not in alive
        }
        for alert in firing:
            if alert.subject not in alive and alert.subject != ALL and alert.started_at > now - rule.window_seconds:
                found.setdefault(alert.subject, Breach(words=alert.words, value=1.0))
        if not alive:
            found[ALL] = Breach(words="no worker is alive: nothing runs", value=0.0)
        return found

    async def _drift(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches:
        """Of scrapers. A learned pattern that drifts is learned anew and wakes nobody."""
        found = {}
        for watched in await self._store.drift.watched(drifted=True):
            if "/" in watched.subject and _is_of(rule, watched.subject):
                drifted = float(len(watched.sketch.drifted))
                found[f"{watched.subject} {watched.site}".strip()] = Breach(words=_drift_words(watched), value=drifted)
        return found

    async def _sinks(self, rule: AlertRule, _: Sequence[Alert]) -> Breaches:
        """Deliveries that were given up, until they are resumed or their job is gone."""
        found = {}
        for (sink, state), count in (await self._store.sinks.standing()).items():
            if state is SinkState.FAILED and count > rule.limit and _is_of(rule, sink):
                jobs = "1 job" if count == 1 else f"{count} jobs"
                found[sink] = Breach(words=f"sink {sink} took nothing for too long: gave up {jobs}", value=float(count))
        return found


def _drift_words(watched: Watched) -> str:
    fields = [f"{name} ({sketch.drift})" for name, sketch in watched.sketch.fields.items() if sketch.drift]
    shown = ", ".join(fields[:_SHOWN]) + (f" and {len(fields) - _SHOWN} more" if len(fields) > _SHOWN else "")
    return f"fields of {watched.subject} on {watched.site or 'its pages'} are not as they were: {shown}"


def _is_of(rule: AlertRule, name: str) -> bool:
    return not rule.only or any(fnmatchcase(name, pattern) for pattern in rule.only)
