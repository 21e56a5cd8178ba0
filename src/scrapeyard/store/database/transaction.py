"""Transactions written as scripts: generators that yield statements and receive their rows.

A script does not depend on how it is run: on SQLite in one call to the connection's thread, on PostgreSQL statement by
statement. Statements are compiled once. Values pass to and from the driver unchanged, but for columns with content:
SQLite returns 0 and 1 for booleans.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import ClauseElement, Dialect, Table

from scrapeyard.store.tables.content import ContentSealer, ContentType

T = TypeVar("T")


class Execute(NamedTuple):
    """Run one statement. The script receives its rows, or an empty list if it returns none."""

    statement: ClauseElement
    given: Mapping[str, Any] = {}


class BulkInsert(NamedTuple):
    """Insert any number of rows, which hold a value for every column in order, by the fastest way. Existing rows are
    skipped; the script receives how many were new."""

    table: Table
    rows: Sequence[tuple[Any, ...]]


Script = Generator[Execute | BulkInsert, Any, T]
Work = Callable[[], Script[T]]
"""Starts the script anew, since it may be run again."""


class CompiledPhrase(NamedTuple):
    """A statement as the driver takes it."""

    words: str
    names: Sequence[str]
    values: Mapping[str, Any]
    sealed: Mapping[str, ContentType]
    """Parameters with content."""
    opened: Sequence[tuple[int, ContentType]]
    """Columns of the rows with content."""


class StatementCache:
    """Statements compiled for one dialect: one for the process, since that takes longer than most of them."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: WeakKeyDictionary[ClauseElement, CompiledPhrase] = WeakKeyDictionary()

    def phrase(self, ask: Execute, content: ContentSealer) -> tuple[str, tuple[Any, ...]]:
        """The SQL text and its values, in order."""
        known = self._of(ask.statement)
        given = {**known.values, **ask.given}
        for name, kind in known.sealed.items():
            given[name] = kind.sealed(given[name], content)
        return known.words, tuple([given[name] for name in known.names])

    def opened(self, ask: Execute, rows: Sequence[Any], content: ContentSealer) -> Sequence[Any]:
        """The rows that the statement returned, in clear."""
        columns = self._of(ask.statement).opened
        return [_opened_row(row, columns, content) for row in rows] if columns else rows

    def _of(self, statement: ClauseElement) -> CompiledPhrase:
        known = self._known.get(statement)
        if known is None:
            known = self._known[statement] = self._compiled(statement)
        return known

    def _compiled(self, statement: ClauseElement) -> CompiledPhrase:
        compiled: Any = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        return CompiledPhrase(
            words=str(compiled),
            names=compiled.positiontup or (),
            values=dict(compiled.params),
            sealed={
                name: bind.type for bind, name in compiled.bind_names.items() if isinstance(bind.type, ContentType)
            },
            opened=[
                (index, column.type)
                for index, column in enumerate(compiled._result_columns)
                if isinstance(column.type, ContentType)
            ],
        )


def _opened_row(row: Any, columns: Sequence[tuple[int, ContentType]], content: ContentSealer) -> tuple[Any, ...]:
    values = list(row)
    for index, kind in columns:
        values[index] = kind.opened(values[index], content)
    return tuple(values)
