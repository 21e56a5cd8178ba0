"""Reading and writing rows of the one table."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar
from zlib import crc32

from scrapeyard.redis.outage import pauses
from scrapeyard.store.dynamo.table.calls import DynamoCalls, WriteRefused
from scrapeyard.store.dynamo.table.expressions import (
    ConditionCheck,
    Delete,
    Expression,
    Put,
    Update,
    Where,
    Write,
    absent,
    all_of,
    equals,
    update_text,
)
from scrapeyard.store.dynamo.table.schema import PARTITION, SORT
from scrapeyard.store.dynamo.table.values import Item, Key, from_wires, key_of, size_of, to_wires, wire_key

T = TypeVar("T")
R = TypeVar("R")

MAX_ACTIONS: Final = 100
"""Writes of one transaction."""
SHARDS: Final = 4
"""Partitions that a large noun is spread over in an index: each takes 1,000 writes a second."""
_WIDTH: Final = 32
"""Requests that one call has under way."""
_GETS: Final = 100
_WRITES: Final = 25
_REQUEST_BYTES: Final = 700_000
_TOKEN: Final = "w"  # noqa: S105  the name of an attribute
"""Who wrote a row last. Another token for each write: it tells whether a row changed since it was read, and whether a
write whose answer was lost had been done."""


def sharded(pk: str, name: str) -> str:
    """The partition of an index for one of many rows."""
    return f"{pk}/{crc32(name.encode()) % SHARDS}"


async def each(things: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """Do something for each, several at a time; results in order. The first error ends it."""
    gate = asyncio.Semaphore(_WIDTH)

    async def one(thing: T) -> R:
        async with gate:
            return await work(thing)

    tasks = [asyncio.ensure_future(one(thing)) for thing in things]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class DynamoTable:
    """Rows by key and by index. Reads by key see every write that was answered; those by index may be a moment old, so
    whoever changes a row that an index showed names in a condition what it must still be."""

    def __init__(self, calls: DynamoCalls) -> None:
        self._calls = calls
        self._table: dict[str, Any] = {"TableName": calls.table}

    async def get(self, key: Key) -> Item | None:
        """One row; None if there is none."""
        answer, _ = await self._calls.ask("get_item", **self._table, Key=wire_key(key), ConsistentRead=True)
        return from_wires(answer["Item"]) if "Item" in answer else None

    async def get_many(self, keys: Iterable[Key]) -> dict[Key, Item]:
        """Those of these rows that there are."""
        wanted = list(dict.fromkeys(keys))
        blocks = [wanted[start : start + _GETS] for start in range(0, len(wanted), _GETS)]
        found: dict[Key, Item] = {}
        for items in await each(blocks, self._get_block):
            found |= {key_of(item): item for item in items}
        return found

    async def query(
        self,
        pk: str,
        index: str = "",
        *,
        sort: Where | None = None,
        where: Where | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Item]:
        """Rows of one partition in the order of its sort key. `sort` is a condition on that key, `where` on others. Of
        an index: only the attributes that it shows."""
        found: list[Item] = []
        pages = self.pages(pk, index, sort=sort, where=where, descending=descending, limit=limit)
        async for page in pages:
            found += page
            if limit is not None and len(found) >= limit:
                break
        return found[:limit]

    async def pages(
        self,
        pk: str,
        index: str = "",
        *,
        sort: Where | None = None,
        where: Where | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[list[Item]]:
        """The same in blocks, each as it was read. `limit` is how many the caller means to take."""
        asked = self._asked(pk, index, sort, where) | {"ScanIndexForward": not descending}
        if limit is not None and where is None:
            asked["Limit"] = max(1, limit)
        while True:
            answer, _ = await self._calls.ask("query", **asked)
            yield [from_wires(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def count(self, pk: str, index: str = "", *, sort: Where | None = None, where: Where | None = None) -> int:
        """How many rows a query would find."""
        asked = self._asked(pk, index, sort, where) | {"Select": "COUNT"}
        total = 0
        while True:
            answer, _ = await self._calls.ask("query", **asked)
            total += int(answer["Count"])
            if "LastEvaluatedKey" not in answer:
                return total
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def spread(
        self,
        pk: str,
        index: str,
        *,
        sort: Where | None = None,
        where: Where | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Item]:
        """As `query`, over all shards of a noun."""

        async def one(shard: int) -> list[Item]:
            return await self.query(f"{pk}/{shard}", index, sort=sort, where=where, descending=descending, limit=limit)

        by = SORT[index]
        found = [item for items in await each(range(SHARDS), one) for item in items]
        return sorted(found, key=lambda item: item[by], reverse=descending)[:limit]

    async def write(self, write: Put | Update | Delete) -> Item | None:
        """One write. Returns the row: as it is now after an Update, as it was before a Put or Delete. Raises
        WriteRefused, which tells the present row. An Update that adds must go through `transact`."""
        token = secrets.token_hex(8)
        operation, returned, request = self._request(write, token)
        request |= {"ReturnValues": "ALL_NEW" if isinstance(write, Update) else "ALL_OLD"}
        if isinstance(write, Update) and write.add:
            raise ValueError("an update that adds is not repeatable alone; send it through `transact`")
        try:
            answer, _ = await self._calls.ask(operation, **request)
        except WriteRefused as refused:
            present = refused.items[0]
            if refused.tries > 1 and _is_done(write, present, token):
                return present if isinstance(write, Update) else None
            raise
        return from_wires(answer[returned]) if answer.get(returned) else None

    async def transact(self, writes: Sequence[Write]) -> None:
        """All of these or none, at most MAX_ACTIONS and 4 MB, each row once. Raises WriteRefused."""
        if not writes:
            return
        token = secrets.token_hex(16)
        actions = []
        for write in writes:
            operation, _, request = self._request(write, token)
            actions.append({_ACTIONS[operation]: request})
        await self._calls.ask("transact_write_items", TransactItems=actions, ClientRequestToken=token)

    async def add(self, item: Item) -> bool:
        """Write a new row. False if there is one, which stays."""
        try:
            await self.write(Put(item, absent()))
        except WriteRefused:
            return False
        return True

    async def change(self, key: Key, work: Callable[[Item | None], Item | None]) -> Item | None:
        """Read a row, and write what `work` makes of it; again if it changed meanwhile. `work` gets None for a row that
        is missing, and returns None to leave it as it is. Returns the row as it was written; None if it was left."""
        old = await self.get(key)
        while True:
            new = work(old)
            if new is None:
                return None
            try:
                written = await self.write(changed(key, old, new))
            except WriteRefused as refused:
                old = refused.items[0]
                continue
            return written if old is not None else new

    async def put_many(self, items: Iterable[Item]) -> None:
        """Write rows, replacing what is there; each by itself."""
        await self._batch([({"PutRequest": {"Item": to_wires(_signed(item))}}, size_of(item)) for item in items])

    async def delete_many(self, keys: Iterable[Key]) -> None:
        """Remove rows, each by itself."""
        await self._batch([({"DeleteRequest": {"Key": wire_key(key)}}, 0) for key in dict.fromkeys(keys)])

    async def delete(self, key: Key, when: Where | None = None) -> Item | None:
        """Remove a row, and return it. None if there is none, or the condition does not hold."""
        try:
            return await self.write(Delete(key, when))
        except WriteRefused:
            return None

    async def _get_block(self, keys: Sequence[Key]) -> list[Item]:
        asked: dict[str, Any] = {"Keys": [wire_key(key) for key in keys], "ConsistentRead": True}
        found: list[Item] = []
        wanted, waits = {self._calls.table: asked}, pauses()
        while True:
            answer, _ = await self._calls.ask("batch_get_item", RequestItems=wanted)
            found += [from_wires(item) for item in answer["Responses"].get(self._calls.table, ())]
            wanted = answer.get("UnprocessedKeys")
            if not wanted:
                return found
            await asyncio.sleep(next(waits))

    async def _batch(self, requests: Sequence[tuple[dict[str, Any], int]]) -> None:
        """Send requests with their sizes in bytes, as many at once as DynamoDB takes."""

        async def one(some: list[dict[str, Any]]) -> None:
            wanted, waits = {self._calls.table: some}, pauses()
            while wanted:
                answer, _ = await self._calls.ask("batch_write_item", RequestItems=wanted)
                wanted = answer.get("UnprocessedItems")
                if wanted:
                    await asyncio.sleep(next(waits))

        await each(_blocks(requests), one)

    def _asked(self, pk: str, index: str, sort: Where | None, where: Where | None) -> dict[str, Any]:
        to = Expression()
        at = equals(PARTITION[index], pk)
        asked = self._table | {"KeyConditionExpression": (all_of(at, sort) if sort else at)(to)}
        if where is not None:
            asked["FilterExpression"] = where(to)
        asked |= {"IndexName": index} if index else {"ConsistentRead": True}
        return asked | to.given()

    def _request(self, write: Write, token: str) -> tuple[str, str, dict[str, Any]]:
        """Which operation, what its answer has, and its arguments."""
        to, request = Expression(), dict(self._table)
        if isinstance(write, Put):
            operation, returned = "put_item", "Attributes"
            request["Item"] = to_wires(_signed(write.item, token))
        else:
            operation, returned = "delete_item", "Attributes"
            request["Key"] = wire_key(write.key)
        if isinstance(write, Update):
            operation = "update_item"
            signed = Update(write.key, {**write.to, _TOKEN: token}, write.add)
            request["UpdateExpression"] = update_text(signed, to)
        if isinstance(write, ConditionCheck):
            operation = "check"
        if write.when is not None:
            request["ConditionExpression"] = write.when(to)
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return operation, returned, request | to.given()


_ACTIONS: Final = {"put_item": "Put", "update_item": "Update", "delete_item": "Delete", "check": "ConditionCheck"}


def unchanged(item: Item | None) -> Where:
    """Nobody wrote the row since it was read; None: there was none."""
    return absent() if item is None else equals(_TOKEN, item[_TOKEN])


def changed(key: Key, old: Item | None, new: Item) -> Put | Update:
    """The write that makes `new` of a row, if it is still `old`."""
    if old is None:
        return Put({**new, "pk": key[0], "sk": key[1]}, absent())
    to = {name: value for name, value in new.items() if value != old.get(name)}
    to |= {name: None for name in old if name not in new}
    for name in ("pk", "sk", _TOKEN):
        to.pop(name, None)
    return Update(key, to, when=unchanged(old))


def _blocks(requests: Iterable[tuple[dict[str, Any], int]]) -> Iterator[list[dict[str, Any]]]:
    block: list[dict[str, Any]] = []
    total = 0
    for request, size in requests:
        if block and (len(block) == _WRITES or total + size > _REQUEST_BYTES):
            yield block
            block, total = [], 0
        block.append(request)
        total += size
    if block:
        yield block


def _signed(item: Item, token: str | None = None) -> Item:
    return {**item, _TOKEN: token or secrets.token_hex(8)}


def _is_done(write: Write, present: Item | None, token: str) -> bool:
    """Whether an earlier try, whose answer was lost, had written it."""
    if isinstance(write, Delete):
        return present is None
    return present is not None and present.get(_TOKEN) == token
