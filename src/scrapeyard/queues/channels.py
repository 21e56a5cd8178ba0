"""The names of the channels, and what is said on each."""

import msgspec

from scrapeyard.model import Cancel, Outcome, Refresh, Signal

SIGNALS = "signals"
"""Everyone: Cancel, Refresh."""

_signal_decoder: msgspec.json.Decoder[Signal] = msgspec.json.Decoder(Cancel | Refresh)
_outcome_decoder = msgspec.json.Decoder(Outcome)
_encoder = msgspec.json.Encoder()


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
    return _signal_decoder.decode(message)


def decode_outcome(message: bytes) -> Outcome:
    """Raises msgspec.MsgspecError when it is not an outcome."""
    return _outcome_decoder.decode(message)
