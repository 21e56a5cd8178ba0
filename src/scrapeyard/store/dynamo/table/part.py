"""What every noun of the store shares."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from scrapeyard.sealing.sealer import Sealer
from scrapeyard.store.dynamo.table.contents import DynamoContents
from scrapeyard.store.dynamo.table.table import DynamoTable


class DynamoBase(Struct, frozen=True, kw_only=True):
    """The table, and how content is sealed."""

    table: DynamoTable
    sealer: Sealer
    encrypts: bool = False


class DynamoPart:
    """One noun of the store, on the table that all of them share."""

    places: ClassVar[Mapping[str, str]] = {}
    """Its content attributes, and what their seals are bound to: the same as in SQL, `table.column`."""

    def __init__(self, base: DynamoBase) -> None:
        self._table = base.table
        self._sealer = base.sealer
        self._contents = DynamoContents(base.table, base.sealer, self.places, encrypts=base.encrypts)
