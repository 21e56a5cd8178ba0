"""What items are given: keys and inputs, fifty items to a row.

The row of an item follows from its number, so any items are read by key, a hundred rows in one request.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

from msgspec import msgpack

from scrapeyard.model.job import NewItem
from scrapeyard.store.dynamo.rows.keys import number, part_of
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.values import Item, Key

CHUNK: Final = 50
_LARGE: Final = 6_000
"""More bytes of one item's content go to a row of their own: fifty items below it fit in one row."""
_ENCODER: Final = msgpack.Encoder()


class StoredItem(NamedTuple):
    """An item as a chunk has it. The content of a large one is empty there."""

    key: str
    input: bytes
    depth: int | None = None
    referrer: str = ""
    large: bool = False

    @property
    def bytes(self) -> int:
        """Of its content."""
        return len(self.input) + len(self.referrer.encode())

    @property
    def is_large(self) -> bool:
        """Whether its content needs a row of its own."""
        return self.bytes > _LARGE


_CHUNK: Final = msgpack.Decoder(list[StoredItem | None])
_CONTENT: Final = msgpack.Decoder(tuple[bytes, str])
Stored = dict[int, StoredItem]
"""Items by number."""


def as_stored(item: NewItem) -> StoredItem:
    """A new item."""
    return StoredItem(item.key, bytes(item.input), item.depth, item.referrer)


def chunk_key(job_id: str, seq: int) -> Key:
    """The row that has this item."""
    return part_of(job_id, "items"), number(seq // CHUNK)


def input_key(job_id: str, seq: int) -> Key:
    """The row that has a large item's content."""
    return part_of(job_id, "inputs"), number(seq)


class ItemChunks(DynamoPart):
    """Keys and inputs of items."""

    places: ClassVar = {"items": "items.input"}

    async def read(self, job_id: str, seqs: Iterable[int], *, data: bool = True) -> Stored:
        """These items; without `data` large ones come without their content."""
        wanted = list(seqs)
        found = await self.rows(job_id, wanted)
        items = {seq: item for seq, item in self._items(found.values()) if item is not None}
        items = {seq: items[seq] for seq in wanted if seq in items}
        if data and (large := [seq for seq, item in items.items() if item.large]):
            contents = await self._table.get_many(input_key(job_id, seq) for seq in large)
            for row in await self._contents.opened(list(contents.values())):
                seq = int(row["sk"])
                given, referrer = _CONTENT.decode(row["items"])
                items[seq] = items[seq]._replace(input=given, referrer=referrer)
        return items

    async def rows(self, job_id: str, seqs: Iterable[int]) -> dict[Key, Item]:
        """The rows of these items, in clear."""
        found = await self._table.get_many(chunk_key(job_id, seq) for seq in seqs)
        opened = await self._contents.opened(list(found.values()))
        return dict(zip(found, opened, strict=True))

    async def written(self, job_id: str, items: Mapping[int, StoredItem]) -> tuple[list[Item], dict[Key, Item]]:
        """Rows that have these items besides those that are there, to be written; and those that are there."""
        before = await self.rows(job_id, items)
        chunks: dict[Key, list[StoredItem | None]] = {}
        rows: list[Item] = []
        for seq, item in items.items():
            key = chunk_key(job_id, seq)
            chunk = chunks.get(key)
            if chunk is None:
                chunk = chunks[key] = _CHUNK.decode(before[key]["items"]) if key in before else []
            chunk += [None] * (seq % CHUNK + 1 - len(chunk))
            chunk[seq % CHUNK] = item
            if item.is_large:
                chunk[seq % CHUNK] = StoredItem(item.key, b"{}", item.depth, "", large=True)
                rows.append(_row(input_key(job_id, seq), _ENCODER.encode((item.input, item.referrer))))
        rows += [_row(key, _ENCODER.encode(chunk)) for key, chunk in chunks.items()]
        return [await self._contents.stored(row) for row in rows], before

    async def replace(self, job_id: str, items: Mapping[int, StoredItem]) -> None:
        """Write these in place of those that there are."""
        rows, _ = await self.written(job_id, items)
        await self._table.put_many(rows)
        await self._table.delete_many(input_key(job_id, seq) for seq, item in items.items() if not item.is_large)

    def _items(self, rows: Iterable[Item]) -> Iterator[tuple[int, StoredItem | None]]:
        for row in rows:
            yield from enumerate(_CHUNK.decode(row["items"]), int(row["sk"]) * CHUNK)


def _row(key: Key, content: bytes) -> Item:
    return {"pk": key[0], "sk": key[1], "items": content}
