"""What becomes deliveries of webhooks: the news of jobs, the ends of runs."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, json
from sqlalchemy import delete, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import FINAL, Run
from scrapeyard.model.webhook import Webhook, WebhookDelivery
from scrapeyard.store.database import Database
from scrapeyard.store.jobs.rows import to_job
from scrapeyard.store.ports.jobs import JobEvent
from scrapeyard.store.ports.webhooks import JobNewsItem, Mark
from scrapeyard.store.runs.rows import WHOLE, to_run
from scrapeyard.store.tables.jobs import JOB_EVENTS, JOBS
from scrapeyard.store.tables.runs import RUNS
from scrapeyard.store.tables.schedules import DELIVERIES, MARKS, RUN_WATCHES
from scrapeyard.store.webhook_rows import delivery_row

_WEBHOOK: Final = json.Decoder(Webhook)
_MARK: Final = tuple(MARKS.c[name].label(f"mark_{name}") for name in ("job_id", "events", "status", "finished_at"))
_UNTOLD: Final = or_(
    MARKS.c.job_id.is_(None),
    JOBS.c.events > MARKS.c.events,
    JOBS.c.status != MARKS.c.status,
    JOBS.c.finished_at.is_distinct_from(MARKS.c.finished_at),
)


class SqlWebhooks:
    """The half of WebhookStore that writes deliveries."""

    _database: Database

    async def untold_jobs(self, limit: int, events: int) -> list[JobNewsItem]:
        """Jobs with a webhook that have events after their mark, or stand elsewhere than it says."""
        query = select(*JOBS.c, *_MARK).outerjoin(MARKS, MARKS.c.job_id == JOBS.c.id)
        query = query.where(JOBS.c.webhook.is_not(None), _UNTOLD).order_by(JOBS.c.number).limit(limit)
        found = []
        for row in await self._database.fetch(query):
            mark = _mark(row)
            after = await self._events_after(row["number"], mark, events) if row["events"] > mark.events else ()
            found.append(JobNewsItem(job=to_job(row), mark=mark, events=after))
        return found

    async def tell_job(self, job_id: str, before: Mark, after: Mark, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Write deliveries and move the mark, all or nothing. False: it stood elsewhere, or the job is gone."""
        values = {name: getattr(after, name) for name in after.__struct_fields__}

        async def work(connection: AsyncConnection) -> bool:
            # The row of the job is held, so that it is neither removed meanwhile nor told by another.
            held = select(JOBS.c.id).where(JOBS.c.id == job_id).with_for_update(key_share=True)
            if await connection.scalar(held) is None or await _mark_of(connection, job_id) != before:
                return False
            insert = self._database.insert(MARKS).values(job_id=job_id, **values)
            await connection.execute(insert.on_conflict_do_update(index_elements=["job_id"], set_=values))
            await self._add(connection, deliveries)
            return True

        return await self._database.write(work)

    async def watch_runs(self, run_ids: Sequence[str], webhook: Webhook, now: float) -> None:
        """Tell this receiver when these runs end."""
        packed = json.encode(webhook)
        statement = self._database.insert(RUN_WATCHES).on_conflict_do_nothing()
        for start in range(0, len(run_ids), 500):
            rows = [{"run_id": run_id, "webhook": packed, "created_at": now} for run_id in run_ids[start : start + 500]]
            await self._database.write_rows(statement, rows)

    async def ended_runs(self, limit: int) -> list[tuple[Run, Webhook]]:
        """Watched runs that have ended, whole."""
        ended = RUNS.c.status.in_(sorted(FINAL))
        query = select(*WHOLE, RUN_WATCHES.c.webhook).join(RUN_WATCHES, RUN_WATCHES.c.run_id == RUNS.c.id)
        rows = await self._database.fetch(query.where(ended).order_by(RUN_WATCHES.c.run_id).limit(limit))
        return [(to_run(row), _WEBHOOK.decode(row["webhook"])) for row in rows]

    async def tell_run(self, run_id: str, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write deliveries and watch the run no more, all or nothing."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(delete(RUN_WATCHES).where(RUN_WATCHES.c.run_id == run_id))
            await self._add(connection, deliveries)

        await self._database.write(work)

    async def forget_watches_before(self, created_before: float) -> None:
        """Drop watches of runs that never ended, or never were."""
        await self._database.change(delete(RUN_WATCHES).where(RUN_WATCHES.c.created_at < created_before))

    async def _events_after(self, job: int, mark: Mark, limit: int) -> tuple[JobEvent, ...]:
        query = select(JOB_EVENTS).where(JOB_EVENTS.c.job == job, JOB_EVENTS.c.number > mark.events)
        rows = await self._database.fetch(query.order_by(JOB_EVENTS.c.number).limit(limit))
        return tuple(
            JobEvent(number=row["number"], at=row["at"], kind=row["kind"], data=Raw(row["data"])) for row in rows
        )

    async def _add(self, connection: AsyncConnection, deliveries: Sequence[WebhookDelivery]) -> None:
        for delivery in deliveries:
            insert = self._database.insert(DELIVERIES).values(delivery_row(delivery))
            await connection.execute(insert.on_conflict_do_nothing())


async def _mark_of(connection: AsyncConnection, job_id: str) -> Mark:
    row = (await connection.execute(select(*_MARK).where(MARKS.c.job_id == job_id))).mappings().first()
    return Mark() if row is None else _mark(row)


def _mark(row: Any) -> Mark:
    if row["mark_job_id"] is None:
        return Mark()
    return Mark(events=row["mark_events"], status=row["mark_status"], finished_at=row["mark_finished_at"])
