"""Where a page ended, as clients carry it."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

from scrapeyard.errors import BadRequest
from scrapeyard.store.runs.writes import is_id

_REFUSED = "cursor: not one of ours; take `next_cursor` of the page before, as it is"
_DIGITS = 15


def as_cursor(last: str) -> str:
    """Opaque, and safe within a URL."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def from_cursor(cursor: str) -> str:
    """What was made a cursor. Raises BadRequest when this is none."""
    try:
        last = urlsafe_b64decode((cursor + "=" * (-len(cursor) % 4)).encode("ascii")).decode("ascii")
    except (UnicodeError, binascii.Error):
        last = ""
    if not is_id(last) or as_cursor(last) != cursor:
        raise BadRequest(_REFUSED)
    return last


def numbers(cursor: str, count: int) -> list[int]:
    """A cursor made of so many numbers with a `-` between them. Raises BadRequest when it is not."""
    parts = from_cursor(cursor).split("-")
    if len(parts) != count or not all(part.isdecimal() and len(part) <= _DIGITS for part in parts):
        raise BadRequest(_REFUSED)
    return [int(part) for part in parts]
