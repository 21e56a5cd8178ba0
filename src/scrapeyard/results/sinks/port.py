"""The port of sinks: where the results of jobs are delivered. docs/design/sinks.md tells how delivery works.

A sink is defined by the operator. The delivery gives it one batch after another, and repeats a batch, with the same id
and number, until `deliver` returns: after an error, after a restart, and after a kill between two steps. So every
adapter makes a repeated batch harmless as far as its target allows, and `repeats` says how far.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
from msgspec import Raw, Struct

from scrapeyard.model.instants import instant

Repeats = Literal["once", "same_id"]
"""What a reader of the target sees of a repeated batch. `once`: nothing. `same_id`: its records again, with the same
batch id or message key, by which the reader drops them."""


class SinkRecord(Struct, frozen=True, kw_only=True):
    """How one item ended. A redriven item that ends again is delivered again, in a later batch."""

    job_id: str
    item_key: str
    """Unique within the job."""
    scraper: str
    """`site/task`."""
    version: str
    status: str
    """`success` or `error`."""
    exit_reason: str
    http_status: int | None = None
    attempt: int
    finished_at: float
    """Unix seconds."""
    error: str = ""
    """Empty for a success."""
    input: Raw
    """A JSON object."""
    data: Raw = Raw(b"null")
    """What the scraper returned, as JSON; `null` for an error."""

    def to_json(self) -> bytes:
        """The record as one JSON object, as webhooks and messages carry it."""
        return msgspec.json.encode(
            {
                "job_id": self.job_id,
                "item_key": self.item_key,
                "scraper": self.scraper,
                "version": self.version,
                "status": self.status,
                "exit_reason": self.exit_reason,
                "http_status": self.http_status,
                "attempt": self.attempt,
                "finished_at": instant(self.finished_at),
                "error": self.error or None,
                "input": self.input,
                "data": self.data,
            }
        )


class SinkBatch(Struct, frozen=True, kw_only=True):
    """Records of one job. A batch has the same id, number and items each time it is delivered."""

    id: str
    """Unique among all batches of all sinks; letters, digits, `_` and `-`."""
    job_id: str
    number: int
    """Counts from 1 within the job and sink."""
    records: tuple[SinkRecord, ...]
    """At least one, in the order of the job's list; no item twice."""


class RefusedRecord(Struct, frozen=True, kw_only=True):
    """A record that the target can never take."""

    item_key: str
    why: str


class ResultSink(Protocol):
    """One sink. Batches of several jobs may be delivered at the same time."""

    name: str
    """As the operator calls it."""
    repeats: Repeats

    async def start(self) -> None:
        """Prepare without contacting the target: a target that is away must not keep a server from starting."""

    async def stop(self) -> None:
        """Release connections. May be called twice."""

    async def check(self) -> str:
        """Contact the target and see whether it would take records; a few words about it, for `scrapeyard doctor`.
        Raises SinkUnavailable."""

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        """Deliver all records but those returned, durably: after this returns, the batch is not delivered again. What
        is returned is counted as failed and not tried again, so return only records that no retry can help: a value
        that the target has no way to hold, or one record that is too large. Raises SinkUnavailable for everything else,
        such as no answer or no permission: the whole batch is then repeated after a wait."""
