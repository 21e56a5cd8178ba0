"""A child that serves one item after another of the same job, over the same wire.

Module state of a script persists from item to item. If an item leaves anything else behind (threads, tasks, files, open
descriptors), the child says so, and the worker uses another child for the next item. The worker numbers each item, and
every frame carries the number of its item.
"""

import _thread
import gc
import json
import os
import resource
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from scrapeyard_sdk.channel import Channel
from scrapeyard_sdk.child.perform import Lines, flush, new_imports, perform, tell_bare_output
from scrapeyard_sdk.context import LogRoom
from scrapeyard_sdk.script import Script

if TYPE_CHECKING:
    import asyncio

_DESCRIPTORS = 16
"""If more descriptors than this were opened since the start, they count as left behind."""


def serve_items(
    channel: Channel, script: Script, loop: "asyncio.AbstractEventLoop | None", start: dict[str, Any], given: bytes
) -> NoReturn:
    """Serve items until the worker closes the wire, which raises WorkerGone."""
    gc.enable()
    items = _Items(channel, script, loop)
    while True:
        channel = channel.for_item(int(start["i"]))
        start["input"] = json.loads(given)
        items.serve(channel, start)
        start, given = channel.receive()


class _Items:
    """State that outlives single items."""

    def __init__(self, channel: Channel, script: Script, loop: "asyncio.AbstractEventLoop | None") -> None:
        quiet = LogRoom(channel, 0)
        self._streams = Lines(quiet, "stdout", 1), Lines(quiet, "stderr", 2)
        self._remains = _Remains(loop)
        self._script = script
        self._loop = loop

    def serve(self, channel: Channel, start: dict[str, Any]) -> None:
        """Serve one item. The streams outlive it, because a script's logging may hold references to them."""
        began, loaded = time.process_time(), len(sys.modules)
        room = LogRoom(channel, int(start["log_bytes"]))
        for stream in self._streams:
            stream.room = room
        sys.stdout, sys.stderr = self._streams
        head, raw = perform(channel, self._script, start, room, self._loop)
        flush(*self._streams)
        tell_bare_output(room)
        used = {
            "cpu_ms": round((time.process_time() - began) * 1000, 3),
            "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        channel.send({**head, **used, "imports": new_imports(loaded), "spent": self._remains.any()}, raw)


class _Remains:
    """What an item left behind that the next one must not see."""

    def __init__(self, loop: "asyncio.AbstractEventLoop | None") -> None:
        self._loop = loop
        self._folder = os.getcwd()  # noqa: PTH109 - before pathlib is warm
        self._threads = _thread._count()
        self._lowest = _lowest_free()

    def any(self) -> bool:
        """Whether this child should serve no more."""
        if _thread._count() > self._threads or self._tasks():
            return True
        try:
            return self._files() or _lowest_free() > self._lowest + _DESCRIPTORS
        except OSError:
            return True

    def _tasks(self) -> bool:
        if self._loop is None:
            return False
        import asyncio

        return bool(asyncio.all_tasks(self._loop))

    def _files(self) -> bool:
        """Whether files are left beside the bare output file, which is emptied, or the working directory changed."""
        if os.fstat(1).st_size:
            os.ftruncate(1, 0)
        return len(os.listdir(self._folder)) > 1 or os.getcwd() != self._folder  # noqa: PTH109, PTH208


def _lowest_free() -> int:
    """The lowest number that no open descriptor has."""
    number = os.dup(0)
    os.close(number)
    return number
