"""The names of the channels, and what is said on each."""

from typing import TypeVar

import msgspec
from msgspec import Raw

from scrapeyard.model import Cancel, Invalidate, Outcome, Refresh, Signal, SitesChanged

SIGNALS = "signals"
"""Everyone: Cancel, Refresh, Invalidate, SitesChanged."""


class _SentOutcome(Outcome, frozen=True, kw_only=True):
    """An outcome as it is read: msgspec does not take `Raw | None` from a message."""

    result: Raw = Raw(b"null")


_signal_decoder: msgspec.json.Decoder[Signal] = msgspec.json.Decoder(Cancel | Refresh | Invalidate | SitesChanged)
_outcome_decoder = msgspec.json.Decoder(_SentOutcome)
_encoder = msgspec.json.Encoder()
T = TypeVar("T")


def replies(gateway_id: str) -> str:
    """Outcomes for the runs one gateway waits for."""
    return f"replies:{gateway_id}"


def events(run_id: str) -> str:
    """What one run logs and does while it runs."""
    return f"events:{run_id}"


def encode(message: msgspec.Struct) -> bytes:
    """Any of our messages as bytes."""
    return _encoder.encode(message)


def decode_signal(message: bytes) -> Signal:
    """Raises msgspec.MsgspecError when it is none of our signals."""
    return _decoded(_signal_decoder, message)


def decode_outcome(message: bytes) -> Outcome:
    """Raises msgspec.MsgspecError when it is not an outcome. A result that is `null` comes out as None."""
    sent = _decoded(_outcome_decoder, message)
    fields = {name: getattr(sent, name) for name in Outcome.__struct_fields__}
    with memoryview(sent.result) as result:
        fields["result"] = None if bytes(result[:5]) == b"null" else sent.result
    return Outcome(**fields)


def _decoded(decoder: msgspec.json.Decoder[T], message: bytes) -> T:
    """For text that is not UTF-8 and for deep nesting msgspec has no error of its own."""
    try:
        return decoder.decode(message)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None
