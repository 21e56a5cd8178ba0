"""The life of a child: say ready, take one run, run the script, send the result, leave; or take the next item of a job.

Everything here runs inside the walls. The worker measures and enforces limits from outside; it does not trust what the
child reports about itself.
"""

import os
import socket
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from scrapeyard_sdk import wire
from scrapeyard_sdk.channel import Channel, WorkerGone
from scrapeyard_sdk.child.encoding import to_json
from scrapeyard_sdk.child.explain import NO_MEMORY
from scrapeyard_sdk.child.items import serve_items
from scrapeyard_sdk.child.perform import (
    Lines,
    flush,
    new_imports,
    perform,
    tell_bare_output,
    usage,
)
from scrapeyard_sdk.context import LogRoom, SyncContext
from scrapeyard_sdk.script import Script

if TYPE_CHECKING:
    import asyncio


_OUT_OF_MEMORY = wire.encode({"t": "error", "reason": "memory_limit", "type": "MemoryError", "message": NO_MEMORY})
"""Built in advance, because there may be no memory left when it is needed."""


def run_child(sock: socket.SocketType, script: Script) -> NoReturn:
    """Never returns: the process ends when the run does."""
    channel = Channel(sock)
    try:
        serve_run(channel, script)
    except WorkerGone:
        pass
    except MemoryError:
        channel.send_frame(_OUT_OF_MEMORY)
    os._exit(0)


def serve_run(channel: Channel, script: Script) -> "asyncio.AbstractEventLoop | None":
    """One run; returns its loop, which it leaves open."""
    loop = _new_loop() if script.is_async else None
    _rehearse(channel, loop)
    loaded = len(sys.modules)
    channel.send({"t": "ready", "version": wire.VERSION})
    start, given = channel.receive()
    if "i" in start:
        serve_items(channel, script, loop, start, given)
    start["input"] = wire.from_json(given)
    _run(channel, script, start, loop, loaded)
    return loop


def _new_loop() -> "asyncio.AbstractEventLoop":
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


def _rehearse(channel: Channel, loop: "asyncio.AbstractEventLoop | None") -> None:
    """Touch the memory that every run uses, while nobody waits: a fork copies each page when it is first touched."""
    room = LogRoom(channel, 0)
    SyncContext(channel, {"seconds": 1, "run_id": "", "attempt": 1, "input": {}, "config": {}, "fetches": 1}, room)
    flush(Lines(room, "stdout", 1))
    tell_bare_output(room)
    wire.encode({"t": "result", **usage(), "imports": new_imports(len(sys.modules))}, to_json({}))
    wire.from_json(b"{}")
    if loop is not None:
        loop.run_until_complete(_nothing())


async def _nothing() -> None:
    """A coroutine that runs the event loop once."""


def _run(
    channel: Channel, script: Script, start: dict[str, Any], loop: "asyncio.AbstractEventLoop | None", loaded: int
) -> None:
    room = LogRoom(channel, int(start["log_bytes"]))
    sys.stdout, sys.stderr = Lines(room, "stdout", 1), Lines(room, "stderr", 2)
    head, raw = perform(channel, script, start, room, loop)
    flush(sys.stdout, sys.stderr)
    tell_bare_output(room)
    channel.send({**head, **usage(), "imports": new_imports(loaded)}, raw)
