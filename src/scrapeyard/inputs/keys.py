"""Keys of items that the list does not name: short digests, so that the same input is the same item."""

import hashlib
import re
from typing import Any, Final

import msgspec

from scrapeyard.engines.http.url import parse_target
from scrapeyard.model.job import ITEM_KEY

_DIGEST_BYTES: Final = 12
_KEY = re.compile(ITEM_KEY)
_encode = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any) -> bytes:
    """An input as JSON, spelled in one way whatever the order of its fields.

    Raises OverflowError, RecursionError or ValueError for what JSON cannot hold.
    """
    return _encode(value)


def key_of(packed: bytes) -> str:
    """The key of an input that was spelled by `canonical`."""
    return hashlib.blake2b(packed, digest_size=_DIGEST_BYTES).hexdigest()


def key_of_url(url: str) -> str:
    """The key of an address: the same for every spelling that the engines fetch alike. Raises FetchFailed."""
    return key_of(parse_target(url).url.encode())


def is_key(text: str) -> bool:
    """Whether a list may name an item so."""
    return _KEY.fullmatch(text) is not None
