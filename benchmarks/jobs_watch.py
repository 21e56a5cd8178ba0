"""What is looked at while a job runs: how long answers take, and how much memory each process holds at most."""

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.jobs_call import Caller
from benchmarks.load import LoadFailed
from benchmarks.processes import Program, descendants
from benchmarks.quantiles import quantile

_ASK_SECONDS = 0.1
_LOOK_SECONDS = 0.25
_PROCESSES = (
    ("results.exports", ": export"),
    ("files_process", ": files"),
    ("zygote", ": sandbox"),
    ("builtin.reading", ": pages"),
)
_CALL = {"scraper": "bench/noop", "input": {}}


class Times(Struct, frozen=True, kw_only=True):
    """Of many answers, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    max_ms: float


def times(seconds: Sequence[float]) -> Times:
    """NaN where nothing was asked."""
    ordered = sorted(each * 1000 for each in seconds)
    return Times(
        count=len(ordered),
        p50_ms=quantile(ordered, 0.5),
        p95_ms=quantile(ordered, 0.95),
        max_ms=quantile(ordered, 1.0),
    )


def interactive(port: int, calls: int) -> Times:
    """Of a no-op script in a child, called at the same pace as while a job runs, after some that warm up."""
    spent = []
    with Caller(port) as caller:
        for _ in range(calls + 5):
            time.sleep(_ASK_SECONDS)
            spent.append(caller.ask("POST", "/api/scrape", _CALL)[1])
    return times(spent[5:])


class Asking:
    """Asks a gateway about a job, and for runs, from threads of their own."""

    def __init__(self, port: int, job_id: str) -> None:
        self._port = port
        self._job = f"/api/jobs/{job_id}"
        self._over = threading.Event()
        self._spent: dict[str, list[float]] = {"status": [], "items": [], "filtered": [], "interactive": []}
        self._faults: list[Exception] = []

    @property
    def seen(self) -> dict[str, Times]:
        """By what was asked for. Raises what broke the asking off."""
        if self._faults:
            raise self._faults[0]
        return {name: times(spent) for name, spent in self._spent.items()}

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """While the block runs."""
        threads = [threading.Thread(target=work) for work in (self._look_up, self._call)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _look_up(self) -> None:
        """The job, then pages of its items: the next one, and one by status."""
        cursor = ""
        with self._caller() as caller:
            while not self._over.wait(_ASK_SECONDS):
                self._time(caller, "status", self._job)
                page = self._time(caller, "items", f"{self._job}/items?limit=50{cursor}")
                cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else ""
                self._time(caller, "filtered", f"{self._job}/items?limit=50&status=success")

    def _call(self) -> None:
        with self._caller() as caller:
            while not self._over.wait(_ASK_SECONDS):
                self._spent["interactive"].append(caller.ask("POST", "/api/scrape", _CALL)[1])

    def _time(self, caller: Caller, name: str, path: str) -> dict[str, str]:
        document, seconds = caller.ask("GET", path)
        self._spent[name].append(seconds)
        found: dict[str, str] = document
        return found

    @contextlib.contextmanager
    def _caller(self) -> Iterator[Caller]:
        try:
            with Caller(self._port) as caller:
                yield caller
        except (OSError, http.client.HTTPException, LoadFailed, ValueError) as error:  # told by `seen`
            self._faults.append(error)


class Peaks:
    """The most that each process ever held, by program and what it is there."""

    def __init__(self, programs: Sequence[Program], every_seconds: float = _LOOK_SECONDS) -> None:
        self._programs = programs
        self._every = every_seconds
        self._over = threading.Event()
        self.rss_mb: dict[str, float] = {}

    @contextlib.contextmanager
    def watched(self) -> Iterator["Peaks"]:
        """While the block runs. The kernel keeps the peak of each; only those that end between two looks are missed."""
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            for program in self._programs:
                for pid in (program.pid, *descendants(program.pid)):
                    self._note(program, pid)
            time.sleep(self._every)

    def _note(self, program: Program, pid: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            name = f"{program.name}{_part(pid) if pid != program.pid else ''}"
            self.rss_mb[name] = max(self.rss_mb.get(name, 0.0), _peak_mb(pid))


def _part(pid: int) -> str:
    """What a process below one of our programs is."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    for module, name in _PROCESSES:
        if module in words:
            return name
    return ": other"


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ValueError(pid)
