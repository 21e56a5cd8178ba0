"""Results into files, by extension. A file is written whole or not at all."""

import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import typer

from scrapeyard.cli.options import FORMATS
from scrapeyard.cli.output import encode
from scrapeyard.errors import BadRequest


def check_output(path: Path | None) -> None:
    """Before any work is done. Raises BadRequest when a result could not be written there."""
    if path is None:
        return
    if path.suffix.lower() not in _WRITERS:
        raise BadRequest(f"{path}: results can be written as {FORMATS}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadRequest(f"{path}: {'this is a folder' if path.is_dir() else 'there is no such folder'}")


def write_result(path: Path, result: Any) -> None:
    """Write a result in the format of the file's extension. Raises BadRequest when it cannot hold it."""
    with whole_file(path) as stream:
        for piece in _WRITERS[path.suffix.lower()](result):
            stream.write(piece)
    typer.echo(f"wrote {path}", err=True)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name when all of it is written. Raises BadRequest when it cannot be."""
    try:
        number, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadRequest(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise BadRequest(f"{path}: cannot be written: {error.strerror or error}") from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _json(result: Any) -> Iterable[bytes]:
    yield encode(result, pretty=True) + b"\n"


def _jsonl(result: Any) -> Iterable[bytes]:
    for record in result if isinstance(result, list) else [result]:
        yield encode(record, pretty=False) + b"\n"


def _csv(result: Any) -> Iterable[bytes]:
    """A header of all keys, in the order in which they first appear; nested values as JSON; null as nothing."""
    records = [result] if isinstance(result, dict) else result
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise BadRequest("only a list of objects (or one object) makes a .csv; write .json or .jsonl instead")
    keys = list(dict.fromkeys(key for record in records for key in record))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, keys, restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in record.items()} for record in records)
    yield text.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value, pretty=False).decode()


_WRITERS: dict[str, Callable[[Any], Iterable[bytes]]] = {".json": _json, ".jsonl": _jsonl, ".csv": _csv}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
