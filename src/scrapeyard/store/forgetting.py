"""Forgetting a URL, a site or a client, in the store."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    RowMapping,
    Select,
    Table,
    Text,
    and_,
    delete,
    false,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Boolean

from scrapeyard.model import FINAL, RunStatus
from scrapeyard.model.job import Job
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.jobs.exports import EXPORTS
from scrapeyard.store.jobs.rules.rows import to_job
from scrapeyard.store.jobs.snapshots import SNAPSHOTS
from scrapeyard.store.operations import STATE
from scrapeyard.store.patterns import DRIFT, PATTERNS, VERSIONS
from scrapeyard.store.ports.forgetting import ForgetTarget
from scrapeyard.store.tables.content import ContentType, SealedText
from scrapeyard.store.tables.jobs import ITEMS, JOB_EVENTS, JOBS, OUTCOMES
from scrapeyard.store.tables.keys import API_KEYS
from scrapeyard.store.tables.runs import FETCH_METERS, KEYS, RUNS
from scrapeyard.store.tables.schedules import DELIVERIES, RUN_WATCHES, SCHEDULES

_PAGE: Final = 2000
"""Rows searched by one statement."""
_SOME: Final = 500
_FORGOTTEN: Final = b"forgotten:"
_EMPTY: Final[dict[str, Any]] = {"result": None, "result_key": "", "error": None, "artifacts": None, "logs": None}


class contains(FunctionElement[bool]):  # noqa: N801 - a function of SQL
    """Whether the bytes or the text of a column have those of a value in them."""

    type = Boolean()
    inherit_cache = True


@compiles(contains, "sqlite")
def _instr(element: Any, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)}) > 0"


@compiles(contains, "postgresql")
def _position(element: Any, compiler: Any, **options: Any) -> str:
    return f"pg_catalog.position({compiler.process(element.clauses, **options)}) > 0"


class SqlForgetting(SqlPart):
    """The ForgetStore."""

    async def runs(self, target: ForgetTarget) -> AsyncIterator[list[tuple[str, bool]]]:
        """Ids of runs, and whether each is final, in blocks."""
        after = ""
        while True:
            ids = select(RUNS.c.id).where(RUNS.c.id > after).order_by(RUNS.c.id).limit(_PAGE).subquery()
            last = (await self._database.fetch(select(func.max(ids.c.id).label("last"))))[0]["last"]
            if last is None:
                return
            some = and_(RUNS.c.id > after, RUNS.c.id <= last)
            rows = await self._about(target, RUNS, ("input", "report"), some, "owner", more=(RUNS.c.status,))
            yield [(row["id"], RunStatus(row["status"]) in FINAL) for row in rows]
            after = last

    async def jobs(self, target: ForgetTarget) -> list[Job]:
        """Jobs that are about it as a whole."""
        if target.kind == "url":
            return []
        column = JOBS.c.owner if target.kind == "client" else JOBS.c.domain
        rows = await self._database.fetch(select(JOBS).where(column == target.value).order_by(JOBS.c.number))
        return [to_job(row) for row in rows]

    async def other_jobs(self, target: ForgetTarget) -> AsyncIterator[tuple[Job, list[tuple[int, str, str]]]]:
        """Jobs of which some items are about it."""
        if target.kind == "client":
            return
        for row in await self._database.fetch(select(JOBS.c.number).order_by(JOBS.c.number)):
            found = await self._database.fetch(select(JOBS).where(JOBS.c.number == row["number"]))
            if not found or (target.kind == "site" and found[0]["domain"] == target.value):
                continue
            items = await self._items(target, found[0]["number"], found[0]["total"])
            job = to_job(found[0])
            named = any(target.pattern.search(bytes(found[0][name] or b"")) for name in ("source", "fault"))
            named = named or bool(await self._referring(target, found[0]["number"]))
            if items or named or job.archive_key or target.pattern.search(job.name.encode()):
                yield job, items

    async def _items(self, target: ForgetTarget, number: int, total: int) -> list[tuple[int, str, str]]:
        found: list[tuple[int, str, str]] = []
        for first in range(0, total, _PAGE):
            some = and_(ITEMS.c.job == number, ITEMS.c.seq.between(first, first + _PAGE - 1))
            rows = await self._about(target, ITEMS, ("input",), some, "")
            seqs = [row["seq"] for row in rows]
            query = select(OUTCOMES.c.seq, OUTCOMES.c.result_key).where(
                OUTCOMES.c.job == number, OUTCOMES.c.seq.in_(seqs)
            )
            keys = {row["seq"]: row["result_key"] for row in await self._database.fetch(query)} if seqs else {}
            found += [(row["seq"], row["key"], keys.get(row["seq"], "")) for row in rows]
        return found

    async def _referring(self, target: ForgetTarget, number: int) -> list[int]:
        """Items that the target linked to."""
        rows = await self._about(target, ITEMS, ("referrer",), ITEMS.c.job == number, "")
        return [row["seq"] for row in rows]

    async def scrub_items(self, job: Job, target: ForgetTarget, items: Sequence[int]) -> None:
        """Empty these items of a job, and remove what else names the target."""
        row = (await self._database.fetch(select(JOBS).where(JOBS.c.id == job.id)))[0]
        number = row["number"]
        for start in range(0, len(items), _SOME):
            seqs = items[start : start + _SOME]
            of = (OUTCOMES.c.job == number, OUTCOMES.c.seq.in_(seqs))
            await self._database.change(update(OUTCOMES).where(*of).values(_EMPTY | {"result_bytes": 0, "site": ""}))
            for seq in seqs:
                blank = {"key": f"forgotten-{seq}", "input": b"{}", "referrer": None}
                await self._database.change(
                    update(ITEMS).where(ITEMS.c.job == number, ITEMS.c.seq == seq).values(blank)
                )
        linked = await self._referring(target, number)
        for start in range(0, len(linked), _SOME):
            some = (ITEMS.c.job == number, ITEMS.c.seq.in_(linked[start : start + _SOME]))
            await self._database.change(update(ITEMS).where(*some).values(referrer=None))
        await self._database.change(delete(EXPORTS).where(EXPORTS.c.job_id == job.id))
        events = await self._about(target, JOB_EVENTS, ("data",), JOB_EVENTS.c.job == number, "")
        told = [event["number"] for event in events]
        await self._database.change(delete(JOB_EVENTS).where(JOB_EVENTS.c.job == number, JOB_EVENTS.c.number.in_(told)))
        clean = {name: target.pattern.sub(_FORGOTTEN, bytes(row[name])) for name in ("source", "fault") if row[name]}
        clean["name"] = target.pattern.sub(_FORGOTTEN, job.name.encode()).decode()  # type: ignore[assignment]
        await self._database.change(update(JOBS).where(JOBS.c.number == number).values(clean))

    async def remove_rest(self, target: ForgetTarget, subjects: Sequence[str], *, dry: bool) -> dict[str, int]:
        """Remove schedules, webhook messages, snapshots, state, patterns, sketches, keys; returns how many of each."""
        counts = {
            "schedules": await self._drop(target, SCHEDULES, ("template", "name"), "owner", dry=dry),
            "webhook_messages": await self._drop(target, DELIVERIES, ("body", "log"), "owner", dry=dry),
            "snapshots": await self._snapshots(target, dry=dry),
            "state": await self._drop(target, STATE, ("value", "key"), "", dry=dry),
            "patterns": await self._drop(target, PATTERNS, ("document",), "client", dry=dry),
            "drift": await self._sketches(target, dry=dry),
        }
        await self._database.change(delete(VERSIONS).where(VERSIONS.c.pattern_id.not_in(select(PATTERNS.c.id))))
        for start in range(0, 0 if dry else len(subjects), _SOME):
            some = subjects[start : start + _SOME]
            await self._database.change(delete(DELIVERIES).where(DELIVERIES.c.subject.in_(some)))
            await self._database.change(delete(RUN_WATCHES).where(RUN_WATCHES.c.run_id.in_(some)))
        await self._forget_keys(frozenset(() if dry else subjects))
        if target.kind == "client":
            counts["keys"] = await self._drop(target, API_KEYS, (), "client", dry=dry)
            alias = f"forgotten-{hashlib.sha256(target.value.encode()).hexdigest()[:12]}"
            mine = FETCH_METERS.c.client == target.value
            if not dry:
                await self._database.change(update(FETCH_METERS).where(mine).values(client=alias))
        return counts

    async def compact(self) -> None:
        """Overwrite what was deleted."""
        await self._database.compact()

    async def _snapshots(self, target: ForgetTarget, *, dry: bool) -> int:
        if target.kind != "client":
            return await self._drop(target, SNAPSHOTS, ("url",), "", dry=dry)
        mine = SNAPSHOTS.c.scope.startswith(f"{target.value}: ", autoescape=True)
        return await self._dropped(SNAPSHOTS, mine, dry=dry)

    async def _sketches(self, target: ForgetTarget, *, dry: bool) -> int:
        """Of a whole site: a sketch does not say which page or client it saw."""
        if target.kind != "site":
            return 0
        hosts = DRIFT.c.site.endswith(f".{target.value}", autoescape=True)
        return await self._dropped(DRIFT, (DRIFT.c.site == target.value) | hosts, dry=dry)

    async def _forget_keys(self, gone: frozenset[str]) -> None:
        """Idempotency-Keys of runs that go: the answer would be missing."""
        rows = await self._database.fetch(select(KEYS.c.key, KEYS.c.run_ids)) if gone else ()
        keys = [row["key"] for row in rows if any(run_id.encode() in bytes(row["run_ids"]) for run_id in gone)]
        for start in range(0, len(keys), _SOME):
            await self._database.change(delete(KEYS).where(KEYS.c.key.in_(keys[start : start + _SOME])))

    async def _drop(self, target: ForgetTarget, table: Table, names: Sequence[str], owner: str, *, dry: bool) -> int:
        """Delete rows about the target; how many."""
        if target.kind == "client":
            return await self._dropped(table, table.c[owner] == target.value, dry=dry) if owner else 0
        rows, count = await self._about(target, table, names, true(), owner), 0
        columns = list(table.primary_key.columns)
        for row in rows:
            this = and_(*(column == row[column.name] for column in columns))
            count += await self._dropped(table, this, dry=dry)
        return count

    async def _dropped(self, table: Table, where: ColumnElement[bool], *, dry: bool) -> int:
        if dry:
            rows = await self._database.fetch(select(func.count().label("count")).select_from(table).where(where))
            return int(rows[0]["count"])
        first = next(iter(table.primary_key.columns))
        return len(await self._database.change(delete(table).where(where).returning(first)))

    async def _about(
        self,
        target: ForgetTarget,
        table: Table,
        names: Sequence[str],
        where: ColumnElement[bool],
        owner: str,
        *,
        more: Sequence[Column[Any]] = (),
    ) -> list[Any]:
        """Rows in whose columns the target stands, by primary key; of a client, those it owns."""
        ids = list(table.primary_key.columns) + ([ITEMS.c.key] if table is ITEMS else [])
        if target.kind == "client":
            mine = table.c[owner] == target.value if owner else false()
            return list(await self._database.fetch(select(*ids, *more).where(where, mine)))
        columns = [table.c[name] for name in names]
        has = [contains(column, needle) for column in columns for needle in _needles(column, target)]
        extra = [column for column in columns if column not in ids]
        query = select(*ids, *more, *extra).where(where, or_(*has))
        kept = [column.name for column in (*ids, *more)]
        return [
            {name: row[name] for name in kept}
            async for row in self._pages(query, list(table.primary_key.columns))
            if any(target.pattern.search(_bytes(row[name])) for name in names)
        ]

    async def _pages(self, query: Select[Any], key: Sequence[Column[Any]]) -> AsyncIterator[RowMapping]:
        """Rows in order of the key, a few at a time: each may have much content."""
        query = query.order_by(*key).limit(_SOME)
        rows = await self._database.fetch(query)
        while rows:
            for row in rows:
                yield row
            after = tuple_(*key) > tuple_(*(rows[-1][column.name] for column in key))
            rows = await self._database.fetch(query.where(after)) if len(rows) == _SOME else ()


def _needles(column: ColumnElement[Any], target: ForgetTarget) -> list[Any]:
    """What to look for in a column. Encrypted values are read, since only then is known what stands in them."""
    kind = column.type
    forms = list(target.forms) if isinstance(kind, Text | SealedText) else [form.encode() for form in target.forms]
    marks = [kind.mark] if isinstance(kind, ContentType) else []
    return [literal(needle) for needle in (*forms, *marks)]


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value or b"")
