"""An item from its row."""

from typing import Any, Final

from msgspec import Raw, json

from scrapeyard.model import Artifact, ExitReason, LogLine, RunError
from scrapeyard.model.job import Item, ItemStatus
from scrapeyard.store.jobs.item_state import Whereabouts
from scrapeyard.store.jobs.outcome_rows import GOOD
from scrapeyard.store.jobs.rows import unpack_usage
from scrapeyard.store.ports.jobs import ItemFilter

_ERROR: Final = json.Decoder(RunError).decode
_ARTIFACTS: Final = json.Decoder(tuple[Artifact, ...]).decode
_LOGS: Final = json.Decoder(tuple[LogLine, ...]).decode
_REASONS: Final = {reason.value: reason for reason in ExitReason}
_STATUSES: Final = {reason.value: ItemStatus.SUCCESS if reason in GOOD else ItemStatus.ERROR for reason in ExitReason}
_NO_INPUT: Final = Raw(b"{}")


def to_item(row: Any, standing: Whereabouts | None = None) -> Item:
    """An item from a row of `job_item_queries`; a final one needs no `standing`. Without data its input is `{}`."""
    seq, key, given, result, logs, attempt, reason, result_key, size, error, site, usage, artifacts, start, end = row[
        :15
    ]
    if reason is None and standing is not None:
        return _unfinished(row, standing)
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
        usage=unpack_usage(usage),
        logs=() if logs is None else _LOGS(logs),
        artifacts=() if artifacts is None else _ARTIFACTS(artifacts),
        started_at=start,
        finished_at=end,
    )


def matches(item: Item, where: ItemFilter) -> bool:
    """Whether a filter, but for its keys, lets this item through."""
    return (
        (where.statuses is None or item.status in where.statuses)
        and (where.exit_reasons is None or item.exit_reason in where.exit_reasons)
        and (where.sites is None or (item.exit_reason is not None and item.site in where.sites))
    )


def _unfinished(row: Any, standing: Whereabouts) -> Item:
    seq, key, given, attempt, not_before = row[0], row[1], row[2], row[15], row[16]
    status, begun = standing.idle, 0 if attempt is None else attempt - 1
    if attempt is None:
        status, begun = standing.status(seq) or (standing.idle, 0)
    shown = _NO_INPUT if given is None else Raw(given)
    return Item(seq=seq, key=key, input=shown, status=status, attempt=begun, not_before=not_before)
