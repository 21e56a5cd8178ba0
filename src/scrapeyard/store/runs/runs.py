"""How a run reaches its one outcome.

Every status change is one statement that names the statuses it may leave. So of two concurrent callers one wins and the
other gets False. A run whose cancel was requested never goes back to QUEUED: whatever would put it there ends it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    Update,
    case,
    func,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import (
    FINAL,
    SCRAPER_ID,
    ExitReason,
    LogLine,
    Run,
    RunError,
    RunProgress,
    RunStatus,
    RunWait,
    status_of,
)
from scrapeyard.store.database.database import Database, SqlPart
from scrapeyard.store.database.paging import is_id, newest_first, next_cursor
from scrapeyard.store.ports.runs import Ending, RunFilter, RunPage
from scrapeyard.store.runs.rows import (
    Row,
    cancelled,
    ended_row,
    packed,
    queued_row,
    retry_row,
    running_row,
    to_lines,
    to_run,
    with_progress,
)
from scrapeyard.store.runs.statements import LISTED, QUEUED, RUNNING, UNFINISHED, WHOLE, run_statements
from scrapeyard.store.tables.runs import RUNS

_ROWS: Final = 500
"""Rows per statement. SQLite and PostgreSQL allow some 32,000 values; a run has 30."""


class SqlRuns(SqlPart):
    """The RunStore."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._statements = run_statements(database.backend.insert)

    async def add(self, runs: Sequence[Run]) -> None:
        """Write accepted runs as QUEUED. An existing run is left as it is."""
        await self._write_all(self._statements.add, [queued_row(run) for run in runs])

    async def begin(self, runs: Sequence[Run]) -> None:
        """Write that attempts began. If `runs` has several attempts of one run, only the last is written."""
        last = {run.id: run for run in sorted(runs, key=lambda run: run.attempt)}
        await self._write_all(self._statements.begin, [running_row(run) for run in last.values()])

    async def finish(self, endings: Sequence[Ending]) -> list[bool]:
        """Record outcomes, with logs and artifacts, in one transaction. For each: True if this call recorded it."""
        if not endings:
            return []
        if len(endings) <= _ROWS and _is_plain(endings):
            rows = _by_id(ended_row(ending) for ending in endings)
            ids = set(await self._database.write_rows(self._statements.finish, rows))
            return [ending.run.id in ids for ending in endings]

        async def work(connection: AsyncConnection) -> list[bool]:
            recorded = [False] * len(endings)
            for turn in _turns(endings):
                ids = await self._finish(connection, [endings[place] for place in turn])
                for place in turn:
                    recorded[place] = endings[place].run.id in ids
            return recorded

        return await self._database.write(work)

    async def claim(self, run_id: str, attempt: int, worker_id: str, now: float, lease_until: float) -> bool:
        """Claim a redelivered run: True if it was QUEUED at this attempt and now is RUNNING under this worker."""
        began = {"status": RunStatus.RUNNING.value, "worker_id": worker_id, "started_at": now}
        statement = _at(run_id, attempt).where(QUEUED).values(**began, lease_until=lease_until, not_before=None)
        return bool(await self._database.change(statement.returning(RUNS.c.id)))

    async def renew(self, worker_id: str, run_ids: Sequence[str], lease_until: float) -> list[str]:
        """Renew leases; returns the runs to stop. A run whose start is not written yet (no row, or QUEUED at its first
        attempt) may continue."""
        stop: list[str] = []
        for ids in _cut(sorted(run_ids)):
            stop += await self._renew(worker_id, ids, lease_until)
        return stop

    async def note_progress(
        self, run_id: str, attempt: int, progress: RunProgress | None, waiting: RunWait | None = None
    ) -> bool:
        """Write how far a RUNNING run is, and what it waits for. False if it is not running at this attempt."""

        async def work(connection: AsyncConnection) -> bool:
            place = (RUNS.c.id == run_id) & (RUNS.c.attempt == attempt) & RUNNING
            rows = (await connection.execute(select(RUNS.c.report).where(place).with_for_update())).all()
            if rows:
                report = with_progress(rows[0][0], progress, waiting)
                await connection.execute(update(RUNS).where(place).values(report=report))
            return bool(rows)

        return await self._database.write(work)

    async def release(self, run_ids: Sequence[str], worker_id: str, now: float) -> None:
        """Give unfinished runs back: QUEUED again at the same attempt, due now; CANCELLED if that was requested."""
        mine = update(RUNS).where(RUNNING, RUNS.c.worker_id == worker_id)
        await self._update_all(mine.values(_put_back(now)), run_ids)

    async def cancel(self, run_id: str, now: float) -> Run | None:
        """Cancel a run. Returns the resulting run; None if there is no such run."""
        if not is_id(run_id):
            return None
        values = {
            "cancel_requested": True,
            "status": case((QUEUED, RunStatus.CANCELLED.value), else_=RUNS.c.status),
            "exit_reason": case((QUEUED, ExitReason.CANCELLED.value), else_=null()),
            "finished_at": case((QUEUED, now), else_=null()),
            "not_before": None,
        }
        statement = update(RUNS).where(RUNS.c.id == run_id, UNFINISHED).values(values)
        rows = await self._database.change(statement.returning(*WHOLE))
        rows = rows or await self._database.fetch(select(*WHOLE).where(RUNS.c.id == run_id))
        return to_run(rows[0]) if rows else None

    async def end(self, run_id: str, attempt: int, reason: ExitReason, error: RunError, now: float) -> bool:
        """Make an unfinished run final from outside. False if it ended or moved on meanwhile."""
        values = {"status": status_of(reason).value, "exit_reason": reason.value, "error": packed(error)}
        statement = _at(run_id, attempt).where(UNFINISHED)
        statement = statement.values(**values, finished_at=now, lease_until=None, not_before=None)
        return bool(await self._database.change(statement.returning(RUNS.c.id)))

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
        for some in _cut(ids):
            query = select(*WHOLE).where(RUNS.c.id.in_(some), RUNS.c.status.in_(FINAL))
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
        query = newest_first(select(*LISTED).where(*_conditions(where)), RUNS.c.id, cursor, limit)
        if where.scraper is not None and not SCRAPER_ID.fullmatch(where.scraper):
            return RunPage(runs=())
        runs = tuple(to_run(row) for row in await self._database.fetch(query))
        return RunPage(runs=runs[:limit], next_cursor=next_cursor(runs, limit))

    async def due(self, now: float, queued_before: float, limit: int) -> list[Run]:
        """QUEUED runs that should be in the queue; within each of the two kinds the longest waiting first."""
        waited = _oldest(RUNS.c.not_before, RUNS.c.not_before <= now, limit)
        unclaimed = _oldest(RUNS.c.queued_at, RUNS.c.not_before.is_(None) & (RUNS.c.queued_at < queued_before), limit)
        ids = union_all(select(waited.subquery()), select(unclaimed.subquery())).limit(limit).subquery()
        rows = await self._database.fetch(select(*WHOLE).where(RUNS.c.id.in_(select(ids.c.id))))
        return [to_run(row) for row in rows]

    async def requeued(self, run_ids: Sequence[str], now: float) -> None:
        """Record that these QUEUED runs were published at `now`."""
        await self._update_all(update(RUNS).where(QUEUED).values(queued_at=now, not_before=None), run_ids)

    async def expired(self, now: float, limit: int) -> list[Run]:
        """RUNNING runs whose lease has ended, the longest silent first."""
        query = select(*WHOLE).where(RUNNING, RUNS.c.lease_until < now).order_by(RUNS.c.lease_until).limit(limit)
        return [to_run(row) for row in await self._database.fetch(query)]

    async def retry(self, run_id: str, attempt: int, now: float) -> bool:
        """Put a RUNNING run whose worker was lost back to QUEUED at `attempt` + 1, due now. False if it moved on, or if
        its cancel was requested, which ends it here."""
        following = case((RUNS.c.cancel_requested, attempt), else_=attempt + 1)
        statement = _at(run_id, attempt).where(RUNNING).values(_put_back(now) | {"attempt": following})
        rows = await self._database.change(statement.returning(RUNS.c.status))
        return bool(rows) and rows[0]["status"] == RunStatus.QUEUED.value

    async def counts(self) -> dict[RunStatus, int]:
        """How many runs are not final, by status; both statuses are always present."""
        query = select(RUNS.c.status, func.count().label("runs")).where(UNFINISHED).group_by(RUNS.c.status)
        found = {RunStatus(row["status"]): row["runs"] for row in await self._database.fetch(query)}
        return {RunStatus.QUEUED: 0, RunStatus.RUNNING: 0} | found

    async def waiting(self) -> dict[tuple[str, str], int]:
        """How many QUEUED runs wait for a worker, by lane and owner."""
        columns = (RUNS.c.lane, RUNS.c.owner)
        query = select(*columns, func.count().label("runs")).where(QUEUED, RUNS.c.not_before.is_(None))
        rows = await self._database.fetch(query.group_by(*columns))
        return {(row["lane"], row["owner"]): row["runs"] for row in rows}

    async def unfinished(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that have not ended."""
        query = select(RUNS.c.id).where(RUNS.c.id.in_(list(run_ids)), UNFINISHED)
        return {row["id"] for row in await self._database.fetch(query)}

    async def ended_since(self, finished_after: float) -> dict[tuple[str, RunStatus], int]:
        """How many runs have ended since then, by id of the scraper and status."""
        columns = (RUNS.c.scraper_id, RUNS.c.status)
        query = select(*columns, func.count().label("runs")).where(RUNS.c.finished_at >= finished_after)
        rows = await self._database.fetch(query.group_by(*columns))
        return {(row["scraper_id"], RunStatus(row["status"])): row["runs"] for row in rows}

    async def _finish(self, connection: AsyncConnection, endings: list[Ending]) -> set[str]:
        again = [ending for ending in endings if ending.outcome.retry_after is not None]
        stopped = await _asked_to_stop(connection, [ending.run.id for ending in again])
        finals = [ending for ending in endings if ending.outcome.retry_after is None]
        finals += [cancelled(ending) for ending in again if ending.run.id in stopped]
        going = [ending for ending in again if ending.run.id not in stopped]
        retries = [ending for ending in going if not ending.outcome.postponed]
        waiting = [ending for ending in going if ending.outcome.postponed]
        final = await self._record(connection, self._statements.finish, finals, ended_row)
        put_back = await self._record(connection, self._statements.retry, retries, retry_row)
        return final | put_back | await self._record(connection, self._statements.postpone, waiting, retry_row)

    async def _record(
        self, connection: AsyncConnection, statement: Any, endings: list[Ending], as_row: Callable[[Ending], Row]
    ) -> set[str]:
        recorded: set[str] = set()
        for rows in _cut(_by_id(as_row(ending) for ending in endings)):
            recorded.update(await connection.scalars(statement, rows))
        return recorded

    async def _write_all(self, statement: Any, rows: list[Row]) -> None:
        async def work(connection: AsyncConnection) -> None:
            for some in _cut(_by_id(rows)):
                await connection.execute(statement, some)

        if 0 < len(rows) <= _ROWS:
            await self._database.write_rows(statement, _by_id(rows))
        elif rows:
            await self._database.write(work)

    async def _update_all(self, statement: Update, run_ids: Sequence[str]) -> None:
        for ids in _cut(sorted(run_ids)):

            async def work(connection: AsyncConnection, ids: Sequence[str] = ids) -> None:
                await _locked(connection, ids)
                await connection.execute(statement.where(RUNS.c.id.in_(ids)))

            await self._database.write(work)

    async def _renew(self, worker_id: str, ids: Sequence[str], lease_until: float) -> list[str]:
        async def work(connection: AsyncConnection) -> list[str]:
            rows = await _locked(connection, ids)
            held = {row["id"] for row in rows if row["status"] == RunStatus.RUNNING and row["worker_id"] == worker_id}
            await connection.execute(update(RUNS).where(RUNS.c.id.in_(held)).values(lease_until=lease_until))
            lost = {row["id"] for row in rows if _is_written(row)} - held
            return sorted(lost | {row["id"] for row in rows if row["cancel_requested"]})

        return await self._database.write(work)


def _at(run_id: str, attempt: int) -> Update:
    return update(RUNS).where(RUNS.c.id == run_id, RUNS.c.attempt == attempt)


def _put_back(now: float) -> Row:
    stops = RUNS.c.cancel_requested
    return {
        "status": case((stops, RunStatus.CANCELLED.value), else_=RunStatus.QUEUED.value),
        "exit_reason": case((stops, ExitReason.CANCELLED.value), else_=null()),
        "finished_at": case((stops, now), else_=null()),
        "not_before": case((stops, null()), else_=now),
        "worker_id": "",
        "started_at": None,
        "lease_until": None,
    }


async def _locked(connection: AsyncConnection, ids: Sequence[str]) -> Sequence[RowMapping]:
    """The rows of these runs, locked until the end of the transaction if the database has row locks. Always locked in
    the same order, so that overlapping batches do not deadlock."""
    columns = (RUNS.c.id, RUNS.c.status, RUNS.c.attempt, RUNS.c.worker_id, RUNS.c.cancel_requested)
    query = select(*columns).where(RUNS.c.id.in_(ids)).order_by(RUNS.c.id).with_for_update()
    return (await connection.execute(query)).mappings().all()


async def _asked_to_stop(connection: AsyncConnection, run_ids: Sequence[str]) -> set[str]:
    stopped: set[str] = set()
    for ids in _cut(sorted(run_ids)):
        stopped.update(row["id"] for row in await _locked(connection, ids) if row["cancel_requested"])
    return stopped


def _is_written(row: RowMapping) -> bool:
    """Whether the start of the run's attempt has been written. Later attempts are claimed, which writes at once."""
    return bool(row["status"] != RunStatus.QUEUED or row["attempt"] > 1)


def _is_plain(endings: Sequence[Ending]) -> bool:
    """Whether one statement can record them all: no retries, and no run twice."""
    return len({ending.run.id for ending in endings if ending.outcome.retry_after is None}) == len(endings)


def _turns(endings: Sequence[Ending]) -> list[list[int]]:
    """Group the endings' positions into rounds with each run at most once, in order: one statement cannot change a row
    twice."""
    turns: list[list[int]] = []
    seen: dict[str, int] = {}
    for place, ending in enumerate(endings):
        turn = seen.get(ending.run.id, -1) + 1
        seen[ending.run.id] = turn
        if turn == len(turns):
            turns.append([])
        turns[turn].append(place)
    return turns


def _by_id(rows: Iterable[Row]) -> list[Row]:
    # In the same order as _locked, for the same reason.
    return sorted(rows, key=lambda row: str(row["id"]))


def _cut(things: Sequence[Any]) -> Iterable[Any]:
    return (things[start : start + _ROWS] for start in range(0, len(things), _ROWS))


def _conditions(where: RunFilter) -> Iterator[ColumnElement[bool]]:
    if where.statuses is not None:
        yield RUNS.c.status.in_(where.statuses)
    if where.exit_reasons is not None:
        yield RUNS.c.exit_reason.in_(where.exit_reasons)
    if where.scraper is not None:
        yield RUNS.c.scraper_id == where.scraper
    if where.owner is not None:
        yield RUNS.c.owner == where.owner
    if where.created_after is not None:
        yield RUNS.c.created_at >= where.created_after
    if where.created_before is not None:
        yield RUNS.c.created_at < where.created_before


def _oldest(by: ColumnElement[float], condition: ColumnElement[bool], limit: int) -> Select[str]:
    return select(RUNS.c.id).where(QUEUED, condition).order_by(by).limit(limit)
