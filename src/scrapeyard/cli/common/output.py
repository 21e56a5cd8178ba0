"""What is shown: tables and JSON on stdout, a spinner on stderr. Untrusted text cannot control the terminal."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import typer

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


def took(entry: Mapping[str, Any]) -> str:
    """How long a run or job took, or has taken so far: a job from its start, a run from its call, with its wait in the
    queue and every attempt. Empty if it has not begun."""
    if not entry.get("started_at"):
        return ""
    begun = datetime.fromisoformat(entry["created_at" if "input" in entry else "started_at"])
    ended = datetime.fromisoformat(entry["finished_at"]) if entry.get("finished_at") else datetime.now(UTC)
    seconds = max(0.0, (ended - begun).total_seconds())
    return duration(seconds * 1000) if seconds < 60 else span(seconds)


def span(seconds: float) -> str:
    """Seconds for people: `42 s`, `3:07 min`, `2:05 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"


def _items(fields: object) -> list[tuple[object, object]]:
    return list(fields.items()) if isinstance(fields, dict) else []


_C1 = re.compile(r"[\x7f-\x9f]")


def write(data: bytes) -> None:
    """Write bytes to stdout and flush, so that a closed pipe is detected here and not at exit."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def show_json(value: Any) -> None:
    """Indented on a terminal, in one line otherwise."""
    write(encode(value, pretty=sys.stdout.isatty()) + b"\n")


def encode(value: Any, *, pretty: bool) -> bytes:
    """JSON as UTF-8. Indented text has no raw control characters; what is not Unicode is written as escapes."""
    try:
        if not pretty:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        text = json.dumps(value, ensure_ascii=False, indent=2)
        return _C1.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=2 if pretty else None).encode()


def show_list(
    found: Sequence[Any],
    as_json: bool,
    headers: Sequence[str],
    row: Callable[[Any], Sequence[str]],
    *,
    empty: str,
) -> None:
    """The full documents as JSON, or a table with a row for each."""
    if as_json:
        show_json(found)
    else:
        show_table(headers, [row(each) for each in found], empty=empty)


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Columns on a terminal, tabs between cells otherwise; prints `empty` on stderr if there is no row."""
    if not rows:
        typer.echo(empty, err=True)
        return
    cells = [[plain(cell).replace("\t", " ") for cell in row] for row in rows]
    if sys.stdout.isatty():
        _show_columns(headers, cells)
    else:
        write("".join("\t".join(row) + "\n" for row in [list(headers), *cells]).encode("utf-8", "backslashreplace"))


def _show_columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


@contextmanager
def spinner(words: str) -> Iterator[Callable[[str], None]]:
    """Shows that something goes on, on stderr, where that is a terminal; call what it yields to add a reason."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    def shown(why: str = "") -> Text:
        return Text(plain(f"{words}: {why}" if why else words))

    with Console(stderr=True).status(shown()) as status:
        yield lambda why: status.update(shown(why))
