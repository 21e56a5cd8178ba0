"""Deliveries as bytes, and the bounds that every adapter keeps.

JSON, because a delivery's `input` is JSON already: it is copied into the message and cut out again byte for byte (white
space around it aside).
"""

import re
from collections.abc import Sequence

import msgspec

from scrapeyard.errors import BadRequest
from scrapeyard.model import Delivery
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


def check_size(message: bytes) -> bytes:
    """The same bytes. Raises BadRequest when they are too many for a queue."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise BadRequest(f"a message of {len(message)} bytes is over the queue's limit of {MAX_MESSAGE_BYTES}")
    return message


def encode_delivery(delivery: Delivery) -> bytes:
    """Raises BadRequest for a lane that cannot be used and for a delivery that is too large."""
    check_lanes((delivery.lane,))
    return check_size(_encoder.encode(delivery))


def decode_delivery(message: bytes | None) -> Delivery:
    """Raises Unreadable. None stands for an entry without a message in it."""
    if message is None:
        raise Unreadable("no message in the entry")
    if len(message) > MAX_MESSAGE_BYTES:
        raise Unreadable(f"{len(message)} bytes, at most {MAX_MESSAGE_BYTES} are read")
    try:
        return _decoder.decode(message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
