"""Inputs as items of a job: checked against the scraper's schema, as JSON in the order given, under a key."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Scraper
from scrapeyard.model.job import ITEM_KEY, MAX_ITEM_INPUT, NewItem
from scrapeyard.repository.manifest.json_schemas import InputChecker, SchemaRefused, spell_urls

_DIGEST_BYTES: Final = 12
_KEY = re.compile(ITEM_KEY)
_encode = msgspec.json.Encoder(order="sorted").encode


class InputUnfit(Exception):
    """Why an input is no item of the scraper."""


def canonical(value: Any) -> bytes:
    """An input as canonical JSON, independent of field order.

    Raises OverflowError, RecursionError or ValueError for values that JSON cannot represent.
    """
    return _encode(value)


def is_same(one: Raw, other: Raw) -> bool:
    """Whether two inputs differ in the order of their fields at most."""
    return bytes(one) == bytes(other) or sorted_json(one) == sorted_json(other)


def sorted_json(packed: Raw) -> bytes:
    """An input that is JSON already, as canonical JSON."""
    return canonical(msgspec.json.decode(packed))


def key_of(packed: bytes) -> str:
    """The key of an input in canonical JSON."""
    return hashlib.blake2b(packed, digest_size=_DIGEST_BYTES).hexdigest()


def is_key(text: str) -> bool:
    """Whether this may be an item's key."""
    return _KEY.fullmatch(text) is not None


def item_of(scraper: Scraper, checker: InputChecker, key: str, value: Mapping[str, Any]) -> NewItem:
    """The item of an input, under this key or, if it is empty, one made of the input. Raises InputUnfit, and
    ScraperInvalid if the schema is wrong."""
    value = spell_urls(scraper.input_schema, value)
    try:
        faults = checker.errors(scraper, value)
        packed = msgspec.json.encode(value)
        key = key or key_of(canonical(value))
    except SchemaRefused as error:
        raise ScraperInvalid(f"{scraper.ref}: its input schema is wrong: {error}") from None
    except (OverflowError, RecursionError, ValueError) as error:
        raise InputUnfit(f"cannot be kept as JSON: {error}") from None
    if faults:
        raise InputUnfit("; ".join(f"{fault['path'][1:] or 'the input'}: {fault['message']}" for fault in faults[:3]))
    if len(packed) > MAX_ITEM_INPUT:
        raise InputUnfit(f"has {len(packed)} bytes of input; at most {MAX_ITEM_INPUT} are taken")
    return NewItem(key=key, input=Raw(packed))
