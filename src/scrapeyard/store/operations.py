"""Everything besides runs and jobs: heartbeats, leadership, idempotency keys, sessions, meters."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from msgspec import json
from msgspec.structs import asdict, replace
from sqlalchemy import (
    Column,
    ColumnElement,
    Double,
    Index,
    LargeBinary,
    RowMapping,
    Table,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.errors import BadRequest, SealBroken
from scrapeyard.model import Run, WorkerInfo
from scrapeyard.model.worker import DrainWish
from scrapeyard.sealing.sealer import MAGIC, OVERHEAD
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.ports.operations import (
    MAX_SESSIONS,
    MAX_STATE_KEYS,
    LoadSample,
    Meter,
    SessionChange,
    StateCheck,
    StateEntry,
    Use,
    UseBy,
    UseFilter,
    session_place,
)
from scrapeyard.store.ports.runs import KeyedAnswer
from scrapeyard.store.runs.rows import queued_row
from scrapeyard.store.runs.statements import run_statements
from scrapeyard.store.tables.content import Sealed
from scrapeyard.store.tables.runs import FETCH_METERS, ID, KEYS, LEADERS, METADATA, WORKERS
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")
_INFO: Final = json.Decoder(WorkerInfo)


class SqlWorkers(SqlPart):
    """The WorkerStore."""

    async def beat(self, worker: WorkerInfo) -> DrainWish:
        """Write a worker's heartbeat. Returns what was asked of it; its `drain` counts if it was not known."""
        row = {"id": worker.id, "seen_at": worker.seen_at, "info": json.encode(worker), "drain": worker.drain}
        insert = self._database.insert(WORKERS).values(row)
        told = {"seen_at": insert.excluded.seen_at, "info": insert.excluded.info}
        beat = insert.on_conflict_do_update(index_elements=["id"], set_=told).returning(WORKERS.c.drain)
        (row_now,) = await self._database.change(beat)
        return cast("DrainWish", row_now["drain"])

    async def set_drain(self, worker_id: str, wish: DrainWish) -> bool:
        """Ask a worker to drain, or no longer; its next heartbeat tells it. False if there is no such worker."""
        asked = update(WORKERS).where(WORKERS.c.id == worker_id).values(drain=wish).returning(WORKERS.c.id)
        return bool(await self._database.change(asked))

    async def alive(self, seen_after: float) -> tuple[WorkerInfo, ...]:
        """Workers seen since `seen_after`, by id."""
        query = select(WORKERS.c.info, WORKERS.c.drain).where(WORKERS.c.seen_at >= seen_after).order_by(WORKERS.c.id)
        return tuple(
            replace(_INFO.decode(row["info"]), drain=row["drain"]) for row in await self._database.fetch(query)
        )

    async def forget(self, worker_id: str) -> None:
        """Remove a worker that shut down."""
        await self._database.change(delete(WORKERS).where(WORKERS.c.id == worker_id))

    async def forget_before(self, seen_before: float) -> None:
        """Remove workers that have been silent for long."""
        await self._database.change(delete(WORKERS).where(WORKERS.c.seen_at < seen_before))


LOAD_SAMPLES = Table(
    "load_samples",
    METADATA,
    Column("at", Double, primary_key=True),
    Column("sample", LargeBinary, nullable=False),
)
_SAMPLE: Final = json.Decoder(LoadSample)


class SqlLoad(SqlPart):
    """The LoadStore."""

    async def put(self, sample: LoadSample) -> None:
        """Write a sample; does nothing if the minute has one."""
        insert = self._database.insert(LOAD_SAMPLES).values(at=sample.at, sample=json.encode(sample))
        await self._database.change(insert.on_conflict_do_nothing())

    async def since(self, at: float) -> tuple[LoadSample, ...]:
        """Samples from then on, the oldest first."""
        query = select(LOAD_SAMPLES.c.sample).where(LOAD_SAMPLES.c.at >= at).order_by(LOAD_SAMPLES.c.at)
        return tuple(_SAMPLE.decode(row["sample"]) for row in await self._database.fetch(query))

    async def forget_before(self, at: float) -> None:
        """Drop earlier samples."""
        await self._database.change(delete(LOAD_SAMPLES).where(LOAD_SAMPLES.c.at < at))


class SqlLeaders(SqlPart):
    """The LeaderStore."""

    async def claim(self, role: str, holder: str, now: float, until: float) -> bool:
        """Become or stay leader until then. True if `holder` leads now."""
        insert = self._database.insert(LEADERS).values(role=role, holder=holder, until=until)
        statement = insert.on_conflict_do_update(
            index_elements=["role"],
            set_={"holder": insert.excluded.holder, "until": insert.excluded.until},
            where=or_(LEADERS.c.holder == holder, LEADERS.c.until <= now),
        ).returning(LEADERS.c.role)
        return bool(await self._database.change(statement))

    async def resign(self, role: str, holder: str) -> None:
        """Let another lead at once. Does nothing if another leads."""
        await self._database.change(delete(LEADERS).where(LEADERS.c.role == role, LEADERS.c.holder == holder))


_RUN_IDS: Final = json.Decoder(tuple[str, ...])


class SqlKeys(SqlPart):
    """The KeyStore."""

    async def remember(self, answer: KeyedAnswer, runs: Sequence[Run]) -> KeyedAnswer:
        """Claim the key and add its runs in one transaction. Returns the answer that holds the key: the given one if
        the key is new, otherwise the first one, and nothing is added."""

        async def work(connection: AsyncConnection) -> KeyedAnswer | None:
            if await self._claim_key(connection, answer):
                await self._add_runs(connection, runs)
                return answer
            query = select(KEYS).where(KEYS.c.key == answer.key)
            row = (await connection.execute(query)).mappings().one_or_none()
            return None if row is None else _answer(row)

        # None if the first holder's key was dropped between our two queries; the next try claims it.
        while (holds := await self._database.write(work)) is None:
            continue
        return holds

    async def forget_before(self, created_before: float) -> None:
        """Drop older keys."""
        await self._database.change(delete(KEYS).where(KEYS.c.created_at < created_before))

    async def _claim_key(self, connection: AsyncConnection, answer: KeyedAnswer) -> bool:
        row = {
            "key": answer.key,
            "body_digest": answer.body_digest,
            "run_ids": json.encode(answer.run_ids),
            "created_at": answer.created_at,
        }
        insert = self._database.insert(KEYS).values(row).on_conflict_do_nothing().returning(KEYS.c.key)
        return (await connection.execute(insert)).first() is not None

    async def _add_runs(self, connection: AsyncConnection, runs: Sequence[Run]) -> None:
        if runs:
            await connection.execute(
                run_statements(self._database.backend.insert).add, [queued_row(run) for run in runs]
            )


def _answer(row: RowMapping) -> KeyedAnswer:
    return KeyedAnswer(
        key=row["key"],
        body_digest=row["body_digest"],
        run_ids=_RUN_IDS.decode(row["run_ids"]),
        created_at=row["created_at"],
    )


SESSIONS = Table(
    "sessions",
    METADATA,
    Column("scraper_id", ID, primary_key=True),
    Column("name", ID, primary_key=True),
    Column("cookies", LargeBinary, nullable=False),
    Column("saved_at", Double, nullable=False),
    Index("sessions_by_saved_at", "saved_at"),
)


class SqlSessions(SqlPart):
    """The SessionStore."""

    async def read(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was stored since then; empty if nothing."""
        query = select(SESSIONS.c.cookies).where(_at(scraper_id, name), SESSIONS.c.saved_at > saved_after)
        rows = await self._database.fetch(query)
        return self._opened(rows[0]["cookies"], session_place(scraper_id, name)) if rows else b""

    async def change(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is stored. Of two concurrent changes, the second receives what the first stored."""
        place = _at(scraper_id, name)
        blank = {"scraper_id": scraper_id, "name": name, "cookies": b"", "saved_at": now}

        async def work(connection: AsyncConnection) -> None:
            # Write the row first, so that of two concurrent changes the second waits and sees the first.
            insert = self._database.insert(SESSIONS).values(blank).on_conflict_do_nothing()
            made = (await connection.execute(insert)).rowcount
            kept = await connection.scalar(select(SESSIONS.c.cookies).where(place).with_for_update())
            bound_to = session_place(scraper_id, name)
            changed = change(self._opened(kept, bound_to))
            sealed = self._database.sealer.seal(changed, bound_to) if changed else b""
            await connection.execute(update(SESSIONS).where(place).values(cookies=sealed, saved_at=now))
            if made:
                await _make_room(connection, scraper_id)

        await self._database.write(work)

    async def forget_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""
        await self._database.change(delete(SESSIONS).where(SESSIONS.c.saved_at < saved_before))

    def _opened(self, kept: Any, place: str) -> bytes:
        """The cookies in clear; none if they cannot be opened, so that the session begins anew."""
        try:
            return self._database.sealer.open(bytes(kept or b""), place)
        except SealBroken as error:
            log.error("secrets.seal_broken", problem=error.message)
            return b""


def _at(scraper_id: str, name: str) -> ColumnElement[bool]:
    return (SESSIONS.c.scraper_id == scraper_id) & (SESSIONS.c.name == name)


async def _make_room(connection: AsyncConnection, scraper_id: str) -> None:
    mine = SESSIONS.c.scraper_id == scraper_id
    over = (await connection.scalar(select(func.count()).where(mine)) or 0) - MAX_SESSIONS
    if over > 0:
        oldest = select(SESSIONS.c.name).where(mine).order_by(SESSIONS.c.saved_at).limit(over)
        names = (await connection.scalars(oldest)).all()
        await connection.execute(delete(SESSIONS).where(mine, SESSIONS.c.name.in_(names)))


STATE = Table(
    "scraper_state",
    METADATA,
    Column("scraper_id", ID, primary_key=True),
    Column("key", ID, primary_key=True),
    Column("value", Sealed("scraper_state.value"), nullable=False),
    Column("changed_at", Double, nullable=False),
)


class SqlState(SqlPart):
    """The StateStore."""

    async def read(self, scraper_id: str, key: str) -> bytes | None:
        """The value; None if there is none."""
        rows = await self._database.fetch(select(STATE.c.value).where(_state_at(scraper_id, key)))
        return bytes(rows[0]["value"]) if rows else None

    async def change(
        self, scraper_id: str, key: str, value: bytes | None, now: float, *, only_if: StateCheck | None = None
    ) -> bool:
        """Write or remove a value, if `only_if` agrees. False if nothing was changed."""
        place = _state_at(scraper_id, key)
        row = {"scraper_id": scraper_id, "key": key, "value": b"", "changed_at": now}

        async def work(connection: AsyncConnection) -> bool:
            # Write the row first, so that of two concurrent changes the second waits and sees the first.
            insert = self._database.insert(STATE).values(row).on_conflict_do_nothing()
            made = (await connection.execute(insert)).rowcount
            kept = await connection.scalar(select(STATE.c.value).where(place).with_for_update())
            agreed = only_if is None or only_if(None if made or kept is None else bytes(kept))
            if not agreed or value is None:
                if made or agreed:
                    await connection.execute(delete(STATE).where(place))
                return agreed and not made
            if made and await self._is_full(connection, scraper_id):
                raise BadRequest(f"the state of {scraper_id} has {MAX_STATE_KEYS} keys already; delete some")
            await connection.execute(update(STATE).where(place).values(value=value, changed_at=now))
            return True

        return await self._database.write(work)

    async def entries(self, scraper_id: str) -> tuple[StateEntry, ...]:
        """Every key of a scraper, in order."""
        sealed = func.substr(STATE.c.value, 1, len(MAGIC)) == literal(MAGIC)
        size = func.length(STATE.c.value) - case((sealed, OVERHEAD), else_=0)
        query = select(STATE.c.key, size.label("bytes"), STATE.c.changed_at).where(STATE.c.scraper_id == scraper_id)
        return tuple(StateEntry(**row) for row in await self._database.fetch(query.order_by(STATE.c.key)))

    async def clear(self, scraper_id: str) -> int:
        """Remove the whole state of a scraper. Returns how many keys it had."""
        gone = delete(STATE).where(STATE.c.scraper_id == scraper_id).returning(STATE.c.key)
        return len(await self._database.change(gone))

    async def _is_full(self, connection: AsyncConnection, scraper_id: str) -> bool:
        mine = select(func.count()).where(STATE.c.scraper_id == scraper_id)
        return (await connection.scalar(mine) or 0) > MAX_STATE_KEYS


def _state_at(scraper_id: str, key: str) -> ColumnElement[bool]:
    return (STATE.c.scraper_id == scraper_id) & (STATE.c.key == key)


_ROWS: Final = 500
_COUNTED: Final = ("requests", "failures", "bytes", "runs", "browser_ms", "ai_tokens", "ai_millionths")
_KEY: Final = ("day", "writer", "job_id", "site", "pool", "proxy_class", "client", "scraper")
_SITES: Final = 1000


class SqlMeters(SqlPart):
    """The MeterStore."""

    async def put(self, meters: Sequence[Meter]) -> None:
        """Write totals, replacing what the same writer wrote for the same key."""
        insert = self._database.insert(FETCH_METERS)
        changes = {name: insert.excluded[name] for name in _COUNTED}
        statement = insert.on_conflict_do_update(index_elements=_KEY, set_=changes)
        rows = [asdict(meter) for meter in meters]
        for start in range(0, len(rows), _ROWS):
            await self._database.write_rows(statement, rows[start : start + _ROWS])

    async def use(
        self,
        by: Sequence[UseBy],
        since: str,
        *,
        sites: Sequence[str] | None = None,
        where: UseFilter | None = None,
        limit: int = 1000,
    ) -> tuple[Use, ...]:
        """Sums since a day, the most bytes first."""
        columns = [FETCH_METERS.c[name] for name in by]
        size = func.sum(FETCH_METERS.c.bytes)
        sums = [func.sum(FETCH_METERS.c[name]).label(name) for name in _COUNTED]
        query = select(*columns, *sums).where(FETCH_METERS.c.day >= since)
        if sites is not None:
            query = query.where(FETCH_METERS.c.site.in_(list(sites)[:_SITES]))
        if where is not None:
            query = query.where(*_conditions(where))
        rows = await self._database.fetch(query.group_by(*columns).order_by(size.desc(), *columns).limit(limit))
        return tuple(_use(row) for row in rows)

    async def forget_before(self, day: str) -> None:
        """Drop earlier days."""
        await self._database.change(delete(FETCH_METERS).where(FETCH_METERS.c.day < day))


def _conditions(where: UseFilter) -> Iterator[ColumnElement[bool]]:
    columns = FETCH_METERS.c
    if where.until is not None:
        yield columns.day <= where.until
    if where.client is not None:
        yield columns.client == where.client
    if where.scraper is not None:
        yield columns.scraper == where.scraper
    if where.sites is not None:
        yield columns.site.in_(where.sites[:_SITES])


def _use(row: RowMapping) -> Use:
    # The sum of no rows is NULL.
    fields: dict[str, Any] = {name: int(value or 0) if name in _COUNTED else value for name, value in row.items()}
    return Use(**fields)
