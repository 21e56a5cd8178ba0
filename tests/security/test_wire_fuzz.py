"""Random and mutated bytes against the worker's half of the wire, over a real socket pair."""

import asyncio
import json
import os
import socket
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from scrapeyard.model import ExitReason, Limits
from scrapeyard.sandbox.handles.child import Child, Exit
from scrapeyard.sandbox.handles.session import Session
from scrapeyard.sandbox.handles.unread import UnreadPages
from scrapeyard.sandbox.port import Verdict, Work
from scrapeyard.settings import SandboxSettings
from scrapeyard_sdk import wire
from tests.contract.sandboxes import Served
from tests.leaks import PATIENCE

pytestmark = pytest.mark.security
LIMITS = Limits(wall_seconds=600, output_mb=0.01, log_kb=4, artifact_mb=0.01, fetches=5)
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
READY = wire.encode({"t": "ready", "version": wire.VERSION})

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["stream", "text", "level", "fields", "at_ms", "cut", "n", "url", "method", "headers", "timeout_seconds", "name",
     "content_type", "records", "cpu_ms", "peak_kb", "reason", "message", "traceback", "after", "details",
     "site_status"]
)  # fmt: skip
types = st.sampled_from(["ready", "log", "fetch", "artifact", "record", "result", "error", "run", "page", ""])
sound: dict[str, dict[str, Any]] = {
    "log": {"stream": "log", "text": "x"},
    "fetch": {"n": 1, "url": "http://a.test/"},
    "artifact": {"n": 2, "name": "a.txt"},
    "error": {"reason": "failed", "message": "m"},
}


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    kind = draw(types)
    head = {"t": kind, **sound.get(kind, {}), **draw(st.dictionaries(names, values, max_size=3))}
    raw = draw(st.binary(max_size=50) | values.map(lambda value: json.dumps(value).encode()))
    packed = json.dumps(head).encode()
    return struct.pack("<II", 4 + len(packed) + len(raw), len(packed)) + packed + raw


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(b"".join(draw(st.lists(frames(), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data) - 1))
        data[place] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@QUICK
@given(data=st.binary(max_size=2000))
def test_random_bytes_end_in_a_verdict(data: bytes) -> None:
    asyncio.run(_converse([data]))


@QUICK
@given(pieces=st.lists(mutated(), min_size=1, max_size=3))
def test_mutated_frames_end_in_a_verdict(pieces: list[bytes]) -> None:
    asyncio.run(_converse(pieces))


@QUICK
@given(told=st.lists(frames(), max_size=6), end=st.sampled_from([b"1", b"[", b'{"a":[]}']))
def test_frames_before_a_result_end_in_a_verdict(told: list[bytes], end: bytes) -> None:
    asyncio.run(_converse([b"".join(told), wire.encode({"t": "result"}, end)]))


async def _converse(pieces: list[bytes]) -> Verdict:
    """Play a child that says ready, takes its run, sends the pieces, and dies."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    ready = asyncio.Event()
    child = Child(1, lambda _: ready.set())
    theirs = child.theirs
    theirs.sendall(READY)
    await asyncio.wait_for(ready.wait(), PATIENCE)
    assert child.pid == os.getpid()
    os.close(child._pid_fd)  # the other end is this very process, which must survive
    child._pid_fd, served = -1, Served()
    work = Work(run_id="r", attempt=1, input=Raw(b"{}"), limits=LIMITS)
    session = asyncio.create_task(Session(child, work, served, UnreadPages(SandboxSettings())).run())
    await asyncio.sleep(0)
    for piece in pieces:
        try:
            theirs.sendall(piece)
        except OSError:
            break
        await asyncio.sleep(0)
    theirs.shutdown(socket.SHUT_WR)
    child.reap(Exit(status=9))
    try:
        verdict = await asyncio.wait_for(session, PATIENCE)
    finally:
        theirs.close()
        child.close()
    assert verdict.exit_reason not in (ExitReason.TIMEOUT, ExitReason.INTERNAL_ERROR), verdict
    assert verdict.output_bytes <= 2 * LIMITS.output_mb * 1024 * 1024 + 4096
    assert sum(len(line.text) for line in served.logs) <= LIMITS.log_kb * 1024
    assert faults == []
    return verdict
