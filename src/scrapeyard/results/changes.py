"""What changed between two crawls of one scope.

ADDED      a page that was not known, or had been gone
MODIFIED   fields differ, for `confirm` crawls in a row in the same way
REMOVED    the site says 404 or 410, or a listing that was read whole no longer has the page, for `confirm` crawls in a
           row
UNCHANGED  all else that was read
FAILED     the page was asked for and did not come: what is known of it stays
UNKNOWN    nobody looked: the listing was not read whole, or another source had listed the page
"""

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.model.job import SnapshotPolicy
from scrapeyard.results.exports.cells import as_json, as_number, as_text, as_time, decode
from scrapeyard.results.exports.columns import FULL, SEO, Cell, Row
from scrapeyard.results.exports.protocol import Line
from scrapeyard.results.exports.records import (
    data_of,
    flatten,
    full_row,
    is_extracted,
    is_page,
    seo_row,
    status_of,
    url_of,
)
from scrapeyard.results.listings import PageListing
from scrapeyard.store.ports.exports import PageState, Snapshot

MAX_FIELDS: Final = 500
"""Maximum fields of one page; the rest is not compared."""
MAX_NAMES: Final = 50
"""Maximum field names listed for one change."""
_LONG: Final = 200
"""Characters; longer text is compared by its digest."""
MAX_REASON: Final = 300
_GONE: Final = (404, 410)
_REFUSED: Final = 400
"""From this status on, what the site sent is not the page."""
_COMPARED: Final = frozenset(
    {
        *("final_url", "http_status", "title", "h1", "price", "currency", "availability", "sku", "brand", "category"),
        *("breadcrumbs", "images", "attrs_json", "text_hash", "meta_description", "og_title", "og_description"),
        *("og_image", "twitter_title", "twitter_description", "canonical", "robots", "hreflang", "images_alt_joined"),
    }
)
"""Columns of `full` and `seo` that say what a page holds; the others say how it was fetched."""
_PART_OF: Final = {
    **dict.fromkeys(("price", "currency", "availability", "sku", "brand", "category"), "product"),
    **dict.fromkeys(("breadcrumbs", "attrs_json"), "product"),
    **dict.fromkeys(("images", "images_alt_joined"), "images"),
    **dict.fromkeys(("og_title", "og_description", "og_image", "twitter_title", "twitter_description"), "cards"),
}
"""Fields that a crawl may not have extracted, and the part of the page that they are from."""
_WHOLE: Final = PageListing()
_encode = msgspec.json.Encoder(order="sorted").encode


class ChangeType(StrEnum):
    """What happened to a page."""

    ADDED = "ADDED"
    REMOVED = "REMOVED"
    MODIFIED = "MODIFIED"
    UNCHANGED = "UNCHANGED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


_WITHOUT: Final = (ChangeType.REMOVED, ChangeType.FAILED, ChangeType.UNKNOWN)
"""Changes of pages that were not read, and have a reason instead."""


class ChangesMetadata(Struct, frozen=True, kw_only=True):
    """Summary of a job's comparison."""

    job_id: str
    scope: str
    parts: int
    rows: int
    counts: dict[str, int]
    known: int = 0
    """Rows of pages that an earlier crawl knew; 0 for a first crawl."""


class Sight(Struct, frozen=True, kw_only=True):
    """A page as one crawl saw it."""

    page: str
    url: str
    seq: int
    at: float
    fields: dict[str, Any] | None = None
    """None if it was not read."""
    parts: tuple[str, ...] = ()
    """Groups of fields that were extracted."""
    gone: str = ""
    """How the site said that there is no such page; empty if it did not."""
    failure: str = ""
    """Why it was not read; empty if it was, or if nobody tried."""
    skipped: bool = False
    """The script had nothing to get there."""
    source: str = ""
    """Digest of the listing."""
    depth: int | None = None


def see(line: Line, seq: int, ignore: Sequence[str], source: str = "") -> Sight:
    """What a crawl saw of an item's page."""
    data = data_of(line)
    url = url_of(line, data)
    page = hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()[:40]
    sight = Sight(page=page, url=url, seq=seq, at=line.finished_at or 0.0, source=source, depth=line.depth)
    status = status_of(line, data)
    if status in _GONE or line.exit_reason == "gone":
        return replace(sight, gone=f"status {status}" if status else "gone")
    if line.exit_reason == "skipped":
        return replace(sight, skipped=True, failure=f"skipped: {line.error}" if line.error else "skipped")
    if line.status == "success" and (status is None or status < _REFUSED):
        return replace(sight, fields=_fields(line, data, ignore), parts=_parts(line, data))
    return replace(sight, failure=_failure(line, status))


def _failure(line: Line, status: int | None) -> str:
    if line.status == "success":
        return f"status {status}"
    told = ": ".join(filter(None, (line.exit_reason, line.error)))
    return told[:MAX_REASON] if line.status == "error" else ""


def compare(
    known: Snapshot | None, sight: Sight, job_id: str, policy: SnapshotPolicy
) -> tuple[Snapshot | None, Row | None]:
    """The new snapshot (None if unchanged) and the row for the diff (None if there is none).

    Repeating a comparison of the same job gives the same result.
    """
    if known is not None and known.job_id == job_id and known.seq not in (-1, sight.seq):
        return None, None  # duplicate page: its first item counts
    before = _before(known, job_id)
    state, change = _seen(before, sight, policy) if sight.fields is not None else _not_seen(before, sight, policy)
    row = None if change is None else _row_of_sight(sight, before, state, change)
    if state is None:
        return None, row
    state = replace(state, source=sight.source, depth=sight.depth)
    after = Snapshot(page=sight.page, url=sight.url, job_id=job_id, seq=sight.seq, state=state, before=before)
    return after, row


def miss(
    known: Snapshot, job_id: str, at: float, policy: SnapshotPolicy, listing: PageListing = _WHOLE
) -> tuple[Snapshot | None, Row | None]:
    """A page missing from this crawl's list. The new snapshot is None if the page was already gone: forget it. It is
    `known` itself if nobody looked for the page."""
    before = _before(known, job_id)
    if before is None or before.gone:
        return None, None
    if why := _not_looked_for(before, listing):
        return known, row_of(known.url, before, before, ChangeType.UNKNOWN, at=at, reason=why)
    state, change = _missing(before, policy)
    after = Snapshot(page=known.page, url=known.url, job_id=job_id, seq=-1, state=state, before=before)
    if change is not ChangeType.REMOVED:
        return after, None
    return after, row_of(known.url, before, state, change, at=at, reason="no longer listed")


def _row_of_sight(sight: Sight, before: PageState | None, state: PageState | None, change: ChangeType) -> Row:
    return row_of(sight.url, before, state, change, at=sight.at, reason=sight.gone or sight.failure)


def _not_looked_for(before: PageState, listing: PageListing) -> str:
    """Why a page that is not listed may still be there; empty if it would be listed."""
    if listing.gap:
        return listing.gap
    if before.source and before.source != listing.source:
        return "the page was listed by another source"
    if before.depth is not None and listing.depth is not None and before.depth > listing.depth:
        return f"the page was {before.depth} links away, and this job follows {listing.depth}"
    return ""


def row_of(
    url: str, before: PageState | None, now: PageState | None, change: ChangeType, *, at: float, reason: str = ""
) -> Row:
    """A row with the columns of `diff`, in order."""
    old = before.fields if before is not None and change is not ChangeType.ADDED else {}
    new = now.fields if now is not None and change not in _WITHOUT else {}
    changed = _changed(before, now) if change is ChangeType.MODIFIED and before and now else []
    return [
        url,
        as_time(before.crawled_at) if before is not None else None,
        as_time(at),
        change.value,
        ";".join(changed[:MAX_NAMES]) or None,
        as_number(old.get("price")),
        as_number(new.get("price")),
        as_text(old.get("availability")),
        as_text(new.get("availability")),
        as_text(old.get("title")),
        as_text(new.get("title")),
        (reason if change in _WITHOUT else "") or None,
    ]


def _changed(before: PageState, now: PageState) -> list[str]:
    """Names of the fields that differ, of those that both crawls extracted."""
    old, new = before.fields, now.fields
    names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    both = frozenset(before.parts) & frozenset(now.parts)
    return [name for name in names if (part := _PART_OF.get(name)) is None or not now.parts or part in both]


def _before(known: Snapshot | None, job_id: str) -> PageState | None:
    if known is None:
        return None
    return known.before if known.job_id == job_id else known.state


def _seen(before: PageState | None, sight: Sight, policy: SnapshotPolicy) -> tuple[PageState, ChangeType]:
    fields = sight.fields or {}
    digest = hashlib.sha256(_encode(fields)).hexdigest()[:32]
    new = PageState(fields=fields, hash=digest, crawled_at=sight.at, parts=sight.parts)
    if before is None or before.gone:
        return new, ChangeType.ADDED
    if digest == before.hash or not _changed(before, new):
        return new, ChangeType.UNCHANGED
    crawls = before.pending_crawls + 1 if before.pending == digest else 1
    if crawls >= policy.confirm:
        return new, ChangeType.MODIFIED
    waits = replace(before, crawled_at=sight.at, missing=0, pending=digest, pending_crawls=crawls)
    return waits, ChangeType.UNCHANGED


def _not_seen(
    before: PageState | None, sight: Sight, policy: SnapshotPolicy
) -> tuple[PageState | None, ChangeType | None]:
    if sight.failure:
        return before, ChangeType.UNKNOWN if sight.skipped else ChangeType.FAILED
    if before is None or not sight.gone or before.gone:
        return before, None
    return _missing(before, policy)


def _missing(before: PageState, policy: SnapshotPolicy) -> tuple[PageState, ChangeType]:
    crawls = before.missing + 1
    if crawls >= policy.confirm:
        return replace(before, gone=True, missing=0, pending="", pending_crawls=0), ChangeType.REMOVED
    return replace(before, missing=crawls, pending="", pending_crawls=0), ChangeType.UNCHANGED


def _fields(line: Line, data: dict[str, Any], ignore: Sequence[str]) -> dict[str, Any]:
    if is_page(data):
        found = _page_fields(line, data)
    else:
        found = flatten(data) if data else {"records": as_json(decode(line.result))}
    kept = {name: _short(value) for name, value in found.items() if not _ignored(name, ignore)}
    return kept if len(kept) <= MAX_FIELDS else dict(list(kept.items())[:MAX_FIELDS])


def _parts(line: Line, data: dict[str, Any]) -> tuple[str, ...]:
    if not is_page(data):
        return ()
    return ("cards", *(part for part in ("images", "product") if is_extracted(part, line, data)))


def _page_fields(line: Line, data: dict[str, Any]) -> dict[str, Cell]:
    """What the built-in scrapers report about a page, by our column names: everything else is markup."""
    named = zip((*FULL, *SEO), (*full_row(line, data), *seo_row(line, data)), strict=True)
    return {column.name: value for column, value in named if column.name in _COMPARED and value is not None}


def _short(value: Cell) -> Cell:
    if isinstance(value, str) and len(value) > _LONG:
        return "sha256:" + hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:32]
    return value


def _ignored(name: str, ignore: Sequence[str]) -> bool:
    return any(name == rule or (rule.endswith(".*") and name.startswith(rule[:-1])) for rule in ignore)
