"""Words for a terminal. Nothing that a script, a site or a server said can move the cursor or change colours."""

import re
from datetime import UTC, datetime

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str, *, lines: bool = False) -> str:
    """The text with control characters spelled out; with `lines`, line breaks stay."""
    return (_CONTROL_BUT_LINES if lines else _CONTROL).sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str, most: int) -> str:
    """At most so many characters, the last an ellipsis where something was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def indented(text: str) -> str:
    """Every line two spaces in, control characters spelled out."""
    return "\n".join(f"  {plain(line)}" for line in text.splitlines())


def log_line(line: dict[str, object]) -> str:
    """One line that a script wrote; what came through `ctx.log` shows its level and fields."""
    text = plain(str(line.get("text", "")))
    if line.get("stream") != "log":
        return text
    fields = line.get("fields")
    more = "".join(f" {plain(str(key))}={plain(str(value))}" for key, value in _items(fields))
    return f"[{plain(str(line.get('level', 'info')))}] {text}{more}"


def size(count: float) -> str:
    """Bytes for people: `812 B`, `1.4 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def duration(ms: float) -> str:
    """Milliseconds for people: `12 ms`, `3.4 s`."""
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def age(instant: str) -> str:
    """How long ago an ISO 8601 instant was: `12 s`, `5 min`, `3 h`, `9 d`."""
    seconds = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(instant)).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _items(fields: object) -> list[tuple[object, object]]:
    return list(fields.items()) if isinstance(fields, dict) else []
