"""Programs under measurement: started apart, watched by pid, gone when their context is left.

Every program gets its own session, so that Ctrl-C reaches only the benchmark, which then stops them in order. The
benchmark adopts orphans (a Linux subreaper), so that a process whose parent died is still found, counted and ended.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

_PR_SET_CHILD_SUBREAPER = 36
_STOP_SECONDS = 25.0
"""Longer than a Scrapeyard worker drains by default."""
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")
"""Before a command: it is told to end even when the benchmark itself is killed."""
_OURS = ("SCRAPEYARD_", "CELERY_", "RQ_")
_OURS_EXACT = ("DATABASE_URL", "REDIS_URL", "LOG_LEVEL", "OTEL_EXPORTER_OTLP_ENDPOINT")

ROOT = Path(__file__).resolve().parent.parent


class StartFailed(Exception):
    """A program ended, or did not answer in time. The message carries the end of its log."""


class Memory(Struct, frozen=True, kw_only=True):
    """What a tree of processes holds. Shared pages count once in `pss_mb` and once per process in `rss_mb`."""

    processes: int
    pss_mb: float
    rss_mb: float


class Program:
    """One program and all that it starts. Its output goes to `log`."""

    def __init__(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.left_behind = 0
        """Processes that had to be killed: the program itself, or what was still there after it had ended."""
        self._argv = list(argv)
        self._env = clean_environment() | dict(env)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._family: dict[int, str | None] = {}

    @property
    def log(self) -> Path:
        """Where stdout and stderr go."""
        return self._folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """Of the program itself. Only while it runs."""
        if self._process is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._process.pid

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_ENDS_WITH_US, *self._argv],
                env=self._env,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Raise StartFailed when the program has ended."""
        if self._process is None or self._process.poll() is not None:
            raise StartFailed(f"{self.name} ended: {self.tail()}")

    def tail(self, characters: int = 1500) -> str:
        """The end of the log."""
        return self.log.read_text("utf-8", "replace")[-characters:].strip() if self.log.exists() else ""

    def processor_seconds(self) -> float:
        """User and system time of the program itself so far, without its children."""
        fields = _stat(self.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def tree_seconds(self) -> float:
        """The same of the program, all its descendants, and those of them that have ended."""
        spent = 0
        for pid in (self.pid, *descendants(self.pid)):
            with contextlib.suppress(OSError):  # it has just ended
                spent += sum(int(field) for field in _stat(pid)[11:15])
        return spent / os.sysconf("SC_CLK_TCK")

    def memory(self) -> Memory:
        """Of the program and all its descendants, now."""
        return memory_of([self.pid, *descendants(self.pid)])

    def ask_to_end(self) -> None:
        """Send SIGTERM and return, so that several programs end at the same time. `stop` waits."""
        if self._process is not None and not self._family:
            pids = (self._process.pid, *descendants(self._process.pid))
            self._family = {pid: _born(pid) for pid in pids}
            self._process.terminate()

    def stop(self) -> None:
        """Ask to end, wait, then kill what is left. May be called twice."""
        if self._process is None:
            return
        self.ask_to_end()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.left_behind += 1
            self._process.kill()
            self._process.wait()
        late = _session(self._process.pid)
        self._process = None
        self.left_behind += _end({**late, **self._family})


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def clean_environment() -> dict[str, str]:
    """The environment without what would steer a system under measurement; the repository is importable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name not in _OURS_EXACT}
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def interrupt_on_sigterm() -> None:
    """Let SIGTERM unwind contexts as Ctrl-C does."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def beside_python(name: str) -> str:
    """A program of the same environment as this interpreter."""
    return str(Path(sys.executable).with_name(name))


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """Every process below `pid`."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found, ahead = [], [pid]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def memory_of(pids: Sequence[int]) -> Memory:
    """Sum of /proc/PID/smaps_rollup. A process that has gone meanwhile does not count."""
    sums = {"Pss": 0, "Rss": 0}
    counted = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            sizes = _rollup(pid)
            counted += 1
            for name in sums:
                sums[name] += sizes.get(name, 0)
    return Memory(processes=counted, pss_mb=sums["Pss"] / 1024, rss_mb=sums["Rss"] / 1024)


def _rollup(pid: int) -> dict[str, int]:
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()[1:]:
        name, value, *_unit = line.split()
        sizes[name.rstrip(":")] = int(value)
    return sizes


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), int(_stat(int(entry.name))[1])


def _stat(pid: int) -> list[str]:
    # The name in the second field may hold spaces and brackets; what follows the last bracket is regular.
    return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _born(pid: int) -> str | None:
    """When the process began, so that a reused pid is not taken for it. None when it is gone or a zombie."""
    try:
        fields = _stat(pid)
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _end(family: Mapping[int, str | None], grace: float = 2.0) -> int:
    """Wait for a stopped program's descendants to go, then kill the rest. Returns how many had to be killed."""
    until = time.monotonic() + grace
    while (left := _alive(family)) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _reap(family)
    return len(left)


def _session(leader: int) -> dict[int, str | None]:
    """What was started after the last look and stayed in the program's session."""
    found = {}
    for pid, _parent in _parents():
        with contextlib.suppress(OSError):
            if int(_stat(pid)[3]) == leader:
                found[pid] = _born(pid)
    return found


def _alive(family: Mapping[int, str | None]) -> list[int]:
    return [pid for pid, born in family.items() if born is not None and _born(pid) == born]


def _reap(pids: Mapping[int, str | None]) -> None:
    """Collect the adopted ones; the others have parents of their own."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
