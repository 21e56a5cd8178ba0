"""What happens to a job: one stream of events in its store, which live streams and webhooks read."""

from enum import StrEnum


class JobEventKind(StrEnum):
    """Kind of an event. Its data is a JSON object."""

    STATUS = "status"
    """`status`, and what led to it: `reason`, `redriven`, `problem`."""
    ITEM_FAILED = "item_failed"
    """`id`, `exit_reason`, `error`; the first 1,000 of a job."""
    BREAKER = "breaker"
    BUDGET = "budget"
    EXPORT = "export"
    WEBHOOK = "webhook"
    """A message that was given up."""
    ROWS_SKIPPED = "rows_skipped"
    ROWS_REFUSED = "rows_refused"
    ARCHIVE = "archive"
    """`state`: archived, restored, damaged."""
