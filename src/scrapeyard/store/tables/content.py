"""Columns with content: inputs, results, logs and the like, encrypted where the settings ask for it.

The type of a column says that it has content, so every statement that SQLAlchemy runs encrypts and decrypts by itself.
Scripts and bulk inserts pass values to the driver unchanged; `StatementCache` and the backends call `ContentSealer`
for them. A value is bound to its column, not to its row, since rows move between databases and archives.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, cast

from sqlalchemy import Dialect, LargeBinary, Table, Text, TypeDecorator

from scrapeyard.sealing.sealer import MAGIC, TEXT, Sealer

_CARRIED: Final = "scrapeyard_content"


class ContentSealer:
    """Encrypts the values of content columns if `encrypts`, and decrypts them either way."""

    def __init__(self, sealer: Sealer, *, encrypts: bool = False) -> None:
        self.sealer = sealer
        self.encrypts = encrypts

    def attach(self, dialect: Dialect) -> None:
        """Serve the content columns of every statement that is run with this dialect."""
        setattr(dialect, _CARRIED, self)

    def sealed_rows(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """Rows of a table as they are stored."""
        columns = _content_of(table) if self.encrypts else ()
        return [self._sealed_row(row, columns) for row in rows] if columns else rows

    def _sealed_row(self, row: tuple[Any, ...], columns: "Sequence[tuple[int, ContentType]]") -> tuple[Any, ...]:
        values = list(row)
        for index, kind in columns:
            values[index] = kind.sealed(values[index], self)
        return tuple(values)


class Sealed(TypeDecorator[bytes]):
    """Bytes with content. `place` names the column."""

    impl = LargeBinary
    cache_ok = True
    mark = MAGIC
    """Begins an encrypted value."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def sealed(self, value: bytes | None, content: ContentSealer) -> bytes | None:
        """A value as it is stored."""
        return content.sealer.seal(value, self.place) if content.encrypts and value is not None else value

    def opened(self, value: bytes | None, content: ContentSealer) -> bytes | None:
        """A stored value in clear. Raises SealBroken."""
        return None if value is None else content.sealer.open(value, self.place)

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Called by SQLAlchemy for a value that is written."""
        return self.sealed(value, _carried(dialect))

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Called by SQLAlchemy for a value that was read."""
        return self.opened(value, _carried(dialect))


class SealedText(TypeDecorator[str]):
    """The same for text."""

    impl = Text
    cache_ok = True
    mark = TEXT

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def sealed(self, value: str | None, content: ContentSealer) -> str | None:
        """A value as it is stored."""
        return content.sealer.seal_text(value, self.place) if content.encrypts and value is not None else value

    def opened(self, value: str | None, content: ContentSealer) -> str | None:
        """A stored value in clear. Raises SealBroken."""
        return None if value is None else content.sealer.open_text(value, self.place)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Called by SQLAlchemy for a value that is written."""
        return self.sealed(value, _carried(dialect))

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Called by SQLAlchemy for a value that was read."""
        return self.opened(value, _carried(dialect))


ContentType = Sealed | SealedText
CLEAR: Final = ContentSealer(Sealer())
"""Leaves everything as it is."""


def _carried(dialect: Dialect) -> ContentSealer:
    return cast("ContentSealer", getattr(dialect, _CARRIED, CLEAR))


@cache
def _content_of(table: Table) -> Sequence[tuple[int, ContentType]]:
    return [(index, column.type) for index, column in enumerate(table.c) if isinstance(column.type, ContentType)]
