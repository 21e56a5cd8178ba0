"""Transactions written as scripts: generators that yield what the database is to do, and are given the rows.

A script does not know how it is played: on SQLite all of it in one visit to the connection's thread, on PostgreSQL
statement by statement. Statements are compiled once. Values go to the driver as they are, and so come back: SQLite
gives 0 and 1 for booleans.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import ClauseElement, Dialect, Table

T = TypeVar("T")


class Execute(NamedTuple):
    """Run one statement. The script is given its rows, or an empty list when it returns none."""

    statement: ClauseElement
    given: Mapping[str, Any] = {}


class BulkInsert(NamedTuple):
    """Insert rows that hold a value for every column, in order, by the quickest way and whatever their number. Rows
    that are there already are left out; the script is given how many were not."""

    table: Table
    rows: Sequence[tuple[Any, ...]]


Script = Generator[Execute | BulkInsert, Any, T]
Work = Callable[[], Script[T]]
"""Begins the script anew: it may be played again."""


class StatementCache:
    """Statements in the words of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: WeakKeyDictionary[ClauseElement, tuple[str, Sequence[str], dict[str, Any]]] = WeakKeyDictionary()

    def phrase(self, ask: Execute) -> tuple[str, tuple[Any, ...]]:
        """The text and its values, in their order."""
        known = self._known.get(ask.statement)
        if known is None:
            known = self._known[ask.statement] = self._compiled(ask.statement)
        words, names, values = known
        given = {**values, **ask.given}
        return words, tuple([given[name] for name in names])

    def _compiled(self, statement: ClauseElement) -> tuple[str, Sequence[str], dict[str, Any]]:
        compiled: Any = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        return str(compiled), compiled.positiontup or (), dict(compiled.params)
