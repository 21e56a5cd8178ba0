"""Whether the bytes a child calls its result are JSON that every client can read."""

import re

import msgspec

from scrapeyard.model import ExitReason

MAX_DEPTH = 200
"""Lists and objects inside one another. Deeper ones would break readers that recurse, ours among them."""

_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_SUSPECT = (b"0" * 400, b"0e000", b"0e+000")
"""Shapes of numbers that a reader may not be able to hold. Text may have them too; then the long way decides."""
_TEXT = re.compile(rb'"[^"]*"')
_REST = bytes(set(range(256)) - set(b'[]{}"'))
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} deep"
_raw = msgspec.json.Decoder(msgspec.Raw)


def fault_of(raw: bytes) -> tuple[ExitReason, str] | None:
    """None when the bytes are a good result; otherwise how the run ends, and why.

    Objects are not built, so that a result costs no more memory than its bytes, unless a number looks suspicious.
    """
    try:
        raw.decode("utf-8")
        _raw.decode(raw)
        shape = raw.translate(_SHAPE)
        if any(suspect in shape for suspect in _SUSPECT):
            msgspec.json.decode(raw)
    except RecursionError:
        return ExitReason.BAD_RESULT, _TOO_DEEP
    except (msgspec.MsgspecError, ValueError) as error:
        return ExitReason.PROTOCOL_ERROR, f"the child sent a result that is not JSON: {error}"
    return (ExitReason.BAD_RESULT, _TOO_DEEP) if _too_deep(raw) else None


def _too_deep(raw: bytes) -> bool:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _brackets(raw)
    for _ in range(4):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    depth = 4
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _brackets(raw: bytes) -> bytes:
    """The brackets outside text. Escapes go first, so that every quote left begins or ends a text."""
    quoted = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _REST).replace(b'""', b"")
    return _TEXT.sub(b"", quoted)
