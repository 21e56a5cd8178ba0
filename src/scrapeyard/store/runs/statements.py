"""The bulk statements for runs, built once: building one costs more than running it."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, literal_column

from scrapeyard.store.tables.runs import RUNS

QUEUED: Final = RUNS.c.status == literal_column("'queued'")
RUNNING: Final = RUNS.c.status == literal_column("'running'")
UNFINISHED: Final = RUNS.c.status.in_((literal_column("'queued'"), literal_column("'running'")))
"""Written out, since a partial index serves only a query that names the state."""

_BEGUN: Final = ("status", "attempt", "worker_id", "started_at", "lease_until", "not_before")
_TOLD: Final = ("resolved", "error", "report", "logs", "logs_cut")
_ENDED: Final = (*_BEGUN, *_TOLD, "finished_at", "exit_reason", "result", "result_key", "result_bytes")


@cache
def run_statements(insert: Callable[..., Any]) -> "RunStatements":
    """Those of a kind of database, which is told by its INSERT."""
    return RunStatements(insert)


class RunStatements:
    """INSERTs that know what to do with a run that is there already."""

    def __init__(self, insert: Callable[..., Any]) -> None:
        self._insert = insert
        self.add = insert(RUNS).on_conflict_do_nothing()
        self.begin = self._upsert(_BEGUN)
        self.finish = self._upsert(_ENDED).returning(RUNS.c.id)
        self.postpone = self._upsert(_ENDED, ~RUNS.c.cancel_requested).returning(RUNS.c.id)
        self.retry = self._upsert(_ENDED, ~RUNS.c.cancel_requested, earlier=1).returning(RUNS.c.id)

    def _upsert(self, columns: Iterable[str], *also: ColumnElement[bool], earlier: int = 0) -> Any:
        """Insert, or change a run that is unfinished and not past this attempt, which stands `earlier` in the row."""
        insert = self._insert(RUNS)
        not_past = RUNS.c.attempt <= insert.excluded.attempt - literal_column(str(earlier))
        values = {name: insert.excluded[name] for name in columns}
        return insert.on_conflict_do_update(index_elements=["id"], set_=values, where=and_(UNFINISHED, not_past, *also))
