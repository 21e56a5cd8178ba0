"""The wire's frames: there and back, cut anywhere, and what is none."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard_sdk import wire

plain = st.dictionaries(
    st.text(max_size=10), st.none() | st.booleans() | st.integers() | st.text(max_size=30), max_size=5
)


def decoder(**limits: int) -> wire.Decoder[dict[str, Any]]:
    return wire.Decoder(wire.parse_head, **limits)


@given(head=plain, raw=st.binary(max_size=300))
def test_a_frame_comes_back_as_it_was(head: dict[str, Any], raw: bytes) -> None:
    head = {**head, "t": "x"}
    assert decoder().feed(wire.encode(head, raw)) == [(head, raw)]


@given(told=st.lists(st.tuples(plain, st.binary(max_size=50)), max_size=5), cuts=st.lists(st.integers(1, 40)))
def test_frames_may_be_cut_anywhere(told: list[tuple[dict[str, Any], bytes]], cuts: list[int]) -> None:
    told = [({**head, "t": "x"}, raw) for head, raw in told]
    stream = b"".join(wire.encode(head, raw) for head, raw in told)
    reader, found = decoder(), []
    for size in [*cuts, len(stream) or 1]:
        piece, stream = stream[:size], stream[size:]
        found += reader.feed(piece)
    assert found + reader.feed(stream) == told


@given(data=st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    try:
        frames = decoder(max_frame=1000).feed(data)
    except wire.WireError:
        return
    assert all(isinstance(head["t"], str) for head, _ in frames)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", 0xFFFFFFFF),
        struct.pack("<I", 3),
        struct.pack("<II", 100, 97),
        struct.pack("<II", wire.MAX_FRAME, wire.MAX_HEAD + 1),
        struct.pack("<II", 4, 0),
        struct.pack("<II", 6, 2) + b"[]",
        struct.pack("<II", 6, 2) + b"{}",
        struct.pack("<II", 11, 7) + b'{"t":1}',
        struct.pack("<II", 100_004, 100_000) + b"[" * 100_000,
        struct.pack("<II", 6, 2) + b"\xff\xff",
        struct.pack("<II", 15, 11) + b'{"t":"x"}{}',
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        decoder().feed(data)


def test_a_bad_length_is_refused_before_anything_is_kept() -> None:
    reader = decoder(max_frame=100)
    with pytest.raises(wire.WireError, match="101"):
        reader.feed(struct.pack("<I", 101))


@pytest.mark.parametrize("head", [{"t": "x", "v": float("nan")}, {"t": "x" * (wire.MAX_HEAD + 1)}, {"t": {1}}])
def test_what_cannot_be_a_head_is_not_sent(head: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        wire.encode(head)


def test_a_frame_over_the_limit_is_not_sent() -> None:
    with pytest.raises(ValueError, match="limit"):
        wire.encode({"t": "x"}, bytes(wire.MAX_FRAME))


def test_lone_surrogates_travel_in_heads_as_escapes() -> None:
    data = wire.encode({"t": "\ud800"})
    assert decoder().feed(data)[0][0] == {"t": "\ud800"}
    assert json.loads(data[8:]) == {"t": "\ud800"}
