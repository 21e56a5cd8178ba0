"""Samples busy children from outside, ten times a second: CPU time, memory, threads, disk.

Parents are sampled as often while they load, and once a second afterwards: a script may have left a thread or a process
there when it was imported.
"""

import asyncio
import os
import resource
import time
from pathlib import Path

from msgspec import Struct

from scrapeyard.model import ExitReason, Limits
from scrapeyard.sandbox.handles.parent import ParentHandle
from scrapeyard.sandbox.handles.session import Session
from scrapeyard.sandbox.inside import folders

_TICK = 0.1
_DISK_EVERY = 3
_PAGE = resource.getpagesize()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_MB = 1024 * 1024
_PARENT_EVERY = 10
_FORK_SECONDS = 0.05
"""CPU time allowed to a parent for each fork, beyond its own allowance."""


class ProcessSample(Struct, frozen=True, kw_only=True):
    """One sample of a process."""

    cpu_seconds: float
    resident_bytes: int
    threads: int


def read_process(pid: int) -> ProcessSample | None:
    """None when the process is gone, or this system has no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rfind(b")") + 2 :].split()
    return ProcessSample(
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND,
        threads=int(fields[17]),
        resident_bytes=int(fields[21]) * _PAGE,
    )


class ChildWatch:
    """Samples the registered sessions and parents."""

    def __init__(self) -> None:
        self._sessions: dict[Session, tuple[Limits, ParentHandle]] = {}
        self._parents: set[ParentHandle] = set()
        self._added = asyncio.Event()

    def add(self, session: Session, limits: Limits, parent: ParentHandle) -> None:
        """Sample this run until it is removed."""
        self._sessions[session] = (limits, parent)
        self._added.set()

    def remove(self, session: Session) -> None:
        """The run is over."""
        self._sessions.pop(session, None)

    def add_parent(self, parent: ParentHandle) -> None:
        """Sample this parent, more often while it loads."""
        self._parents.add(parent)
        self._added.set()

    def remove_parent(self, parent: ParentHandle) -> None:
        """The parent is gone."""
        self._parents.discard(parent)

    async def run(self) -> None:
        """Until cancelled."""
        tick = 0
        while True:
            tick = await self._next(tick)
            for session, (limits, parent) in list(self._sessions.items()):
                self._poll(session, limits, parent)
                if tick % _DISK_EVERY == 0:
                    self._look_at_disk(session, limits, parent)
            for parent in list(self._parents):
                if not parent.loaded.done() or tick % _PARENT_EVERY == 0:
                    self._look_at_parent(parent, tick)

    async def _next(self, tick: int) -> int:
        """Wait for the next tick; while nothing runs or loads, for the next that looks at parents. Returns it."""
        began = idle_until = time.monotonic()
        if not self._sessions and all(parent.loaded.done() for parent in self._parents):
            self._added.clear()
            try:
                async with asyncio.timeout(_TICK * _PARENT_EVERY if self._parents else None):
                    await self._added.wait()
            except TimeoutError:
                return tick_after(tick, _TICK * _PARENT_EVERY)
            idle_until = time.monotonic()
        await asyncio.sleep(_TICK)
        return tick_after(tick, idle_until - began)

    def _poll(self, session: Session, limits: Limits, parent: ParentHandle) -> None:
        reading = read_process(session.child.pid)
        if reading is None:
            return
        session.child.cpu_seconds = reading.cpu_seconds
        cpu_seconds = limits.cpu_seconds + session.cpu_before(reading.cpu_seconds)
        fault = _fault(reading, limits, cpu_seconds, parent.base_bytes)
        if fault is not None:
            session.stop(*fault)

    def _look_at_disk(self, session: Session, limits: Limits, parent: ParentHandle) -> None:
        used = folders.measure(parent.run_folder(session.child.slot)) + folders.unlinked(session.child.pid)
        if used > limits.disk_mb * _MB:
            session.stop(ExitReason.DISK_LIMIT, f"wrote more than {limits.disk_mb} MB of files; limits.disk_mb")

    def _look_at_parent(self, parent: ParentHandle, tick: int) -> None:
        """Kill a parent that does more than load and fork, because then the script caused it."""
        reading = read_process(parent.pid)
        if reading is None:
            return
        limits = parent.limits
        cpu_seconds = limits.cpu_seconds + _FORK_SECONDS * parent.forks
        fault = _fault(reading, limits, cpu_seconds, parent.base_bytes)
        if fault is None and not parent.loaded.done() and tick % _DISK_EVERY == 0:
            used = folders.measure(parent.work_folder) + folders.unlinked(parent.pid)
            if used > limits.disk_mb * _MB:
                fault = ExitReason.DISK_LIMIT, f"wrote more than {limits.disk_mb} MB of files; limits.disk_mb"
        if fault is not None:
            reason, message = fault
            parent.fail_all_runs(reason, f"the script, as it was loaded, {message}")
        elif parent.loaded.done():
            parent.look_for_strays()


def tick_after(tick: int, idle: float) -> int:
    """The number of the next tick after so many idle seconds. Of those that were missed, none that looks at parents is
    left out: short runs that come again and again may not keep us from it."""
    return min(tick + 1 + int(idle / _TICK), tick + _PARENT_EVERY - tick % _PARENT_EVERY)


def _fault(
    reading: ProcessSample, limits: Limits, cpu_seconds: float, base_bytes: int
) -> tuple[ExitReason, str] | None:
    if reading.cpu_seconds > cpu_seconds:
        return ExitReason.CPU_LIMIT, f"used more than {limits.cpu_seconds:g} s of processor; limits.cpu_seconds"
    if reading.resident_bytes > limits.memory_mb * _MB + base_bytes:
        return ExitReason.MEMORY_LIMIT, f"used more than {limits.memory_mb} MB of memory; limits.memory_mb"
    if reading.threads > limits.threads + 1:
        return ExitReason.PROCESS_LIMIT, f"started more than {limits.threads} threads; limits.threads"
    return None
