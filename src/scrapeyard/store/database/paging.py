"""Ids and cursors: what callers give to find a row, and the page after it."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from scrapeyard.errors import BadRequest

if TYPE_CHECKING:  # stores without SQL have cursors, too
    from sqlalchemy import ColumnElement, Select

_REFUSED: Final = "cursor: not one of ours; take `next_cursor` of the page before, as it is"
_DIGITS: Final = 15


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


def is_id(text: str) -> bool:
    """Whether this can be an id at all. PostgreSQL refuses NUL in text, so such ids are not queried."""
    return text.isascii() and text.isprintable() and 0 < len(text) <= 200


def as_cursor(last: str) -> str:
    """An opaque, URL-safe cursor."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def from_cursor(cursor: str) -> str:
    """Decode a cursor. Raises BadRequest if it is invalid."""
    try:
        last = urlsafe_b64decode((cursor + "=" * (-len(cursor) % 4)).encode("ascii")).decode("ascii")
    except (UnicodeError, binascii.Error):
        last = ""
    if not is_id(last) or as_cursor(last) != cursor:
        raise BadRequest(_REFUSED)
    return last


def numbers(cursor: str, count: int) -> list[int]:
    """Decode a cursor of this many numbers joined by `-`. Raises BadRequest if it is invalid."""
    parts = from_cursor(cursor).split("-")
    if len(parts) != count or not all(part.isdecimal() and len(part) <= _DIGITS for part in parts):
        raise BadRequest(_REFUSED)
    return [int(part) for part in parts]


def newest_first(query: "Select[Any]", ids: "ColumnElement[str]", cursor: str | None, limit: int) -> "Select[Any]":
    """The page after the cursor, by descending id, and one row more. Raises BadRequest for an invalid cursor."""
    page = query.order_by(ids.desc()).limit(limit + 1)
    return page if cursor is None else page.where(ids < from_cursor(cursor))


def next_cursor(found: Sequence[_Identified], limit: int) -> str | None:
    """The cursor of the page after the first `limit` of these; None if there are no more."""
    return as_cursor(found[limit - 1].id) if len(found) > limit else None
