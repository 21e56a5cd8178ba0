"""Events of jobs, for their watchers."""

from msgspec import Raw
from sqlalchemy import RowMapping, select

from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.locks import change_job, locked_job
from scrapeyard.store.jobs.rules.rows import Fields
from scrapeyard.store.ports.jobs import JobEvent
from scrapeyard.store.tables.jobs import JOB_EVENTS, JOBS


class SqlEvents(SqlPart):
    """The EventStore."""

    async def add(self, job_id: str, kind: JobEventKind, data: Raw, now: float) -> None:
        """Append an event; the same event at the same time is written once. Does nothing if there is no such job."""

        def work() -> Script[None]:
            job = yield from locked_job(job_id)
            if job is None or (yield from _is_told(job, kind, bytes(data), now)):
                return
            number = job["events"] + 1
            yield BulkInsert(JOB_EVENTS, [(job["number"], number, now, str(kind), bytes(data))])
            yield from change_job(job, {"events": number})

        if is_id(job_id):
            await self._database.play(work)

    async def after(self, job_id: str, after: int, limit: int) -> list[JobEvent]:
        """Events numbered higher than `after`, in order."""
        columns = (JOB_EVENTS.c.number, JOB_EVENTS.c.at, JOB_EVENTS.c.kind, JOB_EVENTS.c.data)
        query = select(*columns).join(JOBS, JOBS.c.number == JOB_EVENTS.c.job)
        query = query.where(JOBS.c.id == job_id, JOB_EVENTS.c.number > after).order_by(JOB_EVENTS.c.number).limit(limit)
        rows = await self._database.fetch(query) if is_id(job_id) else ()
        return [to_event(row) for row in rows]


def to_event(row: RowMapping) -> JobEvent:
    """An event from its row."""
    return JobEvent(number=row["number"], at=row["at"], kind=row["kind"], data=Raw(row["data"]))


def _is_told(job: Fields, kind: JobEventKind, data: bytes, now: float) -> Script[bool]:
    same = select(JOB_EVENTS.c.data).where(JOB_EVENTS.c.job == job["number"], JOB_EVENTS.c.kind == str(kind))
    return any(told == data for (told,) in (yield Execute(same.where(JOB_EVENTS.c.at == now))))
