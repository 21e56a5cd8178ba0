"""The worker's hold on one scraper's parent: its children forked ahead, their deaths, its own end."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections import deque
from pathlib import Path
from typing import Any

from scrapeyard.model import ExitReason, Limits, RunError, Scraper
from scrapeyard.sandbox.child import Child, Exit
from scrapeyard.telemetry.events import get_log

log = get_log("sandbox")
_MESSAGE = 128 * 1024
_FORK_PATIENCE = 10.0
_LINGER = 2.0
"""A child that has sent its result and is still there after so long is killed."""


class LoadFailed(Exception):
    """The script could not be loaded; carries how a run of it ends."""

    def __init__(self, reason: ExitReason, error: RunError) -> None:
        super().__init__(error.message)
        self.reason = reason
        self.error = error


class ParentGone(Exception):
    """The parent died, through its own fault or another's."""


class ScraperParent:
    """One loaded scraper. Made by the sandbox; every method belongs to the event loop's thread."""

    def __init__(self, number: int, scraper: Scraper, ahead: int, max_children: int, work_folder: str) -> None:
        self.number = number
        self.scraper = scraper
        self.pid = 0
        self.used_at = time.monotonic()
        self.loaded: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._work_folder = work_folder
        self._ahead = ahead
        self._max_children = max_children
        self._children: dict[int, Child] = {}
        self._ready: deque[Child] = deque()
        self._waiting: deque[asyncio.Future[Child]] = deque()
        self._starting = 0
        self._slots = 0
        self._closed = False
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._control = ours
        self._loop.add_reader(ours.fileno(), self._on_message)

    @property
    def limits(self) -> Limits:
        """What a run of this scraper may use."""
        return self.scraper.limits

    def run_folder(self, slot: int) -> Path:
        """A run's own folder, seen from here through the parent's root."""
        return Path(f"/proc/{self.pid}/root{self._work_folder}/{slot}")

    @property
    def busy(self) -> bool:
        """Whether a child of it runs or is wanted."""
        return bool(self._waiting) or len(self._children) > len(self._ready) + self._starting

    @property
    def usable(self) -> bool:
        """Whether new runs may come here."""
        return not self._closed and not self.gone.done()

    async def child(self) -> tuple[Child, bool]:
        """A child that waits for its run, and whether it was forked ahead. Raises ParentGone."""
        self.used_at = time.monotonic()
        while self._ready:
            child = self._ready.popleft()
            if child.open:
                self._loop.call_soon(self._top_up)
                return child, True
        future: asyncio.Future[Child] = self._loop.create_future()
        self._waiting.append(future)
        self._top_up()
        try:
            child = await asyncio.wait_for(future, _FORK_PATIENCE)
            return (child, False) if child.open else await self.child()
        except TimeoutError:
            self.kill()
            raise ParentGone(f"{self.scraper.ref} did not fork a child within {_FORK_PATIENCE:g} s") from None
        finally:
            self._top_up()

    def release(self, child: Child) -> None:
        """A run is over: make sure that its child leaves."""
        if child.alive:
            self._loop.call_later(_LINGER, self._end_lingerer, child)

    def kill(self) -> None:
        """End the parent and everything it ever forked. May be called twice."""
        self._closed = True
        if self.pid and not self.gone.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        for child in list(self._children.values()):
            child.kill()

    def mark_gone(self, why: str) -> None:
        """The zygote says that the parent's process is gone, and with it every child."""
        if self.gone.done():
            return
        self._closed = True
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if not self.loaded.done():
            self.loaded.set_exception(
                LoadFailed(ExitReason.SCRAPER_INVALID, RunError(message=f"the script ended while it was loaded: {why}"))
            )
            self.loaded.exception()
        for child in list(self._children.values()):
            child.close()
            child.reap(Exit())
            child.on_broken("")
        self._children.clear()
        for future in self._waiting:
            if not future.done():
                future.set_exception(ParentGone(why))
        self.gone.set_result(None)

    def _top_up(self) -> None:
        """Fork until the waiting have a child and a few wait ahead."""
        if self._closed or self.gone.done() or not self.loaded.done() or self.loaded.exception():
            return
        wanted = len([future for future in self._waiting if not future.done()]) + self._ahead
        room = self._max_children - len(self._children)
        for _ in range(min(wanted - len(self._ready) - self._starting, room)):
            self._fork()

    def _fork(self) -> None:
        self._slots += 1
        child = Child(self._slots, self._on_ready)
        child.on_broken = lambda why: self._on_idle_death(child, why)
        request = json.dumps({"fork": child.slot, "cpu": max(1, round(self.limits.cpu_seconds + 0.5))}).encode()
        try:
            socket.send_fds(self._control, [request], [child.theirs.fileno()])
        except (BlockingIOError, OSError):
            child.close()
            self.kill()
            return
        finally:
            child.theirs.close()
        self._children[child.slot] = child
        self._starting += 1

    def _on_ready(self, child: Child) -> None:
        self._starting -= 1
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(child)
                return
        self._ready.append(child)

    def _on_idle_death(self, child: Child, why: str) -> None:
        """A child that had no run yet broke its wire."""
        if child in self._ready:
            self._ready.remove(child)
        if why:
            child.kill()

    def _on_message(self) -> None:
        try:
            data = self._control.recv(_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._control.fileno())
            return
        try:
            self._hear(json.loads(data))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            log.warning("sandbox.parent_nonsense", scraper=str(self.scraper.ref), error=str(error))
            self.kill()

    def _hear(self, message: dict[str, Any]) -> None:
        if "loaded" in message and not self.loaded.done():
            self._on_loaded(str(message["loaded"])[:50])
        elif "refused" in message and not self.loaded.done():
            self._on_refused(message["refused"])
        elif "walls" in message and not self.loaded.done():
            reason = f"a wall could not be raised: {str(message['walls'])[:500]}; `scrapeyard doctor` tells which stand"
            self.loaded.set_exception(LoadFailed(ExitReason.INTERNAL_ERROR, RunError(message=reason)))
        elif "exited" in message:
            self._on_exited(message)

    def _on_loaded(self, kind: str) -> None:
        if self._strays():
            message = "the script starts processes while it is loaded, which is not allowed"
            self.loaded.set_exception(LoadFailed(ExitReason.SCRAPER_INVALID, RunError(message=message)))
            self.kill()
            return
        self.loaded.set_result(kind)
        self._top_up()

    def _on_refused(self, told: dict[str, Any]) -> None:
        error = RunError(
            message=str(told["message"])[:4096], type=str(told["type"])[:200], traceback=str(told["traceback"])[:8192]
        )
        memory = error.type == "MemoryError"
        reason = ExitReason.MEMORY_LIMIT if memory else ExitReason.SCRAPER_INVALID
        self.loaded.set_exception(LoadFailed(reason, error))

    def _on_exited(self, message: dict[str, Any]) -> None:
        child = self._children.pop(int(message["exited"]), None)
        if child is None:
            return
        status = int(message["status"])
        end = Exit(
            status=status,
            cpu_ms=float(message.get("cpu", 0)) * 1000,
            peak_kb=float(message.get("rss_kb", 0)),
            output=str(message.get("output", ""))[:8192],
        )
        if child in self._ready:
            self._ready.remove(child)
        if not child.said_ready:
            self._starting -= 1
        child.reap(end)  # its wire stays open: the result may still lie unread in it, and its end comes by itself
        if self._strays():
            log.warning("sandbox.strays", scraper=str(self.scraper.ref))
            self.kill()
        self._top_up()

    def _strays(self) -> bool:
        """Whether the parent has children that we did not ask for: a script got around its walls."""
        try:
            listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text("ascii").split()
        except OSError:
            return False
        known = {child.pid for child in self._children.values()}
        return sum(int(pid) not in known for pid in listed) > self._starting

    def _end_lingerer(self, child: Child) -> None:
        if child.alive:
            child.kill()
