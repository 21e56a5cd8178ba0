"""Deliveries of jobs to sinks: a partition for each job, with a row for each sink."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import convert, json
from msgspec.structs import asdict, replace

from scrapeyard.model.export import ITEMS_SINK, SinkDelivery, SinkState
from scrapeyard.model.job import Job
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Put, Write, absent, at_most, equals, not_one_of
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE, LIST
from scrapeyard.store.dynamo.table.table import each
from scrapeyard.store.dynamo.table.values import Item, key_of
from scrapeyard.store.jobs.rules.rows import new_sink_row, to_sinks

_SINK: Final = "sink"


def new_sinks(job: Job) -> list[Write]:
    """The writes of a new job's deliveries."""
    return [Put(_row(new_sink_row(job.id, sink, job.created_at)), absent()) for sink in job.sinks]


class DynamoSinks(DynamoPart):
    """The SinkStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows

    async def add(self, job_id: str, sink: str, now: float) -> bool:
        """Deliver the job to one more sink. False if there is no such job, or it is being deleted."""

        async def work() -> bool:
            job = await self._rows.get(job_id)
            if job is None or job["deleting"]:
                return False
            row = _row(new_sink_row(job_id, sink, now))
            new = [] if await self._table.get(key_of(row)) else [Put(row, absent())]
            names = json.encode(tuple(dict.fromkeys((*to_sinks(job), sink))))
            await self._table.transact([*await self._rows.change(job, {"sinks": names}), *new])
            return True

        return await self._rows.apply(job_id, work) if is_id(job_id) else False

    async def of_jobs(self, job_ids: Sequence[str]) -> tuple[SinkDelivery, ...]:
        """Every delivery of these jobs, by job and sink."""
        known = sorted({job_id for job_id in job_ids if is_id(job_id)})
        found = await each(known, lambda job_id: self._table.query(_partition(job_id)))
        return _deliveries(row for rows in found for row in rows)

    async def due(self, now: float, limit: int, but_sinks: Sequence[str]) -> tuple[SinkDelivery, ...]:
        """Active ones to none of these sinks whose `due_at` has come, the longest due first."""
        where = not_one_of("subject", but_sinks) if but_sinks else None
        found = await self._table.query(_SINK, DUE, sort=at_most("due_at", now), where=where, limit=limit)
        rows = await self._table.get_many(map(key_of, found))
        due = [row for row in rows.values() if row.get("due_at") is not None and row["due_at"] <= now]
        return _deliveries(sorted(due, key=lambda row: float(row["due_at"])))

    async def put(self, delivery: SinkDelivery) -> SinkDelivery | None:
        """Write a delivery whose `revision` is the one last seen. None if another was faster or it is gone."""
        after = replace(delivery, revision=delivery.revision + 1)
        try:
            await self._table.write(Put(_row(asdict(after)), equals("revision", delivery.revision)))
        except WriteRefused:
            return None
        return after

    async def wake(self, job_id: str, now: float, open_until: float) -> None:
        """Make the job's deliveries active and due now; those that failed stay so, but for a webhook's items."""

        def woken(old: Item | None) -> Item | None:
            if old is None or (old["state"] == SinkState.FAILED and old["sink"] != ITEMS_SINK):
                return None
            values = {"state": SinkState.ACTIVE.value, "due_at": now, "open_until": open_until}
            if old["state"] == SinkState.DONE:
                values["woken_at"] = now
            return _row(old | values | {"revision": old["revision"] + 1})

        for row in await self._table.query(_partition(job_id)) if is_id(job_id) else ():
            await self._table.change(key_of(row), woken)

    async def standing(self) -> dict[tuple[str, SinkState], int]:
        """How many deliveries there are, by sink and state."""
        counts: dict[tuple[str, SinkState], int] = {}
        async for page in self._table.pages(_SINK, LIST):
            for row in page:
                which = (row["subject"], SinkState(row["status"]))
                counts[which] = counts.get(which, 0) + 1
        return counts


def _partition(job_id: str) -> str:
    return f"sink/{job_id}"


def _row(delivery: dict[str, Any]) -> Item:
    job_id, sink, state = delivery["job_id"], delivery["sink"], SinkState(delivery["state"]).value
    return delivery | {
        "pk": _partition(job_id),
        "sk": sink,
        "state": state,
        "list_pk": _SINK,
        "list_sk": f"{job_id}/{sink}",
        "due_pk": _SINK if delivery["due_at"] is not None else None,
        "subject": sink,
        "status": state,
    }


def _deliveries(rows: Iterable[Item]) -> tuple[SinkDelivery, ...]:
    names = SinkDelivery.__struct_fields__
    return tuple(convert({name: row.get(name) for name in names}, SinkDelivery) for row in rows)
