"""Times as everything outside sees them."""

from datetime import UTC, datetime
from typing import overload


@overload
def instant(seconds: float) -> str: ...
@overload
def instant(seconds: float | None) -> str | None: ...
def instant(seconds: float | None) -> str | None:
    """Unix seconds as ISO 8601 in UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
