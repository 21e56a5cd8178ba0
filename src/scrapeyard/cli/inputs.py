"""A scraper's input from the command line: `--input` as JSON or from a file, and `key=value` words on top of it."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from scrapeyard.errors import BadRequest

MAX_BYTES = 16 * 1024 * 1024


def read_input(
    given: str | None, pairs: Sequence[str], schema: Callable[[], Mapping[str, Any]], url: str | None = None
) -> dict[str, Any]:
    """The input as an object. Raises BadRequest that says which part is wrong.

    `schema` is asked only where there are pairs: a value whose property is a string stays text, whatever it looks like.
    """
    value = {} if given is None else read_object(given)
    if pairs:
        value |= _pairs(pairs, schema().get("properties") or {})
    if url is not None and value.setdefault("url", url) != url:
        raise BadRequest("the input has a url of its own; give one of them")
    return value


def read_object(given: str, option: str = "--input") -> dict[str, Any]:
    """What an option gives: JSON, or `@file` that holds it. Raises BadRequest that names the option."""
    return _object(_text(given, option), option)


def is_url(target: str) -> bool:
    """Whether a target is an address rather than a scraper."""
    return re.match(r"https?://", target, re.IGNORECASE) is not None


def _text(given: str, option: str) -> str:
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
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
