"""Ampersands that somebody forgot to escape: in addresses within sitemaps that is the commonest fault of all."""

import re

_KNOWN = re.compile(rb"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_SPOT = re.compile(rb"&|<!\[CDATA\[|<!--")
_ENDS = {b"<![CDATA[": b"]]>", b"<!--": b"-->"}
_LONGEST = 12
"""Bytes of the longest thing that is looked for."""


class Ampersands:
    """Escapes ampersands that begin no reference, in any text that is ASCII where it is markup.

    What stands in CDATA and comments is left as it is.
    """

    def __init__(self) -> None:
        self._held = b""
        self._end = b""
        """What ends the section at hand; empty: none is open."""

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """What is sure so far; a few bytes may be held back."""
        data, self._held = self._held + data, b""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            at = self._section(data, at, parts, final) if self._end else self._plain(data, at, parts, final)
        return b"".join(parts)

    def _section(self, data: bytes, at: int, parts: list[bytes], final: bool) -> int:
        found = data.find(self._end, at)
        if found >= 0:
            found += len(self._end)
            parts.append(data[at:found])
            self._end = b""
            return found
        return self._hold(data, at, len(data) if final else max(at, len(data) - 2), parts)

    def _plain(self, data: bytes, at: int, parts: list[bytes], final: bool) -> int:
        spot = _SPOT.search(data, at)
        sure = len(data) if final else max(at, len(data) - _LONGEST)
        if spot is None or spot.start() >= sure:
            return self._hold(data, at, sure, parts)
        parts.append(data[at : spot.start()])
        if spot[0] != b"&":
            self._end = _ENDS[spot[0]]
            parts.append(spot[0])
        elif _KNOWN.match(data, spot.start()):
            parts.append(b"&")
        else:
            parts.append(b"&amp;")
        return spot.end()

    def _hold(self, data: bytes, at: int, sure: int, parts: list[bytes]) -> int:
        parts.append(data[at:sure])
        self._held = data[sure:]
        return len(data)
