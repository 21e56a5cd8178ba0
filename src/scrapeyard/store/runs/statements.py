"""Statements that write runs, and the columns that are read of them."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, literal_column

from scrapeyard.store.runs.rows import BEGUN, ENDED_COLUMNS
from scrapeyard.store.tables.runs import RUNS

WHOLE: Final = tuple(column for column in RUNS.c if column.name not in ("logs", "logs_cut", "scraper_id"))
"""Columns of a whole Run."""
LISTED: Final = tuple(column for column in WHOLE if column.name != "result")
"""The same without columns that may be large."""

QUEUED: Final = RUNS.c.status == literal_column("'queued'")
RUNNING: Final = RUNS.c.status == literal_column("'running'")
UNFINISHED: Final = RUNS.c.status.in_((literal_column("'queued'"), literal_column("'running'")))
"""Spelled out, since a partial index is used only if the query names the status."""


@cache
def run_statements(insert: Callable[..., Any]) -> "RunStatements":
    """Statements for a kind of database, which is identified by its INSERT."""
    return RunStatements(insert)


class RunStatements:
    """INSERTs that handle a run that already exists."""

    def __init__(self, insert: Callable[..., Any]) -> None:
        self._insert = insert
        self.add = insert(RUNS).on_conflict_do_nothing()
        self.begin = self._upsert(BEGUN)
        self.finish = self._upsert(ENDED_COLUMNS).returning(RUNS.c.id)
        self.postpone = self._upsert(ENDED_COLUMNS, ~RUNS.c.cancel_requested).returning(RUNS.c.id)
        self.retry = self._upsert(ENDED_COLUMNS, ~RUNS.c.cancel_requested, earlier=1).returning(RUNS.c.id)

    def _upsert(self, columns: Iterable[str], *also: ColumnElement[bool], earlier: int = 0) -> Any:
        """Insert, or update a run that is unfinished and not past this attempt, which is `earlier` in the row."""
        insert = self._insert(RUNS)
        not_past = RUNS.c.attempt <= insert.excluded.attempt - literal_column(str(earlier))
        values = {name: insert.excluded[name] for name in columns}
        return insert.on_conflict_do_update(index_elements=["id"], set_=values, where=and_(UNFINISHED, not_past, *also))
