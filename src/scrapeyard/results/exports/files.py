"""How a format is written: the port of the writers, and the place their bytes go to."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from scrapeyard.results.exports.columns import Row

_PIECE: Final = 256 * 1024


class FileWriter(Protocol):
    """Writes one file from its first byte to its last, never going back. Equal rows give equal bytes."""

    def write(self, rows: Sequence[Row]) -> None:
        """Some rows, in order."""

    def close(self) -> None:
        """What stands at the end."""


class Sink:
    """Hands bytes on in pieces of some size, counting and digesting them. Not seekable, on purpose."""

    closed = False

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waiting: list[bytes] = []
        self._waits = 0
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        """As files do."""
        piece = bytes(data)
        self._waiting.append(piece)
        self._waits += len(piece)
        self.size += len(piece)
        if self._waits >= _PIECE:
            self._hand_on()
        return len(piece)

    def flush(self) -> None:
        """Writers of formats flush at will; pieces go when they are large enough."""

    def tell(self) -> int:
        """Bytes so far."""
        return self.size

    def finish(self) -> str:
        """Hand the rest on; the digest of all, in hex."""
        if self._waiting:
            self._hand_on()
        return self._digest.hexdigest()

    def _hand_on(self) -> None:
        piece = b"".join(self._waiting)
        self._waiting.clear()
        self._waits = 0
        self._digest.update(piece)
        self._send(piece)
