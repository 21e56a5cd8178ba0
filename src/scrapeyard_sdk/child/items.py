"""A child that serves one item after another over the same wire: the items of a job, or the runs of a warm scraper.

Module state of a script persists from item to item. If an item leaves anything else behind (threads, tasks, files, open
descriptors), the child says so, and the worker uses another child for the next item. Of a warm scraper the runs may be
those of different clients, so the child looks closer: at the environment, signal handlers, timers, the umask and every
descriptor. The worker numbers each item, and every frame carries the number of its item.
"""

import _signal  # type: ignore[import-not-found] # `signal` makes an enum of every answer
import _thread
import contextvars
import gc
import os
import resource
import select
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from scrapeyard_sdk import wire
from scrapeyard_sdk.channel import Channel
from scrapeyard_sdk.child.perform import Lines, flush, new_imports, perform, tell_bare_output
from scrapeyard_sdk.context import LogRoom
from scrapeyard_sdk.script import Script

if TYPE_CHECKING:
    import asyncio

_DESCRIPTORS = 16
"""If an item of a job opened more descriptors than this since the start, they count as left behind."""
_MAX_DESCRIPTORS = 4096
_TIMERS = (_signal.ITIMER_REAL, _signal.ITIMER_VIRTUAL, _signal.ITIMER_PROF)
_RLIMITS = 16
"""Limits that Linux knows."""


def serve_items(
    channel: Channel, script: Script, loop: "asyncio.AbstractEventLoop | None", start: dict[str, Any], given: bytes
) -> NoReturn:
    """Serve items until the worker closes the wire, which raises WorkerGone."""
    gc.enable()
    items = _Items(channel, script, loop, is_warm=bool(start.get("warm")))
    while True:
        channel = channel.for_item(int(start["i"]))
        start["input"] = wire.from_json(given)
        items.serve(channel, start)
        start, given = channel.receive()


class _Items:
    """State that outlives single items."""

    def __init__(
        self, channel: Channel, script: Script, loop: "asyncio.AbstractEventLoop | None", *, is_warm: bool
    ) -> None:
        quiet = LogRoom(channel, 0)
        self._streams = Lines(quiet, "stdout", 1), Lines(quiet, "stderr", 2)
        self._remains = _WarmRemains(loop) if is_warm else _Remains(loop)
        self._script = script
        self._loop = loop

    def serve(self, channel: Channel, start: dict[str, Any]) -> None:
        """Serve one item. The streams outlive it, because a script's logging may hold references to them."""
        began, loaded = time.process_time(), len(sys.modules)
        room = LogRoom(channel, int(start["log_bytes"]))
        for stream in self._streams:
            stream.room = room
        sys.stdout, sys.stderr = self._streams
        context = contextvars.copy_context()  # what a script sets there ends with its item
        head, raw = context.run(perform, channel, self._script, start, room, self._loop)
        flush(*self._streams)
        tell_bare_output(room)
        used = {
            "cpu_ms": round((time.process_time() - began) * 1000, 3),
            "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        channel.send({**head, **used, "imports": new_imports(loaded), "left": list(self._remains.found())}, raw)


class _Remains:
    """What an item left behind that the next one must not see."""

    def __init__(self, loop: "asyncio.AbstractEventLoop | None") -> None:
        self._loop = loop
        self._folder = os.getcwd()  # noqa: PTH109 - before pathlib is warm
        self._threads = _thread._count()
        self._lowest = _lowest_free()

    def found(self) -> Iterator[str]:
        """Names of it; if there are any, this child should serve no more."""
        if _thread._count() > self._threads:
            yield "threads"
        if self._tasks():
            yield "tasks"
        try:
            if os.getcwd() != self._folder:  # noqa: PTH109
                yield "working directory"
            if self._files():
                yield "files"
        except OSError:
            yield "files"
        try:
            if self._descriptors():
                yield "descriptors"
        except OSError:  # it may have none left, or may open fewer
            yield "descriptors"

    def _tasks(self) -> bool:
        if self._loop is None:
            return False
        import asyncio

        return bool(asyncio.all_tasks(self._loop))

    def _files(self) -> bool:
        """Whether files are left beside the bare output file, which is emptied."""
        if os.fstat(1).st_size:
            os.ftruncate(1, 0)
        return len(os.listdir(self._folder)) > 1  # noqa: PTH208

    def _descriptors(self) -> bool:
        return _lowest_free() > self._lowest + _DESCRIPTORS


class _WarmRemains(_Remains):
    """What a run of a warm scraper left behind: the next run may be another client's."""

    def __init__(self, loop: "asyncio.AbstractEventLoop | None") -> None:
        super().__init__(loop)
        self._poll = select.poll()
        for number in range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _MAX_DESCRIPTORS)):
            self._poll.register(number, 0)
        self._closed = self._closed_descriptors()
        self._environment = dict(os.environ)
        self._process = _process_state()
        self._path = list(sys.path)

    def found(self) -> Iterator[str]:
        """As of an item of a job, and what outlives a call in the process itself."""
        yield from super().found()
        if dict(os.environ) != self._environment:
            yield "environment"
        for name, value in _process_state().items():
            if value != self._process[name]:
                yield name
        if sys.path != self._path:
            yield "sys.path"

    def _descriptors(self) -> bool:
        return self._closed_descriptors() != self._closed

    def _closed_descriptors(self) -> int:
        """How many numbers have no open descriptor."""
        return sum(event == select.POLLNVAL for _, event in self._poll.poll(0))


def _process_state() -> dict[str, Any]:
    """State of the process that a script can change, and that every later run would meet."""
    mask = os.umask(0o77)
    os.umask(mask)
    return {
        "umask": mask,
        "signal handlers": [_signal.getsignal(number) for number in range(1, _signal.NSIG)],
        "blocked signals": _signal.pthread_sigmask(_signal.SIG_BLOCK, ()),
        "timers": [_signal.getitimer(which) > (0.0, 0.0) for which in _TIMERS],
        "limits": [resource.getrlimit(which) for which in range(_RLIMITS)],
    }


def _lowest_free() -> int:
    """The lowest number that no open descriptor has."""
    number = os.dup(0)
    os.close(number)
    return number
