"""Deliveries of jobs to sinks, in the store."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from msgspec.structs import asdict, replace
from sqlalchemy import RowMapping, case, func, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.export import ITEMS_SINK, SinkDelivery, SinkState
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.jobs.rules.rows import new_sink_row, to_sinks
from scrapeyard.store.tables.jobs import JOB_SINKS, JOBS

_MOST_JOBS: Final = 1000
_ACTIVE: Final = literal_column("job_sinks.state") == literal_column("'active'")
"""Spelled out, since a partial index is used only if the query contains its condition."""


class SqlSinks(SqlPart):
    """The SinkStore."""

    async def add(self, job_id: str, sink: str, now: float) -> bool:
        """Deliver the job to one more sink. False if there is no such job, or it is being deleted."""
        if not is_id(job_id):
            return False

        async def work(connection: AsyncConnection) -> bool:
            query = select(JOBS.c.sinks, JOBS.c.deleting).where(JOBS.c.id == job_id).with_for_update()
            job = (await connection.execute(query)).mappings().first()
            if job is None or job["deleting"]:
                return False
            insert = self._database.insert(JOB_SINKS).values(new_sink_row(job_id, sink, now))
            await connection.execute(insert.on_conflict_do_nothing())
            names = json.encode(tuple(dict.fromkeys((*to_sinks(job), sink))))
            await connection.execute(update(JOBS).where(JOBS.c.id == job_id).values(sinks=names))
            return True

        return await self._database.write(work)

    async def of_jobs(self, job_ids: Sequence[str]) -> tuple[SinkDelivery, ...]:
        """Every delivery of these jobs, by job and sink."""
        known = [job_id for job_id in job_ids[:_MOST_JOBS] if is_id(job_id)]
        query = select(JOB_SINKS).where(JOB_SINKS.c.job_id.in_(known)).order_by(JOB_SINKS.c.job_id, JOB_SINKS.c.sink)
        return tuple(_delivery(row) for row in await self._database.fetch(query)) if known else ()

    async def due(self, now: float, limit: int, but_sinks: Sequence[str]) -> tuple[SinkDelivery, ...]:
        """Active ones to none of these sinks whose `due_at` has come, the longest due first."""
        query = select(JOB_SINKS).where(_ACTIVE, JOB_SINKS.c.due_at <= now, JOB_SINKS.c.sink.not_in(list(but_sinks)))
        rows = await self._database.fetch(query.order_by(JOB_SINKS.c.due_at).limit(limit))
        return tuple(_delivery(row) for row in rows)

    async def put(self, delivery: SinkDelivery) -> SinkDelivery | None:
        """Write a delivery whose `revision` is the one last seen. None if another was faster or it is gone."""
        after = replace(delivery, revision=delivery.revision + 1)
        mine = (JOB_SINKS.c.job_id == delivery.job_id) & (JOB_SINKS.c.sink == delivery.sink)
        statement = update(JOB_SINKS).where(mine, JOB_SINKS.c.revision == delivery.revision).values(_row(after))
        return after if await self._database.change(statement.returning(JOB_SINKS.c.revision)) else None

    async def wake(self, job_id: str, now: float, open_until: float) -> None:
        """Make the job's deliveries active and due now; those that failed stay so, but for a webhook's items."""
        if not is_id(job_id):
            return
        was_done = JOB_SINKS.c.state == SinkState.DONE.value
        woken = case((was_done, now), else_=JOB_SINKS.c.woken_at)
        values = {"state": SinkState.ACTIVE.value, "due_at": now, "open_until": open_until, "woken_at": woken}
        may_wake = (JOB_SINKS.c.state != SinkState.FAILED.value) | (JOB_SINKS.c.sink == ITEMS_SINK)
        statement = update(JOB_SINKS).where(JOB_SINKS.c.job_id == job_id, may_wake)
        await self._database.change(statement.values(values | {"revision": JOB_SINKS.c.revision + 1}))

    async def standing(self) -> dict[tuple[str, SinkState], int]:
        """How many deliveries there are, by sink and state."""
        query = select(JOB_SINKS.c.sink, JOB_SINKS.c.state, func.count().label("deliveries"))
        rows = await self._database.fetch(query.group_by(JOB_SINKS.c.sink, JOB_SINKS.c.state))
        return {(row["sink"], SinkState(row["state"])): row["deliveries"] for row in rows}


def _row(delivery: SinkDelivery) -> dict[str, Any]:
    return asdict(delivery) | {"state": delivery.state.value}


def _delivery(row: RowMapping) -> SinkDelivery:
    return SinkDelivery(**{**row, "state": SinkState(row["state"])})
