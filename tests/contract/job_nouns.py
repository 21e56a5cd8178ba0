"""Jobs, items and outcomes for tests of the store: plain ones, to be varied by keyword."""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from scrapeyard.model import ExitReason, RunError, Usage, new_id
from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, Job, JobStatus, NewItem
from tests.contract.nouns import NOW


def a_job(**given: Any) -> Job:
    """A job that is being filled."""
    plain: dict[str, Any] = {
        "id": new_id("job"),
        "status": JobStatus.CREATING,
        "scraper": "shop/product@^1",
        "pinned": "shop/product@1.4.2",
        "created_at": NOW,
        "reading": True,
    }
    return Job(**(plain | given))


def new_items(count: int, first: int = 0) -> list[NewItem]:
    """Items named `item-0`, `item-1`, …"""
    return [
        NewItem(key=f"item-{number}", input=Raw(b'{"url": "http://shop.example/%d"}' % number))
        for number in range(first, first + count)
    ]


def a_batch(job: Job | str, left: int = 500, **given: Any) -> Batch:
    """A batch to be cut."""
    job_id = job if isinstance(job, str) else job.id
    plain: dict[str, Any] = {"id": new_id("batch"), "job_id": job_id, "left": left, "queued_at": NOW}
    return Batch(**(plain | given))


def a_success(item: BatchItem | int, **given: Any) -> ItemOutcome:
    """The item's good end."""
    seq, attempt = (item, 1) if isinstance(item, int) else (item.seq, item.attempt)
    plain: dict[str, Any] = {
        "seq": seq,
        "attempt": attempt,
        "exit_reason": ExitReason.SUCCEEDED,
        "result": Raw(b'{"title": "Kettle"}'),
        "result_bytes": 19,
        "site": "shop.example",
        "usage": Usage(wall_ms=12.5, requests=1, bytes_received=1000, bytes_by_class={"direct": 1000}),
        "started_at": NOW + 1,
        "finished_at": NOW + 2,
    }
    return ItemOutcome(**(plain | given))


def an_error(item: BatchItem | int, **given: Any) -> ItemOutcome:
    """The item's bad end."""
    plain = {"exit_reason": ExitReason.FETCH_STATUS, "result": None, "result_bytes": 0}
    return a_success(item, **(plain | {"error": RunError(message="the site says 404", site_status=404)} | given))


def a_retry(item: BatchItem | int, **given: Any) -> ItemOutcome:
    """Not an end: the item is to be tried again at once."""
    return an_error(item, **({"not_before": NOW} | given))


def successes(items: Iterable[BatchItem]) -> list[ItemOutcome]:
    """All of them ended well."""
    return [a_success(item) for item in items]
