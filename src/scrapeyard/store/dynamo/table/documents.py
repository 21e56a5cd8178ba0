"""Rows that are one msgspec Struct each, as JSON, beside the attributes that conditions and indexes name."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, json

from scrapeyard.store.dynamo.table.contents import DynamoContents
from scrapeyard.store.dynamo.table.part import DynamoBase
from scrapeyard.store.dynamo.table.values import Item, Key

T = TypeVar("T", bound=Struct)
_DOCUMENT: Final = "document"


class DynamoDocuments(Generic[T]):
    """Writes and reads the documents of one noun. `place` is what their seals are bound to."""

    def __init__(self, base: DynamoBase, kind: type[T], place: str) -> None:
        self._decoder = json.Decoder(kind)
        self._contents = DynamoContents(base.table, base.sealer, {_DOCUMENT: place}, encrypts=base.encrypts)

    async def item(self, key: Key, value: T, **attributes: Any) -> Item:
        """The row of a document."""
        item = {"pk": key[0], "sk": key[1], **attributes, _DOCUMENT: json.encode(value)}
        return await self._contents.stored(item)

    def all_of(self, item: Item) -> Item:
        """The attributes of a row, for an update: also that it has no document, if that lies in parts."""
        return {_DOCUMENT: None, **item}

    async def value(self, item: Item) -> T:
        """The document of a row. Raises SealBroken."""
        (opened,) = await self._contents.opened([item])
        return self._decoder.decode(opened[_DOCUMENT])

    async def values(self, items: Sequence[Item]) -> list[T]:
        """The documents of rows."""
        return [self._decoder.decode(opened[_DOCUMENT]) for opened in await self._contents.opened(items)]

    async def clean(self, items: Iterable[Item]) -> None:
        """Remove the parts of rows that were removed or replaced."""
        await self._contents.clean(items)

    async def drop(self, keys: Iterable[Key]) -> None:
        """Remove rows with all that belongs to them."""
        await self._contents.drop(keys)
