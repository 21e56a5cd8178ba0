"""Seals values with AES-256-GCM. A sealed value names its data key and is bound to the place where it is stored."""

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from scrapeyard.errors import SealBroken

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"\x00sy1"
"""Begins a sealed value. No JSON and no text begins so."""
TEXT: Final = "sealed:"
"""Begins a sealed text."""
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_NUMBER_BYTES: Final = 4
_HEAD: Final = len(MAGIC) + _NUMBER_BYTES
OVERHEAD: Final = _HEAD + NONCE_BYTES + 16
"""Bytes that a sealed value is longer."""


class Sealer:
    """Seals and opens values. Without keys it leaves values as they are: so in commands whose database ends with them.

    `place` says where a value is stored, as in `sessions/shop/a`. A value that was copied to another place cannot be
    opened there. Nonces are random: one data key is good for 2^32 values.
    """

    def __init__(self) -> None:
        self._keys: dict[int, AESGCM] = {}
        self._current = 0
        self._first = b""

    @property
    def has_keys(self) -> bool:
        """Whether it seals."""
        return bool(self._keys)

    def load(self, keys: Mapping[int, bytes]) -> None:
        """Use these data keys, by number. The highest seals."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - loads slowly

        self._keys = {number: AESGCM(key) for number, key in keys.items()}
        self._current = max(keys)
        self._first = keys[min(keys)]

    def derive(self, purpose: str) -> bytes:
        """A key for another purpose, the same in every process and after a rotation of the master key; empty without
        keys."""
        return hmac.new(self._first, purpose.encode(), hashlib.sha256).digest() if self._first else b""

    def seal(self, value: bytes, place: str) -> bytes:
        """The value, encrypted."""
        if not self._keys:
            return value
        head, nonce = MAGIC + self._current.to_bytes(_NUMBER_BYTES, "big"), os.urandom(NONCE_BYTES)
        return head + nonce + self._keys[self._current].encrypt(nonce, value, head + place.encode())

    def open(self, value: bytes, place: str) -> bytes:
        """The value, decrypted; one that was stored in clear, as it is. Raises SealBroken."""
        if not is_sealed(value):
            return value
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

        head = value[:_HEAD]
        key = self._keys.get(int.from_bytes(head[len(MAGIC) :], "big"))
        if key is None:
            raise SealBroken(f"{place} is sealed with a key that this process does not have; restart it")
        nonce, rest = value[_HEAD : _HEAD + NONCE_BYTES], value[_HEAD + NONCE_BYTES :]
        try:
            return key.decrypt(nonce, rest, head + place.encode())
        except (InvalidTag, ValueError):
            raise SealBroken(f"{place} cannot be opened: it was changed, or moved there; write it again") from None

    def seal_text(self, value: str, place: str) -> str:
        """A text as another text."""
        if not self._keys:
            return value
        return TEXT + base64.urlsafe_b64encode(self.seal(value.encode(), place)).decode()

    def open_text(self, value: str, place: str) -> str:
        """The reverse. Raises SealBroken."""
        if not self._keys or not value.startswith(TEXT):
            return value
        try:
            sealed = base64.urlsafe_b64decode(value.removeprefix(TEXT))
        except ValueError:
            raise SealBroken(f"{place} cannot be opened: it is cut off; write it again") from None
        return self.open(sealed, place).decode()


def is_sealed(value: bytes) -> bool:
    """Whether a value was sealed."""
    return value[: len(MAGIC)] == MAGIC
