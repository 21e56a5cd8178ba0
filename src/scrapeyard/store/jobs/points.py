"""How jobs stood over time: a point for each running job every few seconds, fewer as the job gets longer."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import delete, func, select

from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.jobs.rules import ticks
from scrapeyard.store.jobs.rules.rows import to_counts, to_use
from scrapeyard.store.jobs.rules.ticks import COPIED, SAMPLED, tick_of, ticks_apart
from scrapeyard.store.ports.jobs import JobPoint
from scrapeyard.store.tables.jobs import JOB_POINTS, JOBS

_PAGE: Final = 1000


class SqlPoints(SqlPart):
    """The PointStore."""

    async def sample(self, now: float) -> None:
        """Write a point for each job that is going on, unless it has one of this time."""
        after = 0
        columns = [JOBS.c[name] for name in ("number", "created_at", *COPIED)]
        going = select(*columns).where(JOBS.c.status.in_(SAMPLED)).order_by(JOBS.c.number).limit(_PAGE)
        insert = self._database.insert(JOB_POINTS).on_conflict_do_nothing()
        while rows := await self._database.fetch(going.where(JOBS.c.number > after)):
            after = rows[-1]["number"]
            await self._database.write_rows(insert, [_point(row, now) for row in rows])

    async def thin(self, now: float) -> None:
        """Remove points of jobs that are going on and have more than MAX_POINTS: every other, or more."""
        query = select(JOBS.c.number, JOBS.c.created_at).join(JOB_POINTS, JOB_POINTS.c.job == JOBS.c.number)
        query = query.where(JOBS.c.status.in_(SAMPLED)).group_by(JOBS.c.number, JOBS.c.created_at)
        for row in await self._database.fetch(query.having(func.count() > ticks.MAX_POINTS)):
            step = ticks_apart(now - row["created_at"])
            between = JOB_POINTS.c.tick % step != 0
            await self._database.change(delete(JOB_POINTS).where(JOB_POINTS.c.job == row["number"], between))

    async def of_job(self, job_id: str) -> Sequence[JobPoint]:
        """All points of a job, the oldest first."""
        query = select(*(JOB_POINTS.c[name] for name in ("at", *COPIED))).join(JOBS, JOBS.c.number == JOB_POINTS.c.job)
        query = query.where(JOBS.c.id == job_id).order_by(JOB_POINTS.c.tick)
        rows = await self._database.fetch(query) if is_id(job_id) else ()
        return [JobPoint(at=row["at"], counts=to_counts(row), use=to_use(row)) for row in rows]


def _point(row: Any, now: float) -> dict[str, Any]:
    age = max(0.0, now - row["created_at"])
    copied = {name: row[name] for name in COPIED}
    return {"job": row["number"], "tick": tick_of(age), "at": now, **copied}
