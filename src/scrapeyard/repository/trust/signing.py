"""Detached signatures: `scraper.sig` says that the holder of a key made this version of this scraper.

    # the content of scraper.sig; a line for each key that signed
    ed25519 3f0c9a7be2d41856 kM3…==

The signature covers the scraper's id, its version and the digest of its content, so it cannot be moved to another
version or scraper. The second word identifies the key in messages only; a configured key must verify a line.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid, SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.model import ScraperRef
from scrapeyard.repository.archive.copies import SIGNATURE
from scrapeyard.repository.archive.files import SourceFile, read_chunks
from scrapeyard.repository.manifest.values import WORD

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_BYTES = 4096
MAX_LINES = 16
_ALGORITHM = "ed25519"


class PublicKey(Struct, frozen=True, kw_only=True):
    """A key that may sign scrapers."""

    name: str
    """As the operator calls it; empty when it has no name."""
    raw: bytes
    """32 bytes."""

    @property
    def id(self) -> str:
        """The key id in signatures and messages."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @property
    def text(self) -> str:
        """As the settings take it."""
        encoded = base64.b64encode(self.raw).decode()
        return f"{self.name}:{encoded}" if self.name else encoded

    def __str__(self) -> str:
        return f"{self.id} ({self.name})" if self.name else self.id


def read_public_keys(texts: Iterable[str]) -> tuple[PublicKey, ...]:
    """The keys of `repository.public_keys`: base64 of 32 bytes, a `name:` before it or not. Raises SettingsInvalid."""
    keys = tuple(_public_key(text) for text in texts)
    if keys and (words := missing("signing")):
        raise SettingsInvalid(f"repository.public_keys: {words}")
    return keys


def public_key_of(private: "Ed25519PrivateKey", name: str = "") -> PublicKey:
    """The public half of a private key."""
    return PublicKey(name=name, raw=private.public_key().public_bytes_raw())


def sign(ref: ScraperRef, private: "Ed25519PrivateKey") -> bytes:
    """The content of `scraper.sig`. `ref` must have its digest."""
    signature = base64.b64encode(private.sign(_message(ref))).decode()
    return f"{_ALGORITHM} {public_key_of(private).id} {signature}\n".encode()


def signature_of(files: Iterable[SourceFile]) -> bytes | None:
    """The signature among a scraper's files; empty if it is too large to be valid, None if there is none.

    Raises ChangedMeanwhile or OSError.
    """
    for file in files:
        if file.name == SIGNATURE:
            return b"" if file.size > MAX_BYTES else b"".join(read_chunks(file))
    return None


def check_signature(signature: bytes | None, ref: ScraperRef, keys: tuple[PublicKey, ...], where: str) -> None:
    """Raises ScraperInvalid unless one of `keys` signed exactly this. Without keys, no signature is required."""
    if not keys:
        return
    tried = ", ".join(str(key) for key in keys)
    if signature is None:
        raise ScraperInvalid(
            f"{where}: no {SIGNATURE}, and this installation takes only scrapers signed by {tried}; "
            "`scrapeyard signing sign` writes it"
        )
    lines = _lines(signature)
    if not lines:
        raise ScraperInvalid(f"{where}/{SIGNATURE}: not a signature; `scrapeyard signing sign` writes one")
    if not any(_verifies(value, key, ref) for _, value in lines for key in keys):
        makers = ", ".join(key_id for key_id, _ in lines)
        raise ScraperInvalid(
            f"{where}/{SIGNATURE}: signed by {makers}, but not {ref} with this content by any of {tried}; "
            "sign it again after every change"
        )


def _public_key(text: str) -> PublicKey:
    name, _, encoded = text.rpartition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32 or (name and WORD.fullmatch(name) is None):
        raise SettingsInvalid(
            f"repository.public_keys: {text[:100]!r} is no key; write name:base64 of an Ed25519 public key, as "
            "`scrapeyard signing make-key` prints it"
        )
    return PublicKey(name=name, raw=raw)


def _lines(signature: bytes) -> list[tuple[str, bytes]]:
    """Key id and signature of every line; empty if any line is invalid."""
    try:
        words = [line.split() for line in signature[: MAX_BYTES + 1].decode("ascii").splitlines()]
        found = [(key_id, base64.b64decode(value, validate=True)) for _, key_id, value in words]
    except ValueError:
        return []
    known = all(line[0] == _ALGORITHM and WORD.fullmatch(line[1]) for line in words)
    return found if known and len(signature) <= MAX_BYTES and len(found) <= MAX_LINES else []


def _verifies(signature: bytes, key: PublicKey, ref: ScraperRef) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - most installations ask for no signatures
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, _message(ref))
    except (InvalidSignature, ValueError):
        return False
    return True


def _message(ref: ScraperRef) -> bytes:
    return f"scrapeyard-signature 1\n{ref.id}\n{ref.version}\n{ref.digest}\n".encode()
