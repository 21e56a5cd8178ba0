"""How items ended: a row for each. The row of an item that waits for a later attempt stands in the same place, so an
item cannot have two ends, nor an end and a wait.

A wait stays when its item is handed out again, until the next record of it: whether an item waits is told by its batch.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any, ClassVar, Final

from scrapeyard.model.job import ItemOutcome, ItemStatus
from scrapeyard.store.dynamo.items.due import Waiting
from scrapeyard.store.dynamo.rows.keys import ENDS, end_key, ends_part, failed_key, number, part_of
from scrapeyard.store.dynamo.table.expressions import (
    MOST_VALUES,
    Delete,
    Put,
    Where,
    above,
    absent,
    all_of,
    between,
    equals,
    exists,
    one_of,
)
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import Item
from scrapeyard.store.jobs.rules.ends import OUTCOME_COLUMNS, outcome_values
from scrapeyard.store.jobs.rules.whereabouts import FINAL_ITEM, wanted_statuses
from scrapeyard.store.ports.jobs import ItemFilter

_NO_OUTCOME: Final = absent("ok")
_DATA: Final = ("result", "logs")
_PAGE: Final = 500


class ItemEnds(DynamoPart):
    """Ends of items, and the attempts that others wait for."""

    places: ClassVar = {name: f"outcomes.{name}" for name in ("result", "error", "artifacts", "logs")}

    async def writes(self, job_id: str, outcome: ItemOutcome) -> list[Put]:
        """The writes of an end. WriteRefused if the item has one."""
        return await self.row_writes(
            job_id, outcome.seq, dict(zip(OUTCOME_COLUMNS, outcome_values(outcome), strict=True))
        )

    async def row_writes(self, job_id: str, seq: int, columns: dict[str, Any]) -> list[Put]:
        """The same from its columns."""
        pk, sk = end_key(job_id, seq)
        end = Put(await self._contents.stored({"pk": pk, "sk": sk, **columns}), _NO_OUTCOME)
        if columns["ok"]:
            return [end]
        pk, sk = failed_key(job_id, seq)
        told = {name: columns[name] for name in ("exit_reason", "site", "http_status")}
        return [end, Put({"pk": pk, "sk": sk, **told})]

    def wait(self, job_id: str, item: Waiting) -> Put:
        """The write of a wait. WriteRefused if the item has ended."""
        return Put(_wait(job_id, item), _NO_OUTCOME)

    def reopen(self, job_id: str, end: Item, now: float) -> list[Put | Delete]:
        """The writes that turn an end into a wait for the first attempt."""
        seq = int(end["sk"])
        again: list[Put | Delete] = [Put(_wait(job_id, Waiting(now, seq, 1)), unchanged(end))]
        return again if end["ok"] else [*again, Delete(failed_key(job_id, seq))]

    async def some(self, job_id: str, seqs: Iterable[int], *, data: bool = True) -> dict[int, Item]:
        """Rows of these items, by number, in clear; without `data` they lack results and logs."""
        found = await self._table.get_many(end_key(job_id, seq) for seq in seqs)
        return await self._opened(list(found.values()), data)

    async def between(
        self, job_id: str, first: int, last: int, where: Where | None = None, *, data: bool = True
    ) -> dict[int, Item]:
        """The same for the items from `first` to `last`, in order; none if `last` is before `first`."""
        if last < first:  # DynamoDB refuses a range whose end is before its beginning
            return {}
        found: list[Item] = []
        for start in range(first - first % ENDS, last + 1, ENDS):
            low, high = number(max(first, start)), number(min(last, start + ENDS - 1))
            found += await self._table.query(ends_part(job_id, start), sort=between("sk", low, high), where=where)
        return await self._opened(found, data)

    async def failed(self, job_id: str, after: int, where: ItemFilter | None = None) -> AsyncIterator[list[Item]]:
        """Items that failed, after that number: rows with reason, site and HTTP status, in blocks."""
        conditions = [] if where is None else _told(where)
        pages = self._table.pages(
            part_of(job_id, "failed"),
            sort=above("sk", number(after)) if after >= 0 else None,
            where=all_of(*conditions) if conditions else None,
        )
        async for page in pages:
            yield [row for row in page if where is None or matches(row, where)]

    async def failed_backwards(self, job_id: str, sort: Where | None) -> AsyncIterator[list[Item]]:
        """The same from the end of the list."""
        async for page in self._table.pages(part_of(job_id, "failed"), sort=sort, descending=True, limit=_PAGE):
            yield page

    async def drop_parts(self, job_id: str, seq: int) -> None:
        """Remove content that stands in rows of its own, of all items whose ends stand beside this one."""
        await self._contents.drop_parts(ends_part(job_id, seq))

    async def replace(self, ends: Iterable[Item]) -> None:
        """Write rows in place of those that there are."""
        rows = [await self._contents.stored(end) for end in ends]
        await self._table.put_many(rows)
        await self._contents.clean_others(rows)

    async def _opened(self, found: list[Item], data: bool) -> dict[int, Item]:
        opened = await self._contents.opened(found, without=() if data else _DATA)
        return {int(row["sk"]): row for row in opened}


def of_outcomes(where: ItemFilter) -> Where:
    """A filter as a condition on the row of an item that ended."""
    ends = wanted_statuses(where) & FINAL_ITEM
    ended = exists("ok") if ends == FINAL_ITEM else equals("ok", ends == {ItemStatus.SUCCESS})
    return all_of(ended, *_told(where))


def matches(row: Item, where: ItemFilter) -> bool:
    """Whether an end, or the row of an item that failed, matches a filter apart from status and key."""
    return (
        (where.exit_reasons is None or row["exit_reason"] in {reason.value for reason in where.exit_reasons})
        and (where.sites is None or row["site"] in where.sites)
        and (where.http_statuses is None or row.get("http_status") in where.http_statuses)
    )


def _told(where: ItemFilter) -> list[Where]:
    """What the database can leave out; `matches` looks again."""
    given = {
        "exit_reason": where.exit_reasons and [reason.value for reason in where.exit_reasons],
        "site": where.sites,
        "http_status": where.http_statuses,
    }
    return [one_of(name, values) for name, values in given.items() if values and len(values) <= MOST_VALUES]


def _wait(job_id: str, item: Waiting) -> Item:
    pk, sk = end_key(job_id, item.seq)
    return {"pk": pk, "sk": sk, "attempt": item.attempt, "not_before": item.at}
