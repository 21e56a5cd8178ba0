"""`Range` of a download (RFC 9110): one range of bytes. Several at once are answered with the whole file."""

import re

from scrapeyard.gateway.http.problems import Refusal

_ONE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})", re.IGNORECASE)


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None: the whole. Raises Refusal (416) where nothing is left."""
    found = _ONE.fullmatch(header.replace(" ", "")) if header else None
    if found is None or found[1] == found[2] == "":
        return None
    if not found[1]:
        first, end = max(0, size - int(found[2])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < first:
            return None
    if first >= size:
        raise Refusal("bad_range", 416, f"the file has {size} bytes, so there is nothing from {first} on")
    return first, end
