"""Messages as bytes: deliveries, and what is said on each channel."""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw

from scrapeyard.errors import BadRequest
from scrapeyard.model import (
    Cancel,
    CancelJob,
    Delivery,
    Invalidate,
    Outcome,
    Priority,
    Refresh,
    Replay,
    Signal,
    SitesChanged,
    Watch,
)
from scrapeyard.queues.port import MAX_MESSAGE_BYTES

LANE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Delivery)


class Unreadable(Exception):
    """Bytes that are no delivery of ours, or too many. Drop them and log why."""


def check_lanes(lanes: Sequence[str]) -> None:
    """Raises BadRequest naming the first lane whose name cannot be used."""
    for lane in lanes:
        if not LANE.fullmatch(lane):
            raise BadRequest(f"lane {lane[:80]!r}: use up to 64 of a-z, 0-9, dot, dash, underscore", lane=lane[:80])


class LaneTurns:
    """The order in which a take asks lanes. Lanes of equal priority take turns at being asked first."""

    def __init__(self) -> None:
        self._turn = 0

    def order(self, lanes: Sequence[str], priorities: Sequence[Priority]) -> list[tuple[str, Priority]]:
        """Every lane with every priority, the first priority first. Raises BadRequest for an unusable name."""
        check_lanes(lanes)
        if not lanes:
            return []
        self._turn = (self._turn + 1) % len(lanes)
        turned = [*lanes[self._turn :], *lanes[: self._turn]]
        return [(lane, priority) for priority in priorities for lane in turned]


def check_size(message: bytes) -> bytes:
    """The same bytes. Raises BadRequest when they are too many for a queue."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise BadRequest(f"a message of {len(message)} bytes is over the queue's limit of {MAX_MESSAGE_BYTES}")
    return message


def encode_delivery(delivery: Delivery) -> bytes:
    """Raises BadRequest for a lane that cannot be used and for a delivery that is too large."""
    check_lanes((delivery.lane,))
    return check_size(_encoder.encode(delivery))


LAST_SECOND = 32_503_680_000.0
"""The year 3000, in Unix seconds."""


def decode_delivery(message: bytes) -> Delivery:
    """Raises Unreadable."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise Unreadable(f"{len(message)} bytes, at most {MAX_MESSAGE_BYTES} are read")
    try:
        delivery = _decoder.decode(message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    for name, at in (("created_at", delivery.created_at), ("queued_at", delivery.queued_at)):
        if not 0 <= at <= LAST_SECOND:
            raise Unreadable(f"{name}: {at!r} is no time")
    return delivery


SIGNALS = "signals"
"""Everyone: Cancel, CancelJob, Refresh, Invalidate, SitesChanged, Watch, Replay."""
FEED = "feed"
"""Dispatchers: whatever is said means that a job may have something to hand out."""


class _SentOutcome(Outcome, frozen=True, kw_only=True):
    """An outcome as it is read: msgspec does not take `Raw | None` from a message."""

    result: Raw = Raw(b"null")


_signal_decoder: msgspec.json.Decoder[Signal] = msgspec.json.Decoder(
    Cancel | CancelJob | Refresh | Invalidate | SitesChanged | Watch | Replay
)
_outcome_decoder = msgspec.json.Decoder(_SentOutcome)
T = TypeVar("T")


def replies(gateway_id: str) -> str:
    """Outcomes for the runs one gateway waits for."""
    return f"replies:{gateway_id}"


def events(run_id: str) -> str:
    """What one run logs and does while it runs."""
    return f"events:{run_id}"


def line_id(attempt: int, number: int) -> int:
    """The id of an attempt's log line, counted from 1. Later lines have higher ids, also those of later attempts."""
    return (attempt << 32) + number


def is_first_line(id_: int) -> bool:
    """Whether the line with this id is the first of its attempt."""
    return id_ & 0xFFFFFFFF == 1


def live(run_id: str) -> str:
    """Pictures of the pages that one run has open in a browser: JPEG, while somebody watches."""
    return f"live:{run_id}"


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
