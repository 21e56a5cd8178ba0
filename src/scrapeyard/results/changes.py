"""What changed between two crawls of one scope.

 ADDED      a page that was not known, or had been gone
 MODIFIED   fields differ, for `confirm` crawls in a row in the same way
 REMOVED    the site says 404 or 410, or the page is no longer on the list, for `confirm` crawls in a row
 UNCHANGED  all else that was read

A fetch that failed says nothing: what is known of the page stays, and it has no row.
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
from scrapeyard.results.exports.records import data_of, flatten, full_row, is_page, seo_row, status_of, url_of
from scrapeyard.store.ports.exports import PageState, Snapshot

MAX_FIELDS: Final = 500
"""Maximum fields of one page; the rest is not compared."""
MAX_NAMES: Final = 50
"""Maximum field names listed for one change."""
_LONG: Final = 200
"""Characters; longer text is compared by its digest."""
_GONE: Final = (404, 410)
_COMPARED: Final = frozenset(
    {
        *("final_url", "http_status", "title", "h1", "price", "currency", "availability", "sku", "brand", "category"),
        *("breadcrumbs", "images", "attrs_json", "text_hash", "meta_description", "og_title", "og_description"),
        *("og_image", "twitter_title", "twitter_description", "canonical", "robots", "hreflang", "images_alt_joined"),
    }
)
"""Columns of `full` and `seo` that say what a page holds; the others say how it was fetched."""
_encode = msgspec.json.Encoder(order="sorted").encode


class ChangeType(StrEnum):
    """What happened to a page."""

    ADDED = "ADDED"
    REMOVED = "REMOVED"
    MODIFIED = "MODIFIED"
    UNCHANGED = "UNCHANGED"


class ChangesMetadata(Struct, frozen=True, kw_only=True):
    """Summary of a job's comparison."""

    job_id: str
    scope: str
    parts: int
    rows: int
    counts: dict[str, int]


class Sight(Struct, frozen=True, kw_only=True):
    """A page as one crawl saw it."""

    page: str
    url: str
    seq: int
    at: float
    fields: dict[str, Any] | None = None
    """None if it was not read."""
    gone: bool = False
    """The site answered that there is no such page."""


def see(line: Line, seq: int, ignore: Sequence[str]) -> Sight:
    """What a crawl saw of an item's page."""
    data = data_of(line)
    url = url_of(line, data)
    gone = status_of(line, data) in _GONE
    fields = _fields(line, data, ignore) if line.status == "success" and not gone else None
    page = hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()[:40]
    return Sight(page=page, url=url, seq=seq, at=line.finished_at or 0.0, fields=fields, gone=gone)


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
    if state is None:
        return None, None
    after = Snapshot(page=sight.page, url=sight.url, job_id=job_id, seq=sight.seq, state=state, before=before)
    return after, None if change is None else row_of(sight.url, before, state, change, sight.at)


def miss(known: Snapshot, job_id: str, at: float, policy: SnapshotPolicy) -> tuple[Snapshot | None, Row | None]:
    """A page missing from this crawl's list. The new snapshot is None if the page was already gone: forget it."""
    before = _before(known, job_id)
    if before is None or before.gone:
        return None, None
    state, change = _missing(before, policy)
    after = Snapshot(page=known.page, url=known.url, job_id=job_id, seq=-1, state=state, before=before)
    told = change is ChangeType.REMOVED
    return after, row_of(known.url, before, state, change, at) if told else None


def row_of(url: str, before: PageState | None, now: PageState, change: ChangeType, at: float) -> Row:
    """A row with the columns of `diff`, in order."""
    old = before.fields if before is not None and change is not ChangeType.ADDED else {}
    new = {} if change is ChangeType.REMOVED else now.fields
    return [
        url,
        as_time(before.crawled_at) if before is not None else None,
        as_time(at),
        change.value,
        _changed(old, new) if change is ChangeType.MODIFIED else None,
        as_number(old.get("price")),
        as_number(new.get("price")),
        as_text(old.get("availability")),
        as_text(new.get("availability")),
        as_text(old.get("title")),
        as_text(new.get("title")),
    ]


def _changed(old: dict[str, Any], new: dict[str, Any]) -> str:
    names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    return ";".join(names[:MAX_NAMES])


def _before(known: Snapshot | None, job_id: str) -> PageState | None:
    if known is None:
        return None
    return known.before if known.job_id == job_id else known.state


def _seen(before: PageState | None, sight: Sight, policy: SnapshotPolicy) -> tuple[PageState, ChangeType]:
    fields = sight.fields or {}
    digest = hashlib.sha256(_encode(fields)).hexdigest()[:32]
    new = PageState(fields=fields, hash=digest, crawled_at=sight.at)
    if before is None or before.gone:
        return new, ChangeType.ADDED
    if digest == before.hash:
        return new, ChangeType.UNCHANGED
    crawls = before.pending_crawls + 1 if before.pending == digest else 1
    if crawls >= policy.confirm:
        return new, ChangeType.MODIFIED
    waits = replace(before, crawled_at=sight.at, missing=0, pending=digest, pending_crawls=crawls)
    return waits, ChangeType.UNCHANGED


def _not_seen(
    before: PageState | None, sight: Sight, policy: SnapshotPolicy
) -> tuple[PageState | None, ChangeType | None]:
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
