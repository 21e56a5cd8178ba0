"""Reading runs."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Select, delete, func, select, union_all

from scrapeyard.errors import BadRequest
from scrapeyard.model import FINAL, SCRAPER_ID, LogLine, Run, RunStatus
from scrapeyard.store.database.database import Database
from scrapeyard.store.ports.runs import RunFilter, RunPage
from scrapeyard.store.runs.rows import LISTED, QUEUED, RUNNING, UNFINISHED, WHOLE, to_lines, to_run
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.runs import RUNS

_IDS = 500
"""Maximum ids in one query."""


class SqlRunReads:
    """The half of RunStore that reads, and the retention."""

    _database: Database

    async def get(self, run_id: str) -> Run | None:
        """The whole run, `result` included if it is stored inline. None if there is no such run."""
        if not is_id(run_id):
            return None
        rows = await self._database.fetch(select(*WHOLE).where(RUNS.c.id == run_id))
        return to_run(rows[0]) if rows else None

    async def finals(self, run_ids: Sequence[str]) -> list[Run]:
        """The ended ones of these runs, whole."""
        ids = [run_id for run_id in run_ids if is_id(run_id)]
        found: list[Run] = []
        for start in range(0, len(ids), _IDS):
            query = select(*WHOLE).where(RUNS.c.id.in_(ids[start : start + _IDS]), RUNS.c.status.in_(FINAL))
            found += [to_run(row) for row in await self._database.fetch(query)]
        return found

    async def logs(self, run_id: str) -> tuple[tuple[LogLine, ...], bool]:
        """The lines of the last recorded attempt, and whether they were cut. Empty if there is no such run."""
        if not is_id(run_id):
            return (), False
        rows = await self._database.fetch(select(RUNS.c.logs, RUNS.c.logs_cut).where(RUNS.c.id == run_id))
        return (to_lines(rows[0]["logs"]), rows[0]["logs_cut"]) if rows else ((), False)

    async def page(self, where: RunFilter, cursor: str | None, limit: int) -> RunPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        query = select(*LISTED).where(*_conditions(where)).order_by(RUNS.c.id.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(RUNS.c.id < _last_id(cursor))
        if where.scraper is not None and not SCRAPER_ID.fullmatch(where.scraper):
            return RunPage(runs=())
        runs = tuple(to_run(row) for row in await self._database.fetch(query))
        return RunPage(runs=runs[:limit], next_cursor=_cursor(runs[limit - 1].id) if len(runs) > limit else None)

    async def due(self, now: float, queued_before: float, limit: int) -> list[Run]:
        """QUEUED runs that should be in the queue; within each of the two kinds the longest waiting first."""
        waited = _oldest(RUNS.c.not_before, RUNS.c.not_before <= now, limit)
        unclaimed = _oldest(RUNS.c.queued_at, RUNS.c.not_before.is_(None) & (RUNS.c.queued_at < queued_before), limit)
        ids = union_all(select(waited.subquery()), select(unclaimed.subquery())).limit(limit).subquery()
        rows = await self._database.fetch(select(*WHOLE).where(RUNS.c.id.in_(select(ids.c.id))))
        return [to_run(row) for row in rows]

    async def expired(self, now: float, limit: int) -> list[Run]:
        """RUNNING runs whose lease has ended, the longest silent first."""
        query = select(*WHOLE).where(RUNNING, RUNS.c.lease_until < now).order_by(RUNS.c.lease_until).limit(limit)
        return [to_run(row) for row in await self._database.fetch(query)]

    async def delete_before(self, finished_before: float, limit: int) -> list[str]:
        """Delete final runs past the retention, the oldest first; returns their ids."""
        old = select(RUNS.c.id).where(RUNS.c.finished_at < finished_before).order_by(RUNS.c.finished_at).limit(limit)
        rows = await self._database.change(delete(RUNS).where(RUNS.c.id.in_(old)).returning(RUNS.c.id))
        return [row["id"] for row in rows]

    async def counts(self) -> dict[RunStatus, int]:
        """How many runs are not final, by status; both statuses are always present."""
        query = select(RUNS.c.status, func.count().label("runs")).where(UNFINISHED).group_by(RUNS.c.status)
        found = {RunStatus(row["status"]): row["runs"] for row in await self._database.fetch(query)}
        return {RunStatus.QUEUED: 0, RunStatus.RUNNING: 0} | found


def _conditions(where: RunFilter) -> Iterator[ColumnElement[bool]]:
    if where.statuses is not None:
        yield RUNS.c.status.in_(where.statuses)
    if where.exit_reasons is not None:
        yield RUNS.c.exit_reason.in_(where.exit_reasons)
    if where.scraper is not None:
        yield RUNS.c.scraper_id == where.scraper
    if where.created_after is not None:
        yield RUNS.c.created_at >= where.created_after
    if where.created_before is not None:
        yield RUNS.c.created_at < where.created_before


def _oldest(by: ColumnElement[float], condition: ColumnElement[bool], limit: int) -> Select[str]:
    return select(RUNS.c.id).where(QUEUED, condition).order_by(by).limit(limit)


def _cursor(run_id: str) -> str:
    return urlsafe_b64encode(run_id.encode()).decode().rstrip("=")


def _last_id(cursor: str) -> str:
    try:
        run_id = urlsafe_b64decode((cursor + "=" * (-len(cursor) % 4)).encode("ascii")).decode("ascii")
    except (UnicodeError, binascii.Error):
        run_id = ""
    if not is_id(run_id) or _cursor(run_id) != cursor:
        raise BadRequest("cursor: not one of ours; take `next_cursor` of the page before, as it is")
    return run_id
