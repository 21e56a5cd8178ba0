"""What is past its time, in the store."""

from collections.abc import Sequence
from typing import Final

from msgspec import json

from scrapeyard.model import FINAL, Run, RunStatus
from scrapeyard.model.job import Job
from scrapeyard.store.dynamo.jobs.sweeps import JobSweeps
from scrapeyard.store.dynamo.rows.run_rows import RUN, SWEEP
from scrapeyard.store.dynamo.runs import DynamoRuns
from scrapeyard.store.dynamo.schedules import DynamoSchedules
from scrapeyard.store.dynamo.table.expressions import absent, all_of, at_most, below, between, equals, one_of
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE, ENDED
from scrapeyard.store.dynamo.table.table import each
from scrapeyard.store.dynamo.table.values import Item
from scrapeyard.store.ports.retention import RunSweep, compared

_FAILED: Final = RunStatus.FAILED.value
_OTHERS: Final = [status.value for status in FINAL if status is not RunStatus.FAILED]


class DynamoSweeps(DynamoPart):
    """The SweepStore."""

    def __init__(self, base: DynamoBase, runs: DynamoRuns, jobs: JobSweeps, schedules: DynamoSchedules) -> None:
        super().__init__(base)
        self._runs = runs
        self._jobs = jobs
        self._schedules = schedules

    async def old_runs(self, finished_before: float, limit: int, *, failed_before: float | None = None) -> list[str]:
        """Final runs without a retention of their own, the oldest first."""
        failed = finished_before if failed_before is None else failed_before
        found: list[Item] = []
        for before, status in ((finished_before, one_of("status", _OTHERS)), (failed, equals("status", _FAILED))):
            where = all_of(absent("sweep_at"), status)
            found += await self._table.spread(RUN, ENDED, sort=below("ended_at", before), where=where, limit=limit)
        found.sort(key=lambda row: float(row["ended_at"]))
        return _ids(found[:limit])

    async def runs_due(self, now: float, limit: int) -> list[Run]:
        """Final runs that are to be looked at now."""
        found = await self._table.spread(SWEEP, DUE, sort=at_most("due_at", now), limit=limit)
        return await self._runs.listed(_ids(found))

    async def unswept_runs(self, finished_after: float, finished_before: float, limit: int) -> list[Run]:
        """Final runs of which nothing was removed and that nobody looks at, the oldest first."""
        if finished_after >= finished_before:
            return []
        untouched = all_of(absent("sweep_at"), absent("swept"))
        some = between("ended_at", finished_after, finished_before)
        found = await self._table.spread(RUN, ENDED, sort=some, where=untouched, limit=limit)
        return await self._runs.listed(_ids([row for row in found if row["ended_at"] < finished_before]))

    async def sweep_runs(self, sweeps: Sequence[RunSweep]) -> None:
        """Clear the columns of what was removed."""
        await each(sweeps, self._sweep)

    async def delete_runs(self, run_ids: Sequence[str]) -> None:
        """Delete these runs."""
        await each(run_ids, self._runs.remove)

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are runs or jobs that there are."""
        return await self._runs.known(ids) | await self._jobs.known_jobs(ids)

    async def jobs_due(self, now: float, limit: int) -> list[Job]:
        """Final jobs that are to be looked at now."""
        return await self._jobs.jobs_due(now, limit)

    async def put_off(self, job_ids: Sequence[str], until: float) -> None:
        """Look at these jobs no sooner."""
        await self._jobs.put_off(job_ids, until)

    async def begin_job(self, job_id: str, swept: dict[str, float]) -> Job | None:
        """Mark a final job as being swept, with what it loses."""
        return await self._jobs.begin_job(job_id, swept)

    async def clear_items(self, job: Job, first: int, last: int, *, results: bool, logs: bool) -> None:
        """Clear results or logs of some items."""
        await self._jobs.clear_items(job, first, last, results=results, logs=logs)

    async def end_job(self, job_id: str, sweep_at: float) -> None:
        """The sweep is done."""
        await self._jobs.end_job(job_id, sweep_at)

    async def baselines(self) -> frozenset[str]:
        """Jobs that exports to come compare with."""
        named = set(await self._jobs.compared())
        for schedule in await self._schedules.all():
            named |= set(compared(bytes(schedule.template)))
        return frozenset(named - {""})

    async def old_scopes(self, job_before: str) -> list[str]:
        """Scopes of snapshots that were last written by a job with a smaller id."""
        return await self._jobs.old_scopes(job_before)

    async def drop_scope(self, scope: str, job_before: str, limit: int) -> int:
        """Delete snapshots of a scope that jobs before wrote; returns how many."""
        return await self._jobs.drop_scope(scope, job_before, limit)

    async def _sweep(self, sweep: RunSweep) -> None:
        values: Item = {"swept": json.encode(sweep.swept) if sweep.swept else None, "sweep_at": sweep.sweep_at}
        if "results" in sweep.swept:
            values |= {"result": None, "result_key": ""}
        if "logs" in sweep.swept:
            values["logs"] = None
        await self._runs.clear(sweep.id, values)


def _ids(found: Sequence[Item]) -> list[str]:
    return [row["pk"].removeprefix("run/") for row in found]
