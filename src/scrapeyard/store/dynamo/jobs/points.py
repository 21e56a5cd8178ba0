"""How jobs stood over time: a point for each running job every few seconds, fewer as the job gets longer."""

from collections.abc import Sequence
from typing import Any, Final

from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import OPEN_JOBS, number, part_of
from scrapeyard.store.dynamo.table.expressions import one_of
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import each
from scrapeyard.store.dynamo.table.values import key_of
from scrapeyard.store.jobs.rules import ticks
from scrapeyard.store.jobs.rules.rows import Row, to_counts, to_use
from scrapeyard.store.jobs.rules.ticks import COPIED, SAMPLED, tick_of, ticks_apart
from scrapeyard.store.ports.jobs import JobPoint

_GOING: Final = one_of("status", SAMPLED)


class DynamoPoints(DynamoPart):
    """The PointStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows

    async def sample(self, now: float) -> None:
        """Write a point for each job that is going on, unless it has one of this time."""
        await each(await self._going(), lambda job: self._table.add(_point(job, now)))

    async def thin(self, now: float) -> None:
        """Remove points of jobs that are going on and have more than MAX_POINTS: every other, or more."""

        async def one(job: Row) -> None:
            part = part_of(job["id"], "points")
            if await self._table.count(part) > ticks.MAX_POINTS:
                step = ticks_apart(now - job["created_at"])
                points = await self._table.query(part)
                await self._table.delete_many(key_of(point) for point in points if int(point["sk"]) % step)

        await each(await self._going(), one)

    async def of_job(self, job_id: str) -> Sequence[JobPoint]:
        """All points of a job, the oldest first."""
        rows = await self._table.query(part_of(job_id, "points")) if is_id(job_id) else []
        return [JobPoint(at=row["at"], counts=to_counts(row), use=to_use(row)) for row in rows]

    async def _going(self) -> list[Row]:
        listed = await self._table.query(OPEN_JOBS, where=_GOING)
        return [row for row in await self._rows.get_many(item["id"] for item in listed) if row["status"] in SAMPLED]


def _point(job: Row, now: float) -> dict[str, Any]:
    tick = tick_of(max(0.0, now - job["created_at"]))
    place = {"pk": part_of(job["id"], "points"), "sk": number(tick)}
    return {**place, "at": now, **{name: job[name] for name in COPIED}}
