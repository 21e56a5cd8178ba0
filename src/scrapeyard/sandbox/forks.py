"""The sandbox: a zygote, a parent for each scraper in use, children forked ahead."""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import scrapeyard_sdk
from scrapeyard.errors import SandboxError, ScraperInvalid
from scrapeyard.model import ExitReason, Scraper
from scrapeyard.sandbox import folders, landlock
from scrapeyard.sandbox.parents import LoadFailed, ParentGone, ScraperParent
from scrapeyard.sandbox.plan import NAMES, WORK_FOLDER, Plan
from scrapeyard.sandbox.port import ChildServices, Verdict, Wall, Work
from scrapeyard.sandbox.session import Session
from scrapeyard.sandbox.watch import Watch
from scrapeyard.settings import SandboxSettings, WorkerSettings
from scrapeyard.telemetry.events import get_log

log = get_log("sandbox")
_MESSAGE = 128 * 1024
_HELLO_PATIENCE = 20.0
_MB = 1024 * 1024
_USERS = 50_000
_TIDY_SECONDS = 5.0
_PREFIX = "scrapeyard-"
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


class ForkSandbox:
    """Children of a zygote. One per worker."""

    def __init__(self, sandbox: SandboxSettings, worker: WorkerSettings, slots: int) -> None:
        self._settings = sandbox
        self._worker = worker
        self._max_children = slots + worker.ahead
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._hello: asyncio.Future[dict[str, Any]] | None = None
        self._found: dict[str, str] = {}
        self._walls: tuple[str, ...] = ()
        self._parents: dict[str, ScraperParent] = {}
        self._by_number: dict[int, ScraperParent] = {}
        self._numbers = itertools.count(1)
        self._folder: Path | None = None
        self._watch = Watch()
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = asyncio.Lock()
        self._stopped = False

    async def start(self) -> None:
        """Start the zygote and learn which walls stand. Raises SandboxError when the mode is strict and one misses."""
        self._stopped = False
        _remove_orphans()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._folder.chmod(0o755)
        for name in ("root", "scratch"):
            (self._folder / name).mkdir(mode=0o755)
        try:
            await self._start_zygote()
        except BaseException:
            await self.stop()
            raise
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._watch.run()), loop.create_task(self._tidy())]

    async def stop(self) -> None:
        """Kill everything and wait until it is gone. May be called twice."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for parent in list(self._by_number.values()):
            parent.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(*(parent.gone for parent in list(self._by_number.values())))
        self._end_zygote()
        for number in list(self._by_number):
            self._forget(number, "the sandbox was stopped")
        if self._folder is not None:
            folders.remove(str(self._folder))
            self._folder = None

    def walls(self) -> tuple[Wall, ...]:
        """Which walls stand."""
        return tuple(Wall(name=name, up=name in self._walls, detail=self._detail(name)) for name in NAMES)

    async def run(self, scraper: Scraper, work: Work, services: ChildServices) -> Verdict:
        """See the port."""
        asked = time.perf_counter()
        try:
            parent = await self._parent(scraper)
            child, ahead = await parent.child()
        except LoadFailed as failure:
            return Verdict(exit_reason=failure.reason, error=failure.error, wall_ms=_since(asked))
        except ParentGone as gone:
            raise SandboxError(f"the process that forks children went away: {gone}") from None
        waited = _since(asked)
        session = Session(child, work, services)
        self._watch.add(session, work.limits, parent)
        try:
            verdict = await session.run()
        finally:
            self._watch.remove(session)
            parent.release(child, session.imports)
        if verdict.exit_reason is ExitReason.CRASHED and parent.fault is not None:
            return replace(verdict, exit_reason=parent.fault.reason, error=parent.fault.error)
        if verdict.exit_reason is ExitReason.CRASHED and parent.gone.done():
            raise SandboxError("the process that forks children was killed while the run went on")
        return _with_start(verdict, waited, ahead)

    async def check(self, scraper: Scraper) -> None:
        """See the port."""
        try:
            await self._parent(scraper)
        except LoadFailed as failure:
            raise ScraperInvalid(failure.error.message, traceback=failure.error.traceback) from None

    def _detail(self, name: str) -> str:
        if self._settings.mode == "off":
            return "switched off by sandbox.mode"
        if name in self._settings.without:
            return "left out by sandbox.without"
        if name == "landlock" and name in self._walls:
            return f"ABI {landlock.abi()}"
        return self._found.get(name, "not probed yet")

    async def _start_zygote(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        command = [sys.executable, "-I", "-m", "scrapeyard.sandbox.zygote", str(theirs.fileno())]
        self._zygote = subprocess.Popen(  # noqa: ASYNC220 - a fork and an exec; asyncio would want its own child watcher
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=_ENVIRONMENT, cwd="/"
        )
        theirs.close()
        loop = asyncio.get_running_loop()
        self._control, self._hello = ours, loop.create_future()
        loop.add_reader(ours.fileno(), self._on_message)
        try:
            hello = await asyncio.wait_for(self._hello, _HELLO_PATIENCE)
        except TimeoutError:
            self._end_zygote()
            raise SandboxError("the zygote did not start; `scrapeyard doctor` shows why") from None
        self._found = {name: str(why) for name, why in hello["hello"].items()}
        self._watch.base_bytes = int(hello["rss_bytes"])
        self._choose_walls()

    def _choose_walls(self) -> None:
        wanted = [] if self._settings.mode == "off" else [n for n in NAMES if n not in self._settings.without]
        usable = [name for name in wanted if not self._found[name]]
        if "root" in usable and "namespaces" not in usable:
            usable.remove("root")
        if "user" in usable and "root" not in usable and not _others_can_read(Path(sys.base_prefix)):
            self._found["user"] = "another user could not read the interpreter, and there is no root of its own"
            usable.remove("user")
        self._walls = tuple(usable)
        missing = [name for name in NAMES if name not in usable]
        if missing and self._settings.mode == "strict":
            reasons = "; ".join(f"{name}: {self._detail(name)}" for name in missing)
            self._end_zygote()
            raise SandboxError(f"sandbox.mode is strict and these walls are missing: {reasons}")
        if missing:
            log.warning("sandbox.walls_missing", missing=", ".join(missing))

    def _on_message(self) -> None:
        if self._control is None:
            return
        try:
            data = self._control.recv(_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._on_zygote_gone()
            return
        message = json.loads(data)
        if "hello" in message and self._hello is not None and not self._hello.done():
            self._hello.set_result(message)
        elif "made" in message:
            if (made := self._by_number.get(message["made"])) is not None:
                made.pid = message["pid"]
                if not made.usable:
                    made.kill()
                self._watch.add_parent(made)
        elif "gone" in message:
            self._forget(message["gone"], f"status {message['status']}")
        elif "failed" in message:
            self._forget(message["failed"], message["why"])

    def _forget(self, number: int, why: str) -> None:
        parent = self._by_number.pop(number, None)
        if parent is None:
            return
        self._watch.remove_parent(parent)
        if self._parents.get(parent.scraper.ref.digest) is parent:
            del self._parents[parent.scraper.ref.digest]
        parent.mark_gone(why)
        folders.remove(str(self._scratch(number)))

    def _on_zygote_gone(self) -> None:
        """The kernel has killed the parents and children with it; the next run starts another."""
        self._end_zygote()
        for number in list(self._by_number):
            self._by_number[number].kill()
            self._forget(number, "the zygote is gone")
        if not self._stopped:
            log.warning("sandbox.zygote_gone")

    def _end_zygote(self) -> None:
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control.fileno())
            self._control.close()
            self._control = None
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote.wait()
            self._zygote = None

    async def _parent(self, scraper: Scraper) -> ScraperParent:
        """The loaded parent of this version, started if need be. Raises LoadFailed."""
        parent = self._parents.get(scraper.ref.digest)
        if parent is None or not parent.usable:
            async with self._starting:
                if self._control is None:
                    await self._start_zygote()
            parent = self._parents.get(scraper.ref.digest)
        if parent is None or not parent.usable:
            parent = self._make_parent(scraper)
        if not parent.loaded.done():
            try:
                async with asyncio.timeout(self._settings.load_seconds):
                    await asyncio.shield(parent.loaded)
            except TimeoutError:
                seconds = self._settings.load_seconds
                parent.condemn(
                    ExitReason.TIMEOUT, f"the script took longer than {seconds:g} s to load; do less at import"
                )
        parent.loaded.result()
        return parent

    def _make_parent(self, scraper: Scraper) -> ScraperParent:
        number = next(self._numbers)
        folder = WORK_FOLDER if "root" in self._walls else str(self._scratch(number))
        parent = ScraperParent(number, scraper, self._worker.ahead, self._max_children, folder)
        self._parents[scraper.ref.digest] = parent
        self._by_number[number] = parent
        message = json.dumps({"do": "parent", "id": number, "plan": self._plan(number, scraper).encode()}).encode()
        if self._control is None:
            raise SandboxError("the zygote is not running")
        try:
            socket.send_fds(self._control, [message], [parent.theirs.fileno()])
        except OSError as error:
            self._forget(number, str(error))
            raise SandboxError(f"the zygote does not answer: {error}") from None
        finally:
            parent.theirs.close()
        return parent

    def _plan(self, number: int, scraper: Scraper) -> Plan:
        limits = scraper.limits
        as_root = os.geteuid() == 0 and "user" in self._walls
        user = self._settings.uid_base + number % _USERS if as_root else None
        scratch = self._scratch(number)
        if "root" not in self._walls:
            scratch.mkdir(mode=0o700)
            if user is not None:
                os.chown(scratch, user, user)
        return Plan(
            folder=str(scraper.folder),
            entry=scraper.entry,
            walls=self._walls,
            readable=_libraries(),
            mount_point=str(self._home / "root"),
            scratch=str(scratch),
            user_id=user,
            data_bytes=limits.memory_mb * _MB,
            disk_bytes=limits.disk_mb * _MB * self._max_children,
            file_bytes=limits.disk_mb * _MB,
            processes=1 + self._max_children * (1 + limits.threads),
            direct_network=scraper.network == "direct",
            environment=_ENVIRONMENT,
        )

    @property
    def _home(self) -> Path:
        if self._folder is None:
            raise SandboxError("the sandbox is not started")
        return self._folder

    def _scratch(self, number: int) -> Path:
        return self._home / "scratch" / str(number)

    async def _tidy(self) -> None:
        """Let scrapers go that nobody has used for a while, and the least used when there are too many."""
        while True:
            await asyncio.sleep(_TIDY_SECONDS)
            now = time.monotonic()
            idle = sorted((p for p in self._parents.values() if not p.busy), key=lambda p: p.used_at)
            excess = len(self._parents) - self._worker.max_scrapers
            for place, parent in enumerate(idle):
                if place < excess or now - parent.used_at > self._worker.idle_scraper_seconds:
                    parent.kill()


def _remove_orphans() -> None:
    """Folders of workers that were killed: named for a process that is no more."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}[0-9]*-*"):
        owner = place.name.split("-")[1]
        try:
            ours = place.lstat().st_uid == os.geteuid()
        except OSError:
            continue
        if ours and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            folders.remove(str(place))


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000


def _with_start(verdict: Verdict, waited: float, ahead: bool) -> Verdict:
    return replace(verdict, child_start_ms=waited, forked_ahead=ahead)


def _libraries() -> tuple[str, ...]:
    """Folders that the interpreter and its libraries live in, none inside another."""
    wanted = {
        "/usr/lib",
        "/usr/lib64",
        "/usr/share/zoneinfo",
        "/lib",
        "/lib64",
        sys.base_prefix,
        sys.prefix,
        *sysconfig.get_paths().values(),
        str(Path(scrapeyard_sdk.__file__).parent),
    }
    there = sorted(path for path in wanted if Path(path).is_dir() and path not in ("/", "/usr"))
    if sys.base_prefix == "/usr":
        there = sorted({*there, "/usr/local/lib"} - {"/usr/include"})
    return tuple(p for p in there if not any(p != other and p.startswith(other + "/") for other in there))


def _others_can_read(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.parents))
