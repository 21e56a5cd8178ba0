"""Which items, as SQL."""

from collections.abc import Sequence
from re import compile as pattern
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, literal_column, null, select, tuple_

from scrapeyard.model.job import ITEM_KEY, ItemStatus
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.tables.jobs import ITEMS, JOBS, OUTCOMES, WAITING

FAILED: Final = OUTCOMES.c.ok == literal_column("false")
"""Written out, since a partial index serves only a query that says so."""
_KEY: Final = pattern(ITEM_KEY)
_MOST_KEYS: Final = 1000

_ENDED: Final = (
    OUTCOMES.c.attempt,
    OUTCOMES.c.exit_reason,
    OUTCOMES.c.result_key,
    OUTCOMES.c.result_bytes,
    OUTCOMES.c.error,
    OUTCOMES.c.site,
    OUTCOMES.c.usage,
    OUTCOMES.c.artifacts,
    OUTCOMES.c.started_at,
    OUTCOMES.c.finished_at,
)
_DATA: Final = (ITEMS.c.input, OUTCOMES.c.result, OUTCOMES.c.logs)
_NO_DATA: Final = (null().label("input"), null().label("result"), null().label("logs"))
_WAITS: Final = (WAITING.c.attempt.label("next_attempt"), WAITING.c.not_before)
_NO_WAIT: Final = (null().label("next_attempt"), null().label("not_before"))


def _same(found: Table, known: Table) -> ColumnElement[bool]:
    """The row of an item in `found` for its row in `known`.

    For queries of one job. The sum keeps the database from concluding that `found.job` is the job asked for:
    PostgreSQL, which takes a job newer than its statistics for empty, would then read all of it for each item.
    """
    return and_(found.c.job == known.c.job + literal_column("0"), found.c.seq == known.c.seq)


def _columns(*, data: bool) -> tuple[Any, ...]:
    """What `to_item` reads, in its order."""
    return ITEMS.c.seq, ITEMS.c.key, *(_DATA if data else _NO_DATA), *_ENDED


def _all(data: bool) -> Select[Any]:
    joined = ITEMS.outerjoin(OUTCOMES, _same(OUTCOMES, ITEMS)).outerjoin(WAITING, _same(WAITING, ITEMS))
    query = select(*_columns(data=data), *_WAITS).select_from(joined)
    return query.where(ITEMS.c.job == bindparam("job")).order_by(ITEMS.c.seq)


def _ended(data: bool) -> Select[Any]:
    query = select(*_columns(data=data), *_NO_WAIT).select_from(OUTCOMES.join(ITEMS, _same(ITEMS, OUTCOMES)))
    return query.where(OUTCOMES.c.job == bindparam("job")).order_by(OUTCOMES.c.seq)


RANGE: Final = {
    data: _all(data).where(ITEMS.c.seq.between(bindparam("first"), bindparam("last"))) for data in (False, True)
}
"""Items from `first` to `last`, with data (True) or without."""
SOME: Final = {data: _all(data).where(ITEMS.c.seq.in_(bindparam("seqs", expanding=True))) for data in (False, True)}
"""Items by their numbers."""
ENDED: Final = {
    data: _ended(data).where(OUTCOMES.c.seq.between(bindparam("first"), bindparam("last"))) for data in (False, True)
}
"""Final items from `first` to `last`; to be narrowed by `of_outcomes`."""


def of_outcomes(where: ItemFilter) -> list[ColumnElement[bool]]:
    """What a filter asks of the row of a final item, but its key."""
    conditions = []
    wanted = set(ItemStatus) if where.statuses is None else set(where.statuses)
    ends = wanted & {ItemStatus.SUCCESS, ItemStatus.ERROR}
    if ends == {ItemStatus.ERROR}:
        conditions.append(FAILED)
    elif ends == {ItemStatus.SUCCESS}:
        conditions.append(OUTCOMES.c.ok == literal_column("true"))
    elif not ends:
        conditions.append(literal_column("1 = 0"))
    if where.exit_reasons is not None:
        conditions.append(OUTCOMES.c.exit_reason.in_([reason.value for reason in where.exit_reasons]))
    if where.sites is not None:
        conditions.append(OUTCOMES.c.site.in_([site for site in where.sites if "\x00" not in site]))
    return conditions


def dead(before: Sequence[int] | None) -> Select[Any]:
    """Failed items across jobs, the newest job first and within it from its end, before a place (job, item). Both go
    the same way, so that one index serves."""
    place = tuple_(OUTCOMES.c.job, OUTCOMES.c.seq)
    columns = (*_columns(data=True), *_NO_WAIT, JOBS.c.id.label("job_id"), JOBS.c.number)
    joined = OUTCOMES.join(ITEMS, and_(ITEMS.c.job == OUTCOMES.c.job, ITEMS.c.seq == OUTCOMES.c.seq)).join(
        JOBS, JOBS.c.number == OUTCOMES.c.job
    )
    query = select(*columns).select_from(joined).where(FAILED)
    query = query if before is None else query.where(place < tuple_(*before))
    return query.order_by(OUTCOMES.c.job.desc(), OUTCOMES.c.seq.desc())


def keyed(job: int, keys: Sequence[str]) -> Select[Any]:
    """Numbers of the items of these names, in order. What cannot be a name is not asked for."""
    names = [key for key in keys[:_MOST_KEYS] if _KEY.fullmatch(key)]
    return select(ITEMS.c.seq).where(ITEMS.c.job == job, ITEMS.c.key.in_(names)).order_by(ITEMS.c.seq)
