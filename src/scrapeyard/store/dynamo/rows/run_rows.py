"""A run as a row: where it stands, what the indexes show of it, and what becomes of it."""

from typing import Final

from scrapeyard.model import FINAL, ExitReason, RunStatus
from scrapeyard.store.dynamo.table.expressions import Where, all_of, at_least, below, equals, one_of
from scrapeyard.store.dynamo.table.table import sharded
from scrapeyard.store.dynamo.table.values import Item, Key
from scrapeyard.store.ports.runs import Ending, RunFilter
from scrapeyard.store.runs.rows import ENDED_COLUMNS, Row, cancelled, ended_row, retry_row

PUBLISHED: Final = "run/published"
WAITING: Final = "run/waiting"
RUNNING: Final = "run/running"
SWEEP: Final = "run/sweep"
RUN: Final = "run"
"""Partitions of the indexes, each with a shard: queued and published, by `queued_at`; queued for later, by
`not_before`; running, by `lease_until`; to be swept, by `sweep_at`; all by id, and ended ones by `finished_at`."""
FINAL_RUN: Final = frozenset(status.value for status in FINAL)
"""Statuses of runs that ended."""


def run_key(run_id: str) -> Key:
    """Where a run stands."""
    return f"run/{run_id}", "run"


def placed(row: Row) -> Item:
    """A run with its key and its entries in the indexes, which follow from its status. Raises ValueError for a row that
    cannot be: DynamoDB does not refuse it."""
    if row["attempt"] < 1 or row["max_attempts"] < 1:
        raise ValueError(f"run {row['id']}: attempt {row['attempt']} of {row['max_attempts']} cannot be")
    if (row["status"] in FINAL_RUN) != (row.get("exit_reason") is not None and row.get("finished_at") is not None):
        raise ValueError(f"run {row['id']}: {row['status']} with exit reason {row.get('exit_reason')} cannot be")
    run_id, status = row["id"], row["status"]
    pk, sk = run_key(run_id)
    due: tuple[str | None, float | None] = (None, None)
    ended: tuple[str | None, float | None] = (None, None)
    if status == RunStatus.RUNNING:
        due = (RUNNING, row["lease_until"])
    elif status == RunStatus.QUEUED:
        due = (PUBLISHED, row["queued_at"]) if row.get("not_before") is None else (WAITING, row["not_before"])
    else:
        ended = (sharded(RUN, run_id), row["finished_at"])
        if row.get("sweep_at") is not None:
            due = (SWEEP, row["sweep_at"])
    return row | {
        "pk": pk,
        "sk": sk,
        "list_pk": sharded(RUN, run_id),
        "list_sk": run_id,
        "due_pk": due[0] and sharded(due[0], run_id),
        "due_at": due[1],
        "ended_pk": ended[0],
        "ended_at": ended[1],
    }


def outcome_row(old: Item | None, ending: Ending) -> Row | None:
    """The row after an attempt ended; None if the run is final or past it. Its own columns stay as they are."""
    outcome = ending.outcome
    again = outcome.retry_after is not None
    if old is not None:
        if old["status"] in FINAL_RUN or old["attempt"] > outcome.attempt:
            return None
        if again and old["cancel_requested"]:
            ending, again = cancelled(ending), False
    row = retry_row(ending) if again else ended_row(ending)
    if old is None:
        return row
    kept = {name: old.get(name) for name in row if name not in (*ENDED_COLUMNS, "input")}
    told = {name: row[name] for name in ENDED_COLUMNS if name in row}
    return row | kept | told


def put_back(row: Item, now: float) -> Row:
    """The row of a run that is given back: queued again, due now, or cancelled if that was requested."""
    free = {"worker_id": "", "started_at": None, "lease_until": None}
    if row["cancel_requested"]:
        ended = {"status": RunStatus.CANCELLED.value, "exit_reason": ExitReason.CANCELLED.value, "finished_at": now}
        return row | free | ended
    return row | free | {"status": RunStatus.QUEUED.value, "not_before": now}


def run_condition(where: RunFilter) -> Where | None:
    """What an index can tell of a filter; None: anything fits."""
    conditions: list[Where] = []
    if where.statuses is not None:
        conditions.append(one_of("status", [status.value for status in where.statuses]))
    if where.exit_reasons is not None:
        conditions.append(one_of("exit_reason", [reason.value for reason in where.exit_reasons]))
    for name, value in (("scraper_id", where.scraper), ("owner", where.owner)):
        if value is not None:
            conditions.append(equals(name, value))
    if where.created_after is not None:
        conditions.append(at_least("created_at", where.created_after))
    if where.created_before is not None:
        conditions.append(below("created_at", where.created_before))
    return all_of(*conditions) if conditions else None


def fits(row: Item, where: RunFilter) -> bool:
    """Whether it still is what the index said."""
    status = where.statuses is None or row["status"] in where.statuses
    return status and (where.exit_reasons is None or row.get("exit_reason") in where.exit_reasons)
