"""What is shown: tables and JSON on stdout, a spinner on stderr. On a terminal for people, otherwise for programs."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from scrapeyard.cli.text import plain

_C1 = re.compile(r"[\x7f-\x9f]")


def write(data: bytes) -> None:
    """Bytes to stdout, at once: a reader that went away is noticed here and not at exit."""
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
    """Documents whole as JSON, or a table with a row for each."""
    if as_json:
        show_json(found)
    else:
        show_table(headers, [row(each) for each in found], empty=empty)


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Columns on a terminal, tabs between cells otherwise; `empty` is told on stderr when there is no row."""
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
def spinner(words: str) -> Iterator[None]:
    """Shows that something goes on, on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(plain(words))):
        yield
