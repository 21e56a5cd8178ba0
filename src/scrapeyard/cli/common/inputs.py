"""Input from the command line, and results into files, by extension, whole or not at all."""

import csv
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import typer

from scrapeyard.cli.common.options import FORMATS, PAGE_FILES
from scrapeyard.cli.common.output import encode, plain
from scrapeyard.errors import BadRequest

MAX_BYTES = 16 * 1024 * 1024


def read_input(
    given: str | None, pairs: Sequence[str], schema: Callable[[], Mapping[str, Any]], url: str | None = None
) -> dict[str, Any]:
    """The input as an object. Raises BadRequest that says which part is wrong.

    `schema` is called only if there are pairs: the value of a string property stays text, whatever it looks like. So do
    numbers and flags where the first of several types is string. An address among the pairs is the input's `url`.
    """
    value = {} if given is None else read_object(given)
    lone = [each for each in pairs if looks_like_address(each)]
    if len(lone) + (url is not None) > 1:
        raise BadRequest("give one URL; `scrapeyard jobs create --urls` and `run --file` take many")
    if rest := [each for each in pairs if each not in lone]:
        value |= _pairs(rest, schema().get("properties") or {})
    url = complete(lone[0]) if lone else url
    if url is not None and value.setdefault("url", url) != url:
        raise BadRequest("the input has a url of its own; give one of them")
    return value


def read_object(given: str, option: str = "--input") -> dict[str, Any]:
    """The object that an option gives: JSON, or `@file` that contains it. Raises BadRequest that names the option."""
    return _object(read_text(given, option), option)


def is_url(target: str) -> bool:
    """Whether a target is an address rather than a scraper."""
    return re.match(r"https?://", target, re.IGNORECASE) is not None


_ADDRESS = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+|\[[0-9a-f:.]+\])(:\d{1,5})?([/?#]\S*)?", re.IGNORECASE)
_NUMBERS = re.compile(r"(localhost|[\d.]+|\[[0-9a-f:.]+\])(:|/|$)", re.IGNORECASE)
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*")


def is_address(target: str) -> bool:
    """Whether a target is an address, also one without a scheme, rather than a scraper's id or a path that exists."""
    is_id = _ID.fullmatch(target.partition("@")[0]) is not None
    return is_url(target) or (looks_like_address(target) and not is_id and not Path(target).exists())


def looks_like_address(text: str) -> bool:
    """Whether this is a URL, or would be one with a scheme before it. Some ids of scrapers would, too."""
    return is_url(text) or _ADDRESS.fullmatch(text) is not None


def complete(address: str) -> str:
    """An address with a scheme: http for this machine and for numbers, else https. What is added is told on stderr.
    Raises BadRequest for another scheme."""
    if is_url(address):
        return address
    if "://" in address.partition("?")[0]:
        raise BadRequest(f"{plain(address)!r} cannot be read: write http://… or https://…")
    whole = f"{'http' if _NUMBERS.match(address) else 'https'}://{address}"
    typer.echo(f"scrapeyard: reading {plain(whole)}", err=True)
    return whole


def read_text(given: str, option: str) -> str:
    """What an option gives: itself, or what the `@file` has in it. Raises BadRequest that names the option."""
    if not given.startswith("@"):
        return given
    try:
        with nullcontext(sys.stdin.buffer) if given == "@-" else Path(given[1:]).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise BadRequest(f"{option}: {given[1:]} is larger than {MAX_BYTES // 1024**2} MB")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise BadRequest(f"{option}: cannot read {given[1:]}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{option}: {given[1:]} is not UTF-8") from None


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f'{option}: not JSON: {error}; write an object such as \'{{"key": "…"}}\'') from None
    if not isinstance(value, dict):
        raise BadRequest(f"{option}: an object is needed, not {type(value).__name__}")
    return value


def _pairs(pairs: Sequence[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise BadRequest(f"{pair[:100]!r}: write key=value")
        if key in found:
            raise BadRequest(f"{key[:100]!r} is given twice; write a list as {key[:100]}='[…]'")
        found[key] = _value(text, properties.get(key))
    return found


def _value(text: str, schema: Any) -> Any:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if kinds == "string":
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    prefers_text = isinstance(kinds, list) and kinds[:1] == ["string"]
    return text if prefers_text and isinstance(value, str | int | float) else value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def check_output(path: Path | None) -> None:
    """Check the output path before any work. Raises BadRequest if a result could not be written there."""
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
def whole_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that appears under its name only once it is complete. Raises BadRequest if it cannot be written."""
    try:
        number, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadRequest(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
        Path(name).chmod(mode & ~_umask())
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


def _part_of_page(name: str) -> Callable[[Any], Iterable[bytes]]:
    """Writes one part of a page. Raises BadRequest if the result has none."""

    def write(result: Any) -> Iterable[bytes]:
        text = result.get(name) if isinstance(result, dict) else None
        if not isinstance(text, str):
            said = "; ".join(result.get("warnings") or ()) if isinstance(result, dict) else ""
            raise BadRequest(f"the result has no {name}{': ' + said if said else '; write .json instead'}")
        yield text.encode("utf-8", "backslashreplace")
        if not text.endswith("\n"):
            yield b"\n"

    return write


_WRITERS: dict[str, Callable[[Any], Iterable[bytes]]] = {
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
    **{extension: _part_of_page(part) for extension, part in PAGE_FILES.items()},
}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
