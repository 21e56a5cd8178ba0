"""Content of rows: sealed where the settings ask for it, and in parts where it is too large for one row."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import json

from scrapeyard.sealing.sealer import Sealer
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Delete, Where, begins
from scrapeyard.store.dynamo.table.table import DynamoTable, each
from scrapeyard.store.dynamo.table.values import Item, Key, key_of, size_of

MAX_ROW_BYTES: Final = 380_000
"""DynamoDB's limit is 409,600, the names of attributes and the keys of indexes included."""
_PART_BYTES: Final = 380_000
_PARTS: Final = "parts"
"""The attribute that says where the parts of others are: name → [token, how many], as JSON."""
_DECODER: Final = json.Decoder(dict[str, tuple[str, int]])


class DynamoContents:
    """Content attributes of one noun, which are bytes. `places` names, by attribute, what their seals are bound to.

    Parts are written before the row that names them and removed after it. So a row is always whole; after a crash some
    parts may be left that no row names, until `drop` removes them together with the row.
    """

    def __init__(self, table: DynamoTable, sealer: Sealer, places: Mapping[str, str], *, encrypts: bool) -> None:
        self._table = table
        self._sealer = sealer
        self._places = places
        self._encrypts = encrypts

    async def stored(self, item: Item, *, most: int = MAX_ROW_BYTES) -> Item:
        """A row as it is written. Content beyond `most` bytes is written as parts now, the largest first."""
        sealed: Item = {name: self._sealed(name, value) for name, value in item.items()}
        large = sorted((name for name in self._places if sealed.get(name)), key=lambda name: -len(sealed[name]))
        parts: dict[str, tuple[str, int]] = {}
        size = size_of(sealed)
        while size > most and large:
            name = large.pop(0)
            size -= len(sealed[name])
            parts[name] = await self._put_parts(key_of(item), name, sealed.pop(name))
        return sealed | {_PARTS: json.encode(parts).decode() if parts else None}

    async def opened(self, items: Sequence[Item], *, without: Iterable[str] = ()) -> list[Item]:
        """Rows as they were given, but for these attributes. Raises SealBroken."""
        left_out = frozenset(without)
        parted = [item for item in items if _PARTS in item]
        wholes = await each(parted, lambda item: self._whole(item, left_out))
        joined = {key_of(whole): whole for whole in wholes}
        return [self._open(joined[key_of(item)] if _PARTS in item else item, left_out) for item in items]

    async def drop(self, keys: Iterable[Key], when: Where | None = None) -> None:
        """Remove rows with all their parts. Those for which the condition does not hold stay."""
        await each(keys, lambda key: self._drop(key, when))

    async def drop_parts(self, pk: str) -> None:
        """Remove the parts of all rows of a partition, also those that a crash left, or a row that was replaced."""
        async for page in self._table.pages(_partition(pk)):
            await self._table.delete_many(map(key_of, page))

    async def clean(self, items: Iterable[Item]) -> None:
        """Remove the parts of rows that were removed or replaced."""
        await self._table.delete_many([key for item in items for key in _named(item)])

    async def clean_others(self, items: Sequence[Item]) -> None:
        """Remove the parts of these rows that they do not name: of rows that they replaced, also long ago. Nobody else
        may write the rows meanwhile."""
        named = {key for item in items for key in _named(item)}
        partitions: dict[str, set[str]] = {}
        for item in items:
            partitions.setdefault(item["pk"], set()).add(item["sk"])
        for pk, rows in partitions.items():
            async for page in self._table.pages(_partition(pk)):
                parts = [key_of(part) for part in page if part["sk"].rsplit("/", 3)[0] in rows]
                await self._table.delete_many(key for key in parts if key not in named)

    def _sealed(self, name: str, value: Any) -> Any:
        if not self._encrypts or name not in self._places or not isinstance(value, bytes):
            return value
        return self._sealer.seal(value, self._places[name])

    async def _whole(self, item: Item, without: frozenset[str]) -> Item:
        """A row with what lies in parts. If one is missing, the row was replaced since it was read: it is read anew."""
        while True:
            found = {name: value for name, value in item.items() if name != _PARTS}
            parts = _DECODER.decode(item[_PARTS]) if _PARTS in item else {}
            for name in parts.keys() - without - found.keys():
                found[name] = await self._joined(key_of(item), name, *parts[name])
            if all(found.get(name, b"") is not None for name in parts):
                return found
            fresh = await self._table.get(key_of(item))
            if fresh is None:
                return found
            if fresh == item:
                raise RuntimeError(f"content of {key_of(item)} is missing: some of its parts were removed")
            item = fresh

    def _open(self, item: Item, without: frozenset[str]) -> Item:
        found = {name: value for name, value in item.items() if name not in without}
        for name, place in self._places.items():
            if isinstance(value := found.get(name), bytes):
                found[name] = self._sealer.open(value, place)
        return found

    async def _put_parts(self, key: Key, name: str, value: bytes) -> tuple[str, int]:
        token = secrets.token_hex(8)
        blocks = [value[start : start + _PART_BYTES] for start in range(0, len(value), _PART_BYTES)]
        keys = _part_keys(key, name, token, len(blocks))
        await self._table.put_many(
            {"pk": pk, "sk": sk, "bytes": block} for (pk, sk), block in zip(keys, blocks, strict=True)
        )
        return token, len(blocks)

    async def _joined(self, key: Key, name: str, token: str, count: int) -> bytes | None:
        keys = _part_keys(key, name, token, count)
        found = await self._table.get_many(keys)
        return b"".join(found[part]["bytes"] for part in keys) if len(found) == count else None

    async def _drop(self, key: Key, when: Where | None) -> None:
        try:
            await self._table.write(Delete(key, when))
        except WriteRefused as refused:
            if refused.items[0] is not None:
                return
        parts = await self._table.query(_partition(key[0]), sort=begins("sk", f"{key[1]}/"))
        if parts:
            await self._table.delete_many(key_of(part) for part in parts)


def _partition(pk: str) -> str:
    """Where the parts of a partition's rows stand."""
    return f"part/{pk}"


def _named(item: Item) -> list[Key]:
    """Where the parts that a row names stand."""
    parts = _DECODER.decode(item[_PARTS]) if item.get(_PARTS) else {}
    return [key for name, (token, count) in parts.items() for key in _part_keys(key_of(item), name, token, count)]


def _part_keys(key: Key, name: str, token: str, count: int) -> list[Key]:
    return [(_partition(key[0]), f"{key[1]}/{token}/{name}/{number:04}") for number in range(count)]
