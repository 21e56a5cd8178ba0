"""The sandbox: a zygote for each environment, a parent for each scraper in use, children forked ahead."""

import asyncio
import contextlib
import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.errors import SandboxError, ScraperInvalid
from scrapeyard.model import Environment, ExitReason, Scraper
from scrapeyard.sandbox.handles.parent import LoadFailed, ParentGone, ParentHandle
from scrapeyard.sandbox.handles.series import ChildSeries, WarmChildren, new_number
from scrapeyard.sandbox.handles.session import Session
from scrapeyard.sandbox.handles.unread import UnreadPages
from scrapeyard.sandbox.handles.watch import ChildWatch
from scrapeyard.sandbox.handles.zygote import ENVIRONMENT, ZygoteHandle
from scrapeyard.sandbox.inside import folders
from scrapeyard.sandbox.inside.libraries import others_can_read_all, readable
from scrapeyard.sandbox.port import ChildServices, Verdict, Wall, Work
from scrapeyard.sandbox.walls import landlock
from scrapeyard.sandbox.walls.plan import NAMES, WORK_FOLDER, Plan
from scrapeyard.settings import SandboxSettings, WorkerSettings
from scrapeyard.telemetry.events import get_log

log = get_log("sandbox")
_MB = 1024 * 1024
_USERS = 50_000
_TIDY_SECONDS = 5.0
_PREFIX = "scrapeyard-"
_BASE = ""
"""The zygote of scrapers that require nothing."""


class ForkSandbox:
    """Children of zygotes. One per worker."""

    def __init__(self, sandbox: SandboxSettings, worker: WorkerSettings, slots: int) -> None:
        self._settings = sandbox
        self._worker = worker
        self._max_children = slots + worker.ahead
        self._zygotes: dict[str, ZygoteHandle] = {}
        """By the key of their environment."""
        self._found: dict[str, str] = {}
        self._walls: tuple[str, ...] = ()
        self._parents: dict[str, ParentHandle] = {}
        self._by_number: dict[int, ParentHandle] = {}
        self._numbers = itertools.count(1)
        self._folder: Path | None = None
        self._watch = ChildWatch()
        self._pages = UnreadPages(sandbox)
        self._warm = WarmChildren(worker)
        self._background = Background()
        self._stopped = False

    async def start(self) -> None:
        """Start the base zygote and detect which walls are up. Raises SandboxError if one is missing in strict mode."""
        self._stopped = False
        _remove_orphans()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._folder.chmod(0o755)
        for name in ("root", "scratch"):
            (self._folder / name).mkdir(mode=0o755)
        try:
            await self._zygote(None)
        except BaseException:
            await self.stop()
            raise
        self._background.start(self._watch.run, self._tidy, name="sandbox")

    async def stop(self) -> None:
        """Kill all processes and wait until they are gone. May be called twice."""
        self._stopped = True
        await self._background.stop()
        for parent in list(self._by_number.values()):
            parent.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(*(parent.gone for parent in list(self._by_number.values())))
        for zygote in self._zygotes.values():
            zygote.end()
        self._zygotes.clear()
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
            parent = await self._parent(scraper, work.environment)
            child, ahead = await (self._warm.take(parent) if work.warm else parent.child())
        except LoadFailed as failure:
            return Verdict(exit_reason=failure.reason, error=failure.error, wall_ms=_since(asked))
        except ParentGone as gone:
            raise SandboxError(f"the process that forks children went away: {gone}") from None
        session = Session(child, work, services, self._pages, new_number() if work.warm else 0)
        self._watch.add(session, work.limits, parent)
        verdict = None
        try:
            verdict = await session.run()
        finally:
            self._watch.remove(session)
            if work.warm:
                self._warm.put_back(parent, session, verdict)
            else:
                parent.release(child, session.imports)
        verdict = parent.attribute_crash(verdict)
        return replace(verdict, child_start_ms=(session.handed_at - asked) * 1000, forked_ahead=ahead)

    def series(self, scraper: Scraper) -> ChildSeries:
        """See the port."""
        return ChildSeries(lambda environment: self._parent(scraper, environment), self._watch, self._pages)

    async def check(self, scraper: Scraper, environment: Environment | None = None) -> None:
        """See the port."""
        try:
            await self._parent(scraper, environment)
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

    async def _zygote(self, environment: Environment | None) -> ZygoteHandle:
        """The zygote of an environment, started if necessary. Raises SandboxError."""
        key = _BASE if environment is None else environment.key
        zygote = self._zygotes.get(key)
        if zygote is None:
            zygote = self._zygotes[key] = ZygoteHandle(environment, self._on_told, self._on_zygote_gone)
        if await zygote.start() and environment is None:
            self._found = dict(zygote.found)
            self._choose_walls()
        return zygote

    def _choose_walls(self) -> None:
        wanted = [] if self._settings.mode == "off" else [n for n in NAMES if n not in self._settings.without]
        usable = [name for name in wanted if not self._found[name]]
        if "root" in usable and "namespaces" not in usable:
            usable.remove("root")
        if "user" in usable and "root" not in usable and not others_can_read_all():
            self._found["user"] = "another user could not read our packages, and there is no root of its own"
            usable.remove("user")
        self._walls = tuple(usable)
        missing = [name for name in NAMES if name not in usable]
        if missing and self._settings.mode == "strict":
            reasons = "; ".join(f"{name}: {self._detail(name)}" for name in missing)
            self._zygotes[_BASE].end()
            raise SandboxError(f"sandbox.mode is strict and these walls are missing: {reasons}")
        if missing:
            log.warning("sandbox.walls_missing", missing=", ".join(missing))

    def _on_told(self, _zygote: ZygoteHandle, message: dict[str, Any]) -> None:
        if "made" in message:
            if (parent := self._by_number.get(message["made"])) is not None:
                parent.made(message["pid"])
                self._watch.add_parent(parent)
        elif "gone" in message:
            self._forget(message["gone"], f"status {message['status']}")
        elif "failed" in message:
            self._forget(message["failed"], message["why"])

    def _forget(self, number: int, why: str) -> None:
        for zygote in self._zygotes.values():
            zygote.numbers.discard(number)
        parent = self._by_number.pop(number, None)
        if parent is None:
            return
        self._watch.remove_parent(parent)
        if self._parents.get(parent.name) is parent:
            del self._parents[parent.name]
        parent.mark_gone(why)
        folders.remove(str(self._scratch(number)))

    def _on_zygote_gone(self, zygote: ZygoteHandle) -> None:
        """A zygote died, and the kernel killed its parents and children; the next run starts a new one."""
        for number in list(zygote.numbers):
            if number in self._by_number:
                self._by_number[number].kill()
            self._forget(number, "the zygote is gone")
        if not self._stopped:
            log.warning("sandbox.zygote_gone")

    async def _parent(self, scraper: Scraper, environment: Environment | None) -> ParentHandle:
        """The loaded parent of this version, started if necessary. Raises LoadFailed or SandboxError."""
        name = f"{scraper.ref.digest} {environment.key}" if environment else scraper.ref.digest
        parent = self._parents.get(name)
        if parent is None or not parent.usable:
            zygote = await self._zygote(environment)
            parent = self._parents.get(name)
            if parent is None or not parent.usable:
                parent = self._make_parent(name, scraper, zygote)
        if not parent.loaded.done():
            parent.waiting += 1
            try:
                await self._wait_loaded(parent)
            finally:
                parent.waiting -= 1
        parent.loaded.result()
        return parent

    async def _wait_loaded(self, parent: ParentHandle) -> None:
        seconds = self._settings.load_seconds
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(parent.loaded)
        except TimeoutError:
            parent.fail_all_runs(
                ExitReason.TIMEOUT, f"the script took longer than {seconds:g} s to load; do less at import"
            )

    def _make_parent(self, name: str, scraper: Scraper, zygote: ZygoteHandle) -> ParentHandle:
        for other in self._parents.values():
            if other.scraper.ref.id == scraper.ref.id:  # another version: what rests of it is out of date
                other.end_resting()
        number = next(self._numbers)
        folder = WORK_FOLDER if "root" in self._walls else str(self._scratch(number))
        parent = ParentHandle(
            number,
            name,
            scraper,
            ahead=0 if scraper.isolation == "warm" else self._worker.ahead,
            max_children=self._max_children,
            work_folder=folder,
            base_bytes=zygote.base_bytes,
        )
        self._parents[name] = parent
        self._by_number[number] = parent
        try:
            zygote.fork(number, self._plan(number, scraper, zygote.environment), parent.theirs)
        except SandboxError as error:
            self._forget(number, error.message)
            raise
        finally:
            parent.theirs.close()
        return parent

    def _plan(self, number: int, scraper: Scraper, environment: Environment | None) -> Plan:
        limits = scraper.limits
        as_root = os.geteuid() == 0 and "user" in self._walls
        user = self._settings.uid_base + number % _USERS if as_root else None
        certificates = _certificates() if scraper.network == "direct" else {}
        scratch = self._scratch(number)
        if "root" not in self._walls:
            scratch.mkdir(mode=0o700)
            if user is not None:
                os.chown(scratch, user, user)
        return Plan(
            folder=str(scraper.folder),
            entry=scraper.entry,
            walls=self._walls,
            readable=readable(environment),
            packages=() if environment is None else (str(environment.packages),),
            mount_point=str(self._home / "root"),
            scratch=str(scratch),
            user_id=user,
            data_bytes=limits.memory_mb * _MB,
            disk_bytes=limits.disk_mb * _MB * self._max_children,
            file_bytes=limits.disk_mb * _MB,
            processes=1 + self._max_children * (1 + limits.threads),
            direct_network=scraper.network == "direct",
            certificates=tuple(path for value in certificates.values() for path in value.split(os.pathsep)),
            environment=ENVIRONMENT | certificates,
        )

    @property
    def _home(self) -> Path:
        if self._folder is None:
            raise SandboxError("the sandbox is not started")
        return self._folder

    def _scratch(self, number: int) -> Path:
        return self._home / "scratch" / str(number)

    async def _tidy(self) -> None:
        """Unload scrapers that were idle for a while, and the least recently used if there are too many; then end
        zygotes whose environment no scraper uses any more."""
        while True:
            await asyncio.sleep(_TIDY_SECONDS)
            now = time.monotonic()
            idle = sorted((p for p in self._parents.values() if not p.busy), key=lambda p: p.used_at)
            excess = len(self._parents) - self._worker.max_scrapers
            for place, parent in enumerate(idle):
                is_unused = not parent.resting and now - parent.used_at > self._worker.idle_scraper_seconds
                if place < excess or is_unused:
                    parent.kill()
            self._warm.tidy(list(self._parents.values()), now)
            self._end_idle_zygotes(now)

    def _end_idle_zygotes(self, now: float) -> None:
        for key, zygote in list(self._zygotes.items()):
            if key != _BASE and zygote.idle_seconds(now) > self._worker.idle_scraper_seconds:
                zygote.end()
                del self._zygotes[key]


def _certificates() -> dict[str, str]:
    """Where the operator keeps certificates of their own, for scrapers with the direct network."""
    return {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)}


def _remove_orphans() -> None:
    """Remove folders of killed workers: those named after a process that no longer exists."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}[0-9]*-*"):
        owner = place.name.split("-")[1]
        try:
            ours = place.lstat().st_uid == os.geteuid()
        except OSError:  # another worker removes it at this moment
            continue
        if ours and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            folders.remove(str(place))


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
