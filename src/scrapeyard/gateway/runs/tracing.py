"""The W3C `traceparent` of a call."""

import re
import secrets

_TRACEPARENT = re.compile(r"^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$")


def traceparent(given: str | None) -> str:
    """The caller's when it is valid, otherwise a new one that is not sampled."""
    if given is not None and _TRACEPARENT.match(given):
        return given
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
