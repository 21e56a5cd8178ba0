"""Rows of JSON Lines, of one JSON array, and of a plain list of URLs. No list is held in memory whole."""

import json
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.formats.rows import MAX_REASON, MAX_ROW, BadRow, LineParser, ListUnreadable, Piece

_SPACE = re.compile(r"[ \t\r\n]*")
_WANTED = 'an array of objects such as [{"url": "https://…"}, …]'


class JsonlParser(LineParser):
    """A Parser. Any JSON value on each line; blank lines are skipped."""

    def __init__(self) -> None:
        super().__init__()
        self._decode = msgspec.json.Decoder().decode

    def read(self, first: int, lines: Sequence[str], piece: Piece) -> None:
        """As LineParser."""
        decode, rows = self._decode, piece.rows
        for number, line in enumerate(lines, first):
            try:
                rows.append((number, decode(line)))
            except (msgspec.MsgspecError, RecursionError, ValueError) as error:
                if line.strip():
                    piece.bad.append(BadRow(line=number, reason=f"is not JSON: {error}"[:MAX_REASON]))


class JsonArrayParser:
    """A Parser for the elements of one array. Invalid JSON ends it, since the start of the next element is unknown."""

    def __init__(self) -> None:
        self._held = ""
        self._line = 1
        self._next: Literal["array", "first", "comma", "value", "nothing"] = "array"
        """What is expected next."""
        self._decoder = json.JSONDecoder(parse_constant=_refuse)

    def feed(self, text: str) -> Piece:
        """As Parser."""
        return self._read(self._held + text, final=False)

    def finish(self) -> Piece:
        """As Parser."""
        piece = self._read(self._held, final=True)
        if self._next != "nothing":
            raise self._unreadable("the list breaks off")
        return piece

    def _read(self, text: str, *, final: bool) -> Piece:
        piece = Piece([], [])
        at: int | None = 0
        while at is not None:
            start = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty text, too
            self._line += text.count("\n", at, start)
            self._held = text[start:] if start < len(text) else ""
            at = self._step(text, start, piece, final=final) if start < len(text) else None
        return piece

    def _step(self, text: str, at: int, piece: Piece, *, final: bool) -> int | None:
        """Parse the next token. Returns where it ends; None while it is incomplete."""
        sign, expected = text[at], self._next
        if expected == "nothing":
            raise self._unreadable("something follows the array")
        if expected == "array":
            return self._pass(at, sign == "[", "first", "the list does not begin with [")
        if sign == "]" and expected != "value":
            return self._pass(at, True, "nothing", "")
        if expected == "comma":
            return self._pass(at, sign == ",", "value", "a comma or ] is missing")
        return self._value(text, at, piece, final=final)

    def _pass(self, at: int, fits: bool, following: Literal["first", "nothing", "value"], otherwise: str) -> int:
        if not fits:
            raise self._unreadable(otherwise)
        self._next = following
        return at + 1

    def _value(self, text: str, at: int, piece: Piece, *, final: bool) -> int | None:
        try:
            value, end = self._decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if final or len(text) - at > MAX_ROW or isinstance(error, RecursionError):
                raise self._unreadable(f"what begins here is no JSON or too long ({str(error)[:100]})") from None
            return None
        if end == len(text) and not final:  # a number may continue
            return None
        piece.rows.append((self._line, value))
        self._line += text.count("\n", at, end)
        self._next = "comma"
        return end

    def _unreadable(self, what: str) -> ListUnreadable:
        return ListUnreadable(f"line {self._line}: {what}; the list must be {_WANTED}")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


class UrlParser(LineParser):
    """A Parser. Rows are URLs as written."""

    def read(self, first: int, lines: Sequence[str], piece: Piece) -> None:
        """As LineParser."""
        for number, line in enumerate(lines, first):
            url = line.strip()
            if not url or url.startswith("#"):
                continue
            try:
                parse_target(url)
            except FetchFailed as failure:
                piece.bad.append(BadRow(line=number, reason=failure.message[:MAX_REASON]))
            else:
                piece.rows.append((number, url))
