"""What processes are there, and did any outlive its test."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.services.warm import Talking, warm

T = TypeVar("T")
_SHORTEST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
PATIENCE = 120.0
"""Seconds to wait for what must come. It is paid only by a test that fails, so a busy machine may take its time."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process as /proc tells. Pid and start together name it for ever."""

    pid: int
    parent: int
    session: int
    state: str
    started: int
    """Ticks after boot."""

    @property
    def words(self) -> str:
        """Its command line; empty when it is gone."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""

    @property
    def is_server(self) -> bool:
        """Whether it is one that tests share and that lasts as long as they do."""
        try:
            return Path(f"/proc/{self.pid}/comm").read_text().strip() in ("postgres", "valkey-server", "weed")
        except OSError:
            return False

    @property
    def lives(self) -> bool:
        """Whether it still runs; a zombie does not."""
        now = _read(self.pid)
        return now is not None and now.started == self.started and now.state not in "ZX"


def processes() -> dict[int, Process]:
    """Every process of this machine that we may see, by pid."""
    found = (_read(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def descendants(pid: int, among: dict[int, Process] | None = None) -> list[Process]:
    """Children of a process, their children and so on, the eldest first. Without the process itself."""
    children: dict[int, list[Process]] = {}
    for process in (processes() if among is None else among).values():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(pid, ()))
    for process in found:
        found.extend(children.get(process.pid, ()))
    return found


def in_session(session: int, among: dict[int, Process] | None = None) -> list[Process]:
    """Processes of one session, wherever they hang in the tree."""
    return [each for each in (processes() if among is None else among).values() if each.session == session]


def living(some: Iterable[Process]) -> list[Process]:
    """Those that still run."""
    return [process for process in some if process.lives]


@contextmanager
def killed_after(process: "subprocess.Popen[Any] | Talking") -> Iterator["subprocess.Popen[Any] | Talking"]:
    """Whatever happens in the block, the process and everything it started are gone after it, and its pipes closed."""
    with process:
        try:
            yield process
        finally:
            there = processes()
            for each in {*descendants(process.pid, there), *in_session(process.pid, there)}:
                with suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
            process.kill()


def until(found: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """Ask again and again until the answer is true in Python's sense, and return it. Fails after `seconds`.

    The longer it waits the less often it asks: who asks all the time slows down what it waits for.
    """
    began = time.monotonic()
    while not (answer := found()):
        waited = time.monotonic() - began
        assert waited < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(pause_after(waited))
    return answer


def pause_after(waited: float) -> float:
    """Seconds until a wait that has lasted so long looks again."""
    return min(max(_SHORTEST_PAUSE, waited / 10), _LONGEST_PAUSE)


@pytest.fixture(scope="module")
def nothing_left() -> Iterator[None]:
    """The module's tests leave no process of the platform behind that hangs under the test run.

    Ask for it before the fixture that starts one.
    """
    before = {(process.pid, process.started) for process in descendants(os.getpid())}

    def left() -> list[str]:
        new = [each for each in living(descendants(os.getpid())) if (each.pid, each.started) not in before]
        return [each.words for each in new if each.pid != warm().pid and not each.is_server]

    yield
    until(lambda: not left(), f"everything ends with its test: {left()}")


def _read(pid: int) -> Process | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Process(pid=pid, state=fields[0], parent=int(fields[1]), session=int(fields[3]), started=int(fields[19]))
