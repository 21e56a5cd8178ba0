"""Jobs by what they are, and those that need work. Listings are rows of their own, written with the job's row.

Filters other than "still open" read the small row of every job, the newest first: about 5,000 for each megabyte.
"""

from collections.abc import Sequence
from typing import Final

from scrapeyard.model import SCRAPER_ID
from scrapeyard.model.job import FINAL_JOB, Job, JobStatus
from scrapeyard.store.database.paging import as_cursor, numbers
from scrapeyard.store.dynamo.items.due import DueItems
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import JOBS, OPEN_JOBS, number
from scrapeyard.store.dynamo.table.expressions import Where, above, all_of, any_of, below, equals, one_of
from scrapeyard.store.dynamo.table.table import DynamoTable, each
from scrapeyard.store.jobs.rules.rows import Row, to_job
from scrapeyard.store.jobs.rules.states import HANDS_OUT, TAKES_ITEMS
from scrapeyard.store.ports.jobs import JobFilter, JobPage

_RUNNABLE: Final = 1000


class JobListing:
    """Reads jobs by condition. What a listing shows is checked once more by the job's own row."""

    def __init__(self, table: DynamoTable, rows: DynamoJobRows, due: DueItems) -> None:
        self._table = table
        self._rows = rows
        self._due = due

    async def page(self, where: JobFilter, cursor: str | None, limit: int) -> JobPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        before = None if cursor is None else below("sk", number(numbers(cursor, 1)[0]))
        if (where.scraper is not None and not SCRAPER_ID.fullmatch(where.scraper)) or where.statuses == ():
            return JobPage(jobs=())
        listed = OPEN_JOBS if _only_open(where) else JOBS
        asked = _conditions(where)
        found = await self._table.query(
            listed, sort=before, where=all_of(*asked) if asked else None, descending=True, limit=limit + 1
        )
        rows = await self._rows.get_many(item["id"] for item in found[:limit])
        jobs = tuple(to_job(row) for row in rows if _matches(row, where))
        more = len(found) > limit > 0
        return JobPage(jobs=jobs, next_cursor=as_cursor(str(int(found[limit - 1]["sk"]))) if more else None)

    async def open_rows(self, statuses: Sequence[str] = ()) -> list[Row]:
        """Rows of jobs that somebody still has to do something for, the oldest first; only with these statuses, if any
        are given."""
        where = one_of("status", statuses) if statuses else None
        return await self._rows.get_many([item["id"] for item in await self._table.query(OPEN_JOBS, where=where)])

    async def runnable(self, now: float) -> list[Job]:
        """Jobs with items to hand out, or paused by a breaker whose cooldown ended. Oldest first."""
        rows = [row for row in await self.open_rows() if row["pending"] > 0 and _runs(row, now)]
        ready = await each(rows, lambda row: self._has_items(row, now))
        return [to_job(row) for row, is_ready in zip(rows, ready, strict=True) if is_ready][:_RUNNABLE]

    async def overdue(self, now: float, limit: int) -> list[Job]:
        """Jobs whose deadline has passed and that are not ending yet, the oldest first."""
        rows = await self.open_rows([status.value for status in TAKES_ITEMS])
        late = [row for row in rows if row["deadline"] is not None and row["deadline"] <= now]
        return [to_job(row) for row in late if row["status"] in TAKES_ITEMS][:limit]

    async def any_open(self) -> bool:
        """Whether a job has not ended, or its files are not written yet."""
        going = [status.value for status in JobStatus if not status.is_final]
        where = any_of(one_of("status", going), equals("files_pending", True))
        return bool(await self._table.query(OPEN_JOBS, where=where, limit=1))

    async def settled(self, limit: int) -> list[Job]:
        """Jobs to finish: nothing to hand out, nothing handed out, nothing being read."""
        return [to_job(row) for row in await self.open_rows() if _is_settled(row)][:limit]

    async def _has_items(self, row: Row, now: float) -> bool:
        return bool(row["cursor"] < row["total"] or await self._due.any(row["id"], now))


def _runs(row: Row, now: float) -> bool:
    by_breaker = row["status"] == JobStatus.PAUSED and row["breaker_until"] is not None
    return row["status"] in HANDS_OUT or (by_breaker and bool(row["breaker_until"] <= now))


def _is_settled(row: Row) -> bool:
    by_breaker = row["status"] == JobStatus.PAUSED and row["breaker_until"] is not None
    ended = (row["status"] == JobStatus.RUNNING or by_breaker) and not row["reading"] and row["pending"] == 0
    out = row["queued"] + row["in_progress"]
    return bool((ended or row["status"] == JobStatus.CANCELLING) and out == 0)


def _only_open(where: JobFilter) -> bool:
    """Whether every job that matches is in the listing of open ones."""
    going = where.statuses is not None and not FINAL_JOB & set(where.statuses)
    return going or where.files_pending or where.reading is True


def _conditions(where: JobFilter) -> list[Where]:
    found = [] if where.statuses is None else [one_of("status", [status.value for status in where.statuses])]
    plain = {
        "scraper_id": where.scraper,
        "schedule_id": where.schedule_id,
        "owner": where.owner,
        "domain": where.domain,
        "reading": where.reading,
        "files_pending": where.files_pending or None,
    }
    found += [equals(name, value) for name, value in plain.items() if value is not None]
    return found if where.finished_after is None else [*found, above("finished_at", where.finished_after)]


def _matches(row: Row, where: JobFilter) -> bool:
    """Of what may have changed since the listing was read."""
    finished = where.finished_after is None or (row["finished_at"] or 0.0) > where.finished_after
    reading = where.reading is None or bool(row["reading"]) == where.reading
    files = not where.files_pending or bool(row["files_pending"])
    return finished and reading and files and (where.statuses is None or row["status"] in where.statuses)
