"""Removes what is past its retention: runs and what they left, keys, sessions, meters, the audit, workers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model import Artifact, Run, RunStatus
from scrapeyard.model.fetching import SWEPT_KINDS, RetentionPolicy
from scrapeyard.settings import RetentionSettings, Settings
from scrapeyard.store.ports.retention import RunSweep
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("dispatch")
EVERY_SECONDS: Final = 30.0
RUNS: Final = 500
AUDIT_ROWS: Final = 5000
"""Maximum removed in one round."""
DAY: Final = 86_400.0
LOOK_SECONDS: Final = 6 * 3600.0
"""Runs with a retention of their own, and jobs, are looked at this often: a changed setting then counts."""
STRAGGLERS_SECONDS: Final = 3600.0
"""How often runs are looked for whose end was written late, after an outage of the database."""


class KeptTimes:
    """How long things are kept, by the settings and what a run or job says itself."""

    def __init__(self, settings: RetentionSettings) -> None:
        self._settings = settings

    def first_days(self) -> float | None:
        """Days after which the first kind is removed of runs that say nothing; None if the settings name no kind."""
        days = [getattr(self._settings, f"{kind}_days") for kind in SWEPT_KINDS]
        return min((each for each in days if each is not None), default=None)

    def until(self, own: RetentionPolicy, ended: float, whole: float, *, failed: bool) -> float:
        """When a run or job is removed altogether. `whole`: days of one that neither failed nor says itself."""
        usual = whole if self._settings.failed_days is None or not failed else self._settings.failed_days
        return ended + (usual if own.days is None else own.days) * DAY

    def kinds_until(self, own: RetentionPolicy, ended: float, swept: Mapping[str, float]) -> dict[str, float]:
        """When each kind is removed that is still there."""
        found: dict[str, float] = {}
        for kind in SWEPT_KINDS:
            mine: float | None = getattr(own, f"{kind}_days")
            days: float | None = getattr(self._settings, f"{kind}_days") if mine is None else mine
            if days is not None and swept.get(kind, 0.0) <= ended:
                found[kind] = ended + days * DAY
        return found


def blobs_of(result_key: str, artifacts: Sequence[Artifact], kinds: Sequence[str]) -> list[str]:
    """Blob keys of these kinds."""
    found = [result_key] if result_key and "results" in kinds else []
    return found + [one.key for one in artifacts if one.kind in kinds and one.key != result_key]


class Retention:
    """Removes a batch of runs every half minute, or at once again while batches are full.

    Blobs are removed before the rows that refer to them: after a crash the rows are found again.
    """

    name = "retention"
    waits_after_outage = False

    def __init__(
        self, settings: Settings, store: Store, blobs: Blobs, clock: Callable[[], float], metrics: Metrics | None = None
    ) -> None:
        self._settings = settings
        self._kept = KeptTimes(settings.retention)
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._next = 0.0
        self._seen = 0.0
        """Runs that ended before were looked at."""
        self._anew = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        full = [await self._remove_old(now), await self._sweep_due(now), await self._sweep_others(now)]
        await self._store.keys.forget_before(now - self._settings.retention.keys_hours * 3600)
        await self._store.sessions.forget_before(now - self._settings.http.session_days * DAY)
        silent = now - 10 * self._settings.worker.lease_seconds
        await self._store.workers.forget_before(silent)
        await self._store.proxies.forget_standings_before(silent)
        await self._store.meters.forget_before(day_of(now - self._settings.retention.usage_days * DAY))
        await self._store.audit.remove_before(now - self._settings.retention.audit_days * DAY, AUDIT_ROWS)
        self._next = now if any(full) else now + EVERY_SECONDS

    async def _remove_old(self, now: float) -> bool:
        kept = self._settings.retention
        failed_before = None if kept.failed_days is None else now - kept.failed_days * DAY
        ids = await self._store.sweeps.old_runs(now - kept.runs_days * DAY, RUNS, failed_before=failed_before)
        await self._remove(ids)
        return len(ids) >= RUNS

    async def _sweep_due(self, now: float) -> bool:
        """Of runs with a retention of their own, or of which something was removed before."""
        runs = await self._store.sweeps.runs_due(now, RUNS)
        await self._sweep(runs, now)
        return len(runs) >= RUNS

    async def _sweep_others(self, now: float) -> bool:
        """Of runs that the settings alone concern, in the order of their ends."""
        days = self._kept.first_days()
        if days is None:
            return False
        if now >= self._anew:
            self._seen, self._anew = 0.0, now + STRAGGLERS_SECONDS
        runs = await self._store.sweeps.unswept_runs(self._seen, now - days * DAY, RUNS)
        await self._sweep(runs, now)
        if runs:
            self._seen = runs[-1].finished_at or 0.0
        return len(runs) >= RUNS

    async def _sweep(self, runs: Sequence[Run], now: float) -> None:
        over = {run.id for run in runs if self._until(run) < now}
        await self._remove(sorted(over))
        sweeps: list[RunSweep] = []
        for run in runs:
            if run.id in over:
                continue
            until = self._kept.kinds_until(run.fetching.retention, run.finished_at or now, run.swept)
            due = [kind for kind, at in until.items() if at < now]
            await self._blobs.delete(blobs_of(run.result_key, run.artifacts, due))
            later = [at for at in (*until.values(), self._until(run)) if at >= now]
            next_at = min(*later, now + LOOK_SECONDS)
            sweeps.append(RunSweep(id=run.id, swept=run.swept | dict.fromkeys(due, now), sweep_at=next_at))
            self._metrics.swept(due)
        await self._store.sweeps.sweep_runs(sweeps)
        swept = sum(len(sweep.swept) > len(run.swept) for sweep, run in _pairs(sweeps, runs))
        if swept:
            log.info("dispatch.runs_swept", count=swept)

    async def _remove(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        await self._blobs.delete_prefix([keys.run_prefix(run_id) for run_id in ids])
        await self._store.sweeps.delete_runs(ids)
        self._metrics.swept(["runs"] * len(ids))
        log.info("dispatch.runs_removed", count=len(ids))

    def _until(self, run: Run) -> float:
        ended, failed = run.finished_at or self._clock(), run.status is RunStatus.FAILED
        return self._kept.until(run.fetching.retention, ended, self._settings.retention.runs_days, failed=failed)


def _pairs(sweeps: Sequence[RunSweep], runs: Sequence[Run]) -> list[tuple[RunSweep, Run]]:
    by_id = {run.id: run for run in runs}
    return [(sweep, by_id[sweep.id]) for sweep in sweeps]
