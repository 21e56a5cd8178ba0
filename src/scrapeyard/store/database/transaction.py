"""Transactions written as scripts: generators that yield statements and receive their rows.

A script does not depend on how it is run: on SQLite in one call to the connection's thread, on PostgreSQL statement by
statement. Statements are compiled once. Values pass to and from the driver unchanged: SQLite returns 0 and 1 for
booleans.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import ClauseElement, Dialect, Table

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


class StatementCache:
    """Statements compiled for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: WeakKeyDictionary[ClauseElement, tuple[str, Sequence[str], dict[str, Any]]] = WeakKeyDictionary()

    def phrase(self, ask: Execute) -> tuple[str, tuple[Any, ...]]:
        """The SQL text and its values, in order."""
        known = self._known.get(ask.statement)
        if known is None:
            known = self._known[ask.statement] = self._compiled(ask.statement)
        words, names, values = known
        given = {**values, **ask.given}
        return words, tuple([given[name] for name in names])

    def _compiled(self, statement: ClauseElement) -> tuple[str, Sequence[str], dict[str, Any]]:
        compiled: Any = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        return str(compiled), compiled.positiontup or (), dict(compiled.params)
