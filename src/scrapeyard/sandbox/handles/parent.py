"""The worker's handle on one scraper's parent: children forked ahead, their exits, and its own end."""

import asyncio
import contextlib
import math
import os
import signal
import time
from typing import Any

from msgspec.structs import replace

from scrapeyard.errors import SandboxError
from scrapeyard.model import ExitReason, Limits, RunError, Scraper
from scrapeyard.sandbox.handles.child import Child, Exit
from scrapeyard.sandbox.handles.control import Control, read_exit, read_refusal
from scrapeyard.sandbox.handles.spares import Spares
from scrapeyard.sandbox.port import Verdict
from scrapeyard.telemetry.events import get_log

log = get_log("sandbox")
_FORK_PATIENCE = 10.0
_LEARNED = 500
"""Modules that a parent imports for its children, at most."""
_LINGER = 2.0
"""Seconds after its result until a child that has not exited is killed."""
_REST = 0.05
"""Seconds until the next fork after a child that ended before it was ready; doubled each time."""
_STILLBORN = 5
"""After this many children in a row that end before they are ready, the script is blamed."""


class LoadFailed(Exception):
    """The script could not be loaded; carries the exit reason and error for its runs."""

    def __init__(self, reason: ExitReason, error: RunError) -> None:
        super().__init__(error.message)
        self.reason = reason
        self.error = error


class ParentGone(Exception):
    """The parent died, whatever the cause."""


class ParentHandle:
    """One loaded scraper. Made by the sandbox; call every method from the event loop's thread."""

    def __init__(
        self,
        number: int,
        name: str,
        scraper: Scraper,
        *,
        ahead: int,
        max_children: int,
        work_folder: str,
        base_bytes: int,
    ) -> None:
        self.number = number
        self.name = name
        """Identifies the version and its environment."""
        self.base_bytes = base_bytes
        """Memory of its bare zygote, which does not count as the script's."""
        self.scraper = scraper
        self.pid = 0
        self.used_at = time.monotonic()
        self.loaded: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._kind: str | None = None
        """Of a script that was loaded before we knew its process."""
        self.waiting = 0
        """Callers that wait until it is loaded."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self.forks = 0
        self.fault: LoadFailed | None = None
        """How active runs end if the parent was killed because of what the script did to it."""
        self._work_folder = work_folder
        self._ahead = ahead
        self._max_children = max_children
        self._children: dict[int, Child] = {}
        self._spares = Spares()
        self.resting: list[Child] = []
        """Children that served a run and wait for another, the one that rests longest first."""
        self._stillborn = 0
        self._resting = False
        self._learned: set[str] = set()
        self._closed = False
        self._control = Control(on_message=self._receive, on_nonsense=self._on_nonsense, on_end=self.kill)
        self.theirs = self._control.theirs

    @property
    def limits(self) -> Limits:
        """What a run of this scraper may use."""
        return self.scraper.limits

    @property
    def work_folder(self) -> str:
        """Host path of its run folders, through the parent's root."""
        return f"/proc/{self.pid}/root{self._work_folder}"

    def run_folder(self, slot: int) -> str:
        """Host path of one run's folder."""
        return f"{self.work_folder}/{slot}"

    @property
    def busy(self) -> bool:
        """Whether a caller waits for it to load, or one of its children is running or wanted."""
        runs_children = len(self._children) > self._spares.ready + self._spares.starting + len(self.resting)
        return self.waiting > 0 or self._spares.wanted or runs_children

    @property
    def usable(self) -> bool:
        """Whether new runs may come here."""
        return not self._closed and not self.gone.done()

    async def child(self) -> tuple[Child, bool]:
        """A child that waits for its run, and whether it was forked ahead. Raises ParentGone."""
        self.used_at = time.monotonic()
        if (spare := self._spares.take()) is not None:
            if not self._spares.ready:  # otherwise after the run: a fork now would take CPU time from it
                self._loop.call_soon(self._top_up)
            return spare, True
        if self.gone.done():  # while the caller was about to be told that the script is loaded
            raise self.fault or ParentGone("it ended")
        future = self._spares.wait()
        self._top_up()
        try:
            async with asyncio.timeout(_FORK_PATIENCE):
                child = await future
            return (child, False) if child.open else await self.child()
        except TimeoutError:
            self.kill()
            raise ParentGone(f"{self.scraper.ref} did not fork a child within {_FORK_PATIENCE:g} s") from None
        except asyncio.CancelledError:
            self._take_back(future)
            raise
        finally:
            self._top_up()

    async def warm_child(self, cpu_seconds: float) -> tuple[Child, bool]:
        """A child that rests after an earlier run, else a new one; and whether it rested. Raises as `own_child`."""
        while self.resting:
            child = self.resting.pop()
            if child.open:
                self.used_at = time.monotonic()
                return child, True
        return await self.own_child(cpu_seconds), False

    def rest(self, child: Child, imports: tuple[str, ...]) -> None:
        """A run is over, and its child waits for another."""
        self._stillborn = 0
        self._learn(imports)
        child.rested_at = self.used_at = time.monotonic()
        self.resting.append(child)

    def end_resting(self, before: float = math.inf) -> None:
        """End the children that rest since before this time."""
        ended = [child for child in self.resting if child.rested_at < before]
        self.resting = [child for child in self.resting if child.rested_at >= before]
        for child in ended:
            child.close()
            self.release(child)

    async def own_child(self, cpu_seconds: float) -> Child:
        """A child forked for this caller alone; `cpu_seconds` limits its CPU time over its whole life.

        Raises ParentGone, or LoadFailed when children of this script do not come up.
        """
        while self.usable:
            self.used_at = time.monotonic()
            ready: asyncio.Future[None] = self._loop.create_future()
            child = self._fork(cpu_seconds, ready)
            try:
                done, _ = await asyncio.wait(
                    (ready, child.exited), timeout=_FORK_PATIENCE, return_when="FIRST_COMPLETED"
                )
            except asyncio.CancelledError:
                child.kill()
                raise
            if not done:
                self.kill()
                raise ParentGone(f"{self.scraper.ref} did not fork a child within {_FORK_PATIENCE:g} s")
            if ready.done() and child.open:
                return child
            await asyncio.sleep(_REST * 2**self._stillborn)
        raise self.fault or ParentGone("it ended")

    def _take_back(self, future: "asyncio.Future[Child]") -> None:
        """The waiter was cancelled: give a child that it had just received to another."""
        if future.done() and not future.cancelled() and future.exception() is None:
            self._hand_out(future.result())

    def release(self, child: Child, imports: tuple[str, ...] = ()) -> None:
        """A run is over: make sure its child exits, and let the parent import what the run had to import."""
        self._stillborn = 0
        self._learn(imports)
        self._loop.call_soon(self._top_up)
        if child.alive:
            self._loop.call_later(_LINGER, self._end_lingerer, child)

    def _learn(self, imports: tuple[str, ...]) -> None:
        """Let the parent import what a run imported."""
        new = [name for name in imports if name not in self._learned][: _LEARNED - len(self._learned)]
        if not new or not self.usable:
            return
        self._learned.update(new)
        try:
            self._control.teach(new)
        except OSError:
            self.kill()
            return
        self._spares.discard_stale()

    def kill(self) -> None:
        """Kill the parent and everything it has forked. May be called twice."""
        self._closed = True
        if self.pid and not self.gone.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        for child in list(self._children.values()):
            child.kill()

    def fail_all_runs(self, reason: ExitReason, message: str) -> None:
        """The script misuses the parent: kill it and end all of its runs with this reason."""
        if self._closed:
            return
        self.fault = LoadFailed(reason, RunError(message=message))
        self._refuse(self.fault)
        self.kill()

    def attribute_crash(self, verdict: Verdict) -> Verdict:
        """The verdict, corrected for a child that died with its parent. Raises SandboxError if the script did not cause
        the parent's end."""
        if verdict.exit_reason is not ExitReason.CRASHED:
            return verdict
        if self.fault is not None:
            return replace(verdict, exit_reason=self.fault.reason, error=self.fault.error)
        if self.gone.done():
            raise SandboxError("the process that forks children was killed while the run went on")
        return verdict

    def look_for_strays(self) -> None:
        """Kill the parent if it has a process that we did not request."""
        if self._strays():
            log.warning("sandbox.strays", scraper=str(self.scraper.ref))
            self.fail_all_runs(
                ExitReason.PROCESS_LIMIT, "the script started processes of its own, which is not allowed"
            )

    def _refuse(self, failure: LoadFailed) -> None:
        """Fail `loaded`; it is not an error if nobody awaits it."""
        if not self.loaded.done():
            self.loaded.set_exception(failure)
            self.loaded.exception()

    def mark_gone(self, why: str) -> None:
        """The zygote reported that the parent's process is gone, and with it every child."""
        if self.gone.done():
            return
        self._closed = True
        self._control.close()
        message = f"the script ended while it was loaded: {why}"
        self._refuse(LoadFailed(ExitReason.SCRAPER_INVALID, RunError(message=message)))
        self.theirs.close()
        for child in list(self._children.values()):
            child.reap(Exit())
            child.finish()
        self._children.clear()
        self.resting.clear()
        for future in self._spares.clear():
            future.set_exception(self.fault or ParentGone(why))
        self.gone.set_result(None)

    def _top_up(self) -> None:
        """Fork until every waiter has a child and a few spare ones are ready."""
        if self._closed or self._resting or not self.loaded.done() or self.loaded.exception():
            return
        room, missing = self._max_children - len(self._children), self._spares.missing(self._ahead)
        for _ in range(min(missing, room)):
            self._fork(self.limits.cpu_seconds)
        if missing > room and self.resting:
            self._make_room(missing - room)

    def _make_room(self, count: int) -> None:
        """End children that rest, for runs that want one of their own; those that end already count."""
        leaving = sum(not child.open for child in self._children.values())
        for child in self.resting[: max(0, count - leaving)]:
            self.resting.remove(child)
            child.close()
            self.release(child)

    def _fork(self, cpu_seconds: float, ready: "asyncio.Future[None] | None" = None) -> Child:
        """`ready` is set for the one caller that owns this child; None for a child that anyone may take."""
        self.forks += 1
        child = Child(self.forks, lambda child: self._on_ready(child, ready))
        child.on_broken = lambda why: self._on_idle_death(child, why)
        try:
            self._control.ask_for(child, cpu_seconds)
        except OSError:
            child.reap(Exit())
            child.close()
            self.kill()
            return child
        finally:
            child.theirs.close()
        self._children[child.slot] = child
        self._spares.begin(child)
        return child

    def _on_ready(self, child: Child, ready: "asyncio.Future[None] | None") -> None:
        if ready is None:
            self._hand_out(child)
            return
        self._spares.forget(child)
        ready.set_result(None)

    def _hand_out(self, child: Child) -> None:
        if not self._spares.hand_out(child):
            self._top_up()

    def _on_idle_death(self, child: Child, why: str) -> None:
        """An idle child broke its wire. Its process, if still alive, has nothing more to do."""
        self._spares.drop(child)
        self._stillborn += 1
        self._resting = True
        self._loop.call_later(_REST * 2**self._stillborn, self._end_rest)
        child.kill()
        if self._stillborn >= _STILLBORN:
            reason = f": {why}" if why else ""
            self.fail_all_runs(ExitReason.CRASHED, f"children of the script end before they are given a run{reason}")

    def _end_rest(self) -> None:
        self._resting = False
        self._top_up()

    def _on_nonsense(self, error: Exception) -> None:
        log.warning("sandbox.parent_nonsense", scraper=str(self.scraper.ref), error=str(error)[:500])
        self.fail_all_runs(ExitReason.PROTOCOL_ERROR, "the process that loaded the script spoke nonsense")

    def _receive(self, message: dict[str, Any]) -> None:
        if "loaded" in message and not self.loaded.done():
            self._on_loaded(str(message["loaded"])[:50])
        elif "refused" in message and not self.loaded.done():
            self._refuse(LoadFailed(*read_refusal(message["refused"])))
        elif "walls" in message and not self.loaded.done():
            reason = f"a wall could not be raised: {str(message['walls'])[:500]}; `scrapeyard doctor` tells which stand"
            self._refuse(LoadFailed(ExitReason.INTERNAL_ERROR, RunError(message=reason)))
        elif "exited" in message:
            self._on_exited(message)

    def made(self, pid: int) -> None:
        """The zygote has forked the process, which may have loaded the script before we are told."""
        self.pid = pid
        if not self.usable:
            self.kill()
        elif self._kind is not None and not self.loaded.done():
            self._on_loaded(self._kind)

    def _on_loaded(self, kind: str) -> None:
        if not self.pid:  # the zygote has not told it yet, and without it nobody can look
            self._kind = kind
            return
        if self._strays():
            message = "the script starts processes while it is loaded, which is not allowed"
            self.fail_all_runs(ExitReason.SCRAPER_INVALID, message)
            return
        self.loaded.set_result(kind)
        self._top_up()

    def _on_exited(self, message: dict[str, Any]) -> None:
        end = read_exit(message)
        child = self._children.pop(int(message["exited"]), None)
        if child is None:
            return
        self._spares.forget(child)
        if child in self.resting:
            self.resting.remove(child)
        child.reap(end)
        child.finish()
        self._top_up()

    def _strays(self) -> bool:
        """Whether the parent has children that we did not request: the script escaped its walls."""
        try:
            with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as children:  # noqa: PTH123
                listed = children.read().split()
        except OSError:
            return False
        known = {child.pid for child in self._children.values()}
        return sum(int(pid) not in known for pid in listed) > self._spares.starting

    def _end_lingerer(self, child: Child) -> None:
        if child.alive:
            child.kill()
