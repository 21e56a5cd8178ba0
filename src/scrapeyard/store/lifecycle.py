"""What happened to runs and jobs, in the order of time."""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw
from sqlalchemy import ColumnElement, and_, or_, select

from scrapeyard.model import Run
from scrapeyard.model.job import Job
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.jobs.rules.rows import to_job
from scrapeyard.store.ports.jobs import JobEvent
from scrapeyard.store.runs.rows import to_run
from scrapeyard.store.runs.statements import LISTED, RUNNING
from scrapeyard.store.tables.jobs import JOB_EVENTS, JOBS
from scrapeyard.store.tables.runs import RUNS

_EVENT: Final = tuple(JOB_EVENTS.c[name].label(f"event_{name}") for name in ("number", "at", "kind", "data"))
_KINDS: Final = (JobEventKind.STATUS.value, JobEventKind.ARCHIVE.value)


class SqlLifecycle(SqlPart):
    """The LifecycleStore."""

    async def runs_created(self, since: float, after: str, limit: int) -> Sequence[Run]:
        """Runs created later than `since`, or then and with an id above `after`."""
        return await self._runs(RUNS.c.created_at, since, after, limit)

    async def runs_running(self, limit: int) -> Sequence[Run]:
        """Runs that are running."""
        query = select(*LISTED).where(RUNNING).order_by(RUNS.c.id).limit(limit)
        return [to_run(row) for row in await self._database.fetch(query)]

    async def runs_ended(self, since: float, after: str, limit: int) -> Sequence[Run]:
        """Runs that ended later than `since`, or then and with an id above `after`."""
        return await self._runs(RUNS.c.finished_at, since, after, limit)

    async def _runs(self, column: ColumnElement[float], since: float, after: str, limit: int) -> Sequence[Run]:
        later = or_(column > since, and_(column == since, RUNS.c.id > after))
        query = select(*LISTED).where(column >= since, later).order_by(column, RUNS.c.id).limit(limit)
        return [to_run(row) for row in await self._database.fetch(query)]

    async def jobs_created(self, after: str, limit: int) -> Sequence[Job]:
        """Jobs whose id is higher, the oldest first."""
        query = select(*JOBS.c).where(JOBS.c.id > after).order_by(JOBS.c.id).limit(limit)
        return [to_job(row) for row in await self._database.fetch(query)]

    async def jobs_changed(self, since: float, limit: int) -> Sequence[tuple[Job, JobEvent | None]]:
        """Jobs that ended at `since` or later, or have an event from then."""
        found: list[tuple[Job, JobEvent | None]] = []
        ended = select(*JOBS.c).where(JOBS.c.finished_at >= since).order_by(JOBS.c.finished_at).limit(limit)
        query = select(*JOBS.c, *_EVENT).join(JOB_EVENTS, JOB_EVENTS.c.job == JOBS.c.number)
        query = query.where(JOB_EVENTS.c.at >= since, JOB_EVENTS.c.kind.in_(_KINDS))
        for row in await self._database.fetch(query.order_by(JOB_EVENTS.c.at, JOB_EVENTS.c.number).limit(limit)):
            kind, data = row["event_kind"], Raw(row["event_data"])
            event = JobEvent(number=row["event_number"], at=row["event_at"], kind=kind, data=data)
            found.append((to_job(row), event))
        return found + [(to_job(row), None) for row in await self._database.fetch(ended)]
