"""Where items without an outcome are, and an item from what is stored of it. The same on every database."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec import Raw, json

from scrapeyard.model import Artifact, ExitReason, LogLine, RunError
from scrapeyard.model.job import Item, ItemStatus
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Fields, unpack_used
from scrapeyard.store.jobs.rules.states import STOPPED
from scrapeyard.store.ports.jobs import EndedItems, Frontier, ItemFilter

HELD: Final = frozenset({ItemStatus.QUEUED, ItemStatus.IN_PROGRESS})
FINAL_ITEM: Final = frozenset({ItemStatus.SUCCESS, ItemStatus.ERROR})
_STATES = {"queued": ItemStatus.QUEUED, "running": ItemStatus.IN_PROGRESS}


class Whereabouts:
    """A job and its batches at one moment. Read it before the items, so that item rows are never older."""

    def __init__(self, job: Fields, batches: Iterable[Held]) -> None:
        self.number: int = job.get("number", 0)
        """Of the job's row, where it has one."""
        self.total: int = job["total"]
        self.cursor: int = job["cursor"]
        self.idle = ItemStatus.CANCELLED if job["status"] in STOPPED else ItemStatus.PENDING
        self._ranges: list[_Range] = []
        self._again: dict[int, tuple[ItemStatus, int]] = {}
        for held in batches:
            self._place(held)
        self._ranges.sort()

    def status(self, seq: int) -> tuple[ItemStatus, int] | None:
        """(status, attempts begun) of an item in a batch; None if it is in none."""
        if seq in self._again:
            return self._again[seq]
        place = bisect_right(self._ranges, seq, key=_first) - 1
        if place < 0 or not self._ranges[place].holds(seq):
            return None
        status = self._ranges[place].status
        return status, int(status is ItemStatus.IN_PROGRESS)

    def held(self, statuses: Iterable[ItemStatus], after: int) -> Iterator[int]:
        """Numbers of items in batches with these statuses, in no order."""
        wanted = frozenset(statuses)
        yield from (seq for seq, (status, _) in self._again.items() if status in wanted and seq > after)
        for one in self._ranges:
            if one.status in wanted:
                yield from (seq for seq in range(max(one.first, after + 1), one.last + 1) if one.holds(seq))

    def _place(self, held: Held) -> None:
        status = _STATES[held.batch.state]
        if held.batch.again:
            begun = status is ItemStatus.IN_PROGRESS
            self._again |= {seq: (status, attempt - 1 + begun) for seq, attempt in held.undone()}
        else:
            self._ranges.append(_Range(held.batch.first, held.batch.last, status, bytes(held.marks())))


class _Range(NamedTuple):
    first: int
    last: int
    status: ItemStatus
    done: bytes

    def holds(self, seq: int) -> bool:
        return self.first <= seq <= self.last and not self.done[seq - self.first]


def _first(one: _Range) -> int:
    return one.first


_ERROR: Final = json.Decoder(RunError).decode
_ARTIFACTS: Final = json.Decoder(tuple[Artifact, ...]).decode
_LOGS: Final = json.Decoder(tuple[LogLine, ...]).decode
_REASONS: Final = {reason.value: reason for reason in ExitReason}
_STATUSES: Final = {reason.value: ItemStatus.SUCCESS if reason.is_good else ItemStatus.ERROR for reason in ExitReason}
_NO_INPUT: Final = Raw(b"{}")
_FOUND: Final = 16
"""Place of `depth` in a row; `referrer` and when it is tried again follow."""


def to_item(row: Any, standing: Whereabouts | None = None) -> Item:
    """An item from stored values in this order; a final one needs no `standing`. Without data its input is `{}`."""
    seq, key, given, result, logs, attempt, reason, result_key, size, error, site, usage, artifacts, *rest = row[
        :_FOUND
    ]
    start, end, http_status = rest
    if reason is None and standing is not None:
        return _unfinished(row, standing)
    used, strategy, proxy = unpack_used(usage)
    return Item(
        seq=seq,
        key=key,
        input=_NO_INPUT if given is None else Raw(given),
        status=_STATUSES[reason],
        attempt=attempt,
        exit_reason=_REASONS[reason],
        result=None if result is None else Raw(result),
        result_key=result_key,
        result_bytes=size,
        error=None if error is None else _ERROR(error),
        site=site,
        usage=used,
        strategy=strategy,
        proxy=proxy,
        logs=() if logs is None else _LOGS(logs),
        artifacts=() if artifacts is None else _ARTIFACTS(artifacts),
        started_at=start,
        finished_at=end,
        depth=row[_FOUND],
        referrer=row[_FOUND + 1] or "",
        http_status=http_status,
    )


def matches(item: Item, where: ItemFilter) -> bool:
    """Whether a filter, apart from its keys, matches this item."""
    return (
        (where.statuses is None or item.status in where.statuses)
        and (where.exit_reasons is None or item.exit_reason in where.exit_reasons)
        and (where.sites is None or (item.exit_reason is not None and item.site in where.sites))
        and (where.http_statuses is None or item.http_status in where.http_statuses)
    )


def _unfinished(row: Any, standing: Whereabouts) -> Item:
    seq, key, given, (depth, referrer, attempt, not_before) = row[0], row[1], row[2], row[_FOUND : _FOUND + 4]
    status, begun = standing.idle, 0 if attempt is None else attempt - 1
    if attempt is None:
        status, begun = standing.status(seq) or (standing.idle, 0)
    shown = _NO_INPUT if given is None else Raw(given)
    return Item(
        seq=seq,
        key=key,
        input=shown,
        status=status,
        attempt=begun,
        not_before=not_before,
        depth=depth,
        referrer=referrer or "",
    )


def wanted_statuses(where: ItemFilter) -> frozenset[ItemStatus]:
    """Statuses that an item of this filter can have. Only a final one has a reason, a site and an HTTP status."""
    wanted = frozenset(ItemStatus) if where.statuses is None else frozenset(where.statuses)
    if where.exit_reasons is not None or where.sites is not None or where.http_statuses is not None:
        wanted &= FINAL_ITEM
    return wanted


def newly_ended(seen: Frontier, cursor: int, still_open: set[int]) -> Iterator[int]:
    """Items that a watcher does not know the end of: those that were open first, then those handed out since, the
    newest first."""
    yield from sorted(seen.open - still_open)
    yield from (seq for seq in range(cursor - 1, seen.cursor - 1, -1) if seq not in still_open)


def told_ends(job: Fields, seen: Frontier, still_open: set[int], wanted: list[int], found: list[Item]) -> EndedItems:
    """The ends among the `wanted` items, in their order, and what the watcher knows then."""
    items = sorted((item for item in found if item.exit_reason is not None), key=lambda item: item.finished_at or 0)
    # What moved between two of the queries looks as if it had ended: it stays open.
    still_open = still_open | (set(wanted) - {item.seq for item in items})
    ended = job["success"] + job["error"]
    told = min(seen.ended, ended) + len(items)
    return EndedItems(
        frontier=Frontier(cursor=max(job["cursor"], seen.cursor), open=frozenset(still_open), ended=max(ended, told)),
        items=tuple(items),
        left_out=max(0, ended - told),
    )
