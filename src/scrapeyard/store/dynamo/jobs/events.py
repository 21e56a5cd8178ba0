"""Events of jobs, for their watchers. A row holds those that were written together, under the number of the last."""

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Raw, msgpack

from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import number, part_of
from scrapeyard.store.dynamo.table.expressions import Put, Where, above
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.values import Item
from scrapeyard.store.jobs.rules.rows import Row
from scrapeyard.store.ports.jobs import JobEvent

Event = tuple[float, str, bytes]
"""When, of which kind, and its data."""
_DECODER: Final = msgpack.Decoder(list[tuple[float, str, bytes]])
_ENCODER: Final = msgpack.Encoder()
_RECENT: Final = 50
"""An event is not written again if it is one of the last so many."""


class DynamoEvents(DynamoPart):
    """The EventStore."""

    places: ClassVar = {"events": "job_events.data"}

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows

    async def add(self, job_id: str, kind: JobEventKind, data: Raw, now: float) -> None:
        """Append an event; the same event at the same time is written once. Does nothing if there is no such job."""
        event = (now, str(kind), bytes(data))

        async def work() -> None:
            job = await self._rows.get(job_id)
            if job is None or event in await self._last(job_id):
                return
            row, values = await self.told(job, [event])
            await self._table.transact([row, *await self._rows.change(job, values)])

        if is_id(job_id):
            await self._rows.apply(job_id, work)

    async def after(self, job_id: str, after: int, limit: int) -> list[JobEvent]:
        """Events numbered higher than `after`, in order."""
        if not is_id(job_id) or limit <= 0:
            return []
        rows = await self._read(job_id, sort=above("sk", number(max(0, after))), limit=limit)
        return [event for row in rows for event in events_of(row) if event.number > after][:limit]

    async def told(self, job: Row, events: Sequence[Event]) -> tuple[Put, Row]:
        """The write that appends events to a job, and the columns of the job to write with it."""
        last = job["events"] + len(events)
        return Put(await self.row(job["id"], last, events)), {"events": last}

    async def row(self, job_id: str, last: int, events: Sequence[Event]) -> Item:
        """A row of events, of which the last has this number."""
        item = {"pk": part_of(job_id, "events"), "sk": number(last), "events": _ENCODER.encode(list(events))}
        return await self._contents.stored(item)

    async def all(self, job_id: str) -> list[Item]:
        """Every row."""
        return await self._read(job_id)

    async def replace(self, job_id: str, row: Item, events: Sequence[JobEvent]) -> None:
        """Write these events in place of those of a row."""
        await self._table.delete((row["pk"], row["sk"]))
        for event in events:  # each by its own number, since others between them are gone
            kept = await self.row(job_id, event.number, [(event.at, event.kind, bytes(event.data))])
            await self._table.put_many([kept])

    async def _last(self, job_id: str) -> list[Event]:
        rows = await self._read(job_id, descending=True, limit=_RECENT)
        return [event for row in rows for event in _DECODER.decode(row["events"])]

    async def _read(
        self, job_id: str, *, sort: Where | None = None, descending: bool = False, limit: int | None = None
    ) -> list[Item]:
        rows = await self._table.query(part_of(job_id, "events"), sort=sort, descending=descending, limit=limit)
        return await self._contents.opened(rows)


def events_of(row: Item) -> list[JobEvent]:
    """The events of a row, in order."""
    found = _DECODER.decode(row["events"])
    first = int(row["sk"]) - len(found) + 1
    return [
        JobEvent(number=place, at=at, kind=kind, data=Raw(data)) for place, (at, kind, data) in enumerate(found, first)
    ]
