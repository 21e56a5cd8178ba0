"""The sandbox with each set of walls it may find itself left with, and what a test needs to hold it to its promises."""

import asyncio
import gc
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw

from scrapeyard.engines.browser.operations import AnyOperation, Click, Content, Evaluate, Goto
from scrapeyard.engines.browser.port import ContextOptions, Done
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, BlobsUnavailable, FetchFailed, StoreUnavailable
from scrapeyard.model import ExitReason, Limits, LogLine, RunProgress, Scraper, ScraperRef
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.sandbox.port import Verdict, Work
from scrapeyard.settings import SandboxSettings, WorkerSettings
from tests.leaks import PATIENCE, pause_after

SMALL = Limits(  # but for the times: a busy machine must not change how a run ends
    wall_seconds=PATIENCE,
    cpu_seconds=20,
    memory_mb=96,
    disk_mb=4,
    output_mb=1,
    log_kb=16,
    artifact_mb=1,
    threads=8,
    fetches=40,
)


@dataclass(frozen=True, kw_only=True)
class Walls:
    """One configuration. Tests skip on what it declares, never on its name."""

    name: str
    settings: SandboxSettings


def _walls(name: str, *without: str, mode: Literal["auto", "off"] = "auto") -> Walls:
    return Walls(name=name, settings=SandboxSettings(mode=mode, without=without, load_seconds=PATIENCE))


CONFIGURATIONS = (
    _walls("all"),
    _walls("no-namespaces", "namespaces", "root"),
    _walls("no-landlock", "landlock"),
    _walls("no-seccomp", "seccomp"),
    _walls("off", mode="off"),
)


@dataclass
class Served:
    """A worker's services, played by the test: pages by URL, artifacts and logs kept for it to look at."""

    logs: list[LogLine] = field(default_factory=list)
    artifacts: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    asked: list[FetchRequest] = field(default_factory=list)
    told: list[RunProgress] = field(default_factory=list)
    enqueued: list[tuple[Any, str]] = field(default_factory=list)
    state: dict[str, bytes] = field(default_factory=dict)
    browsers: dict[int, ContextOptions] = field(default_factory=dict)
    steps: list[AnyOperation] = field(default_factory=list)
    seen: asyncio.Event = field(default_factory=asyncio.Event)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        self.asked.append(request)
        if "refused" in request.url:
            raise FetchFailed(ExitReason.FETCH_CONNECT, "nobody listens", site_status=None)
        if "forever" in request.url:
            await asyncio.Event().wait()
        return FetchResponse(
            url=request.url,
            status=404 if "missing" in request.url else 200,
            headers=(("content-type", "text/html; charset=utf-8"),),
            body=f"<h1>{request.method} {len(request.body)}</h1>".encode(),
            encoding="utf-8",
            elapsed_ms=1.0,
        )

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        page = await self.fetch(request)
        if page.status != 200:
            return page
        await self.artifact(name, "text/html", page.body)
        return msgspec.structs.replace(page, body=b"", kept=len(page.body))

    async def open_browser(self, options: ContextOptions) -> int:
        if options.device == "none":
            raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, "no browser here")
        self.browsers[len(self.browsers) + 1] = options
        return len(self.browsers)

    async def browse(self, number: int, operation: AnyOperation, raw: bytes = b"") -> Done:
        assert number in self.browsers
        self.steps.append(operation)
        match operation:
            case Goto():
                value = {"url": operation.url, "status": 200, "headers": {}}
                return Done(Raw(msgspec.json.encode(value)))
            case Evaluate(expression="forever"):
                await asyncio.Event().wait()
            case Evaluate():
                return Done(Raw(msgspec.json.encode(operation.arg)))
            case Content():
                value = {"url": "http://a.test/", "status": 200, "type": "text/html"}
                return Done(Raw(msgspec.json.encode(value)), b"<h1>as it is now</h1>")
            case Click():
                raise FetchFailed(ExitReason.BROWSER_TIMEOUT, f"no {operation.selector} within 30 s")
        return Done(raw=raw)

    async def solve_widget(self, number: int, tab: int, seconds: float | None) -> str:
        assert number in self.browsers
        return f"token of tab {tab} within {seconds}"

    async def extract(self, given: dict[str, Any]) -> dict[str, Any]:
        """Tells what it was asked."""
        if "html" not in given:
            raise BadRequest("html: missing")
        return {"data": {"asked": given}, "fields": {}}

    async def solve_image(self, image: bytes) -> str:
        if image == b"not this":
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, "not by policy")
        if image == b"not read":
            raise FetchFailed(ExitReason.FETCH_CAPTCHA, "it could not be read")
        return image.decode()

    async def close_browser(self, number: int) -> None:
        self.browsers.pop(number, None)

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        if name == "full":
            raise BlobsUnavailable("the disk is full")
        self.artifacts[name] = (content_type, data)

    def progress(self, progress: RunProgress) -> None:
        self.told.append(progress)

    def enqueue(self, given: bytes, item_id: str) -> None:
        if b"unfit" in given:
            raise BadRequest("it does not fit")
        self.enqueued.append((msgspec.json.decode(given), item_id))

    async def read_state(self, key: str) -> bytes | None:
        if key == "away":
            raise StoreUnavailable("the database is away")
        return self.state.get(key)

    async def change_state(self, key: str, value: bytes | None, old: bytes | None, compare: bool) -> bool:
        if compare and self.state.get(key, b"null") != old:
            return False
        if value is None:
            return self.state.pop(key, None) is not None
        self.state[key] = value
        return True

    def log(self, line: LogLine) -> None:
        self.logs.append(line)
        self.seen.set()

    @property
    def text(self) -> list[str]:
        return [line.text for line in self.logs]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A started sandbox and a folder for scripts."""

    sandbox: ForkSandbox
    walls: Walls
    folder: Path

    def scraper(self, source: str, limits: Limits = SMALL, name: str = "test/case") -> Scraper:
        """A scraper of this one file; the same source is the same scraper."""
        digest = hashlib.sha256(f"{name}{source}{limits}".encode()).hexdigest()
        place = self.folder / digest[:16]
        place.mkdir(exist_ok=True, mode=0o755)
        (place / "scraper.py").write_text(source)
        return Scraper(ref=ScraperRef(id=name, version="1.0.0", digest=digest), folder=place, limits=limits)

    async def run(
        self,
        scraper: Scraper | str,
        served: Served | None = None,
        *,
        limits: Limits | None = None,
        run_id: str = "run_1",
        **given: Any,
    ) -> Verdict:
        """One run with these arguments as its input."""
        if isinstance(scraper, str):
            scraper = self.scraper(scraper, limits or SMALL)
        work = Work(
            run_id=run_id, attempt=1, input=Raw(msgspec.json.encode(given)), limits=limits or scraper.limits, config={}
        )
        return await self.sandbox.run(scraper, work, served or Served())


@asynccontextmanager
async def bench(walls: Walls, slots: int = 8, ahead: int = 2, max_scrapers: int = 32) -> AsyncIterator[Bench]:
    """A sandbox that is started, and stopped with a check that it left nothing."""
    before = Traces.now()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        Path(folder).chmod(0o755)
        sandbox = ForkSandbox(walls.settings, WorkerSettings(ahead=ahead, max_scrapers=max_scrapers), slots)
        await sandbox.start()
        try:
            yield Bench(sandbox=sandbox, walls=walls, folder=Path(folder))
        finally:
            await sandbox.stop()
            await sandbox.stop()
    await before.check()


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What a sandbox could leave behind: descendants, folders, descriptors."""

    processes: frozenset[int]
    folders: frozenset[str]
    descriptors: int

    @classmethod
    def now(cls) -> "Traces":
        gc.collect()
        folders = frozenset(str(path) for path in Path(tempfile.gettempdir()).glob("scrapeyard-*"))
        return cls(
            processes=frozenset(descendants(os.getpid())), folders=folders, descriptors=len(os.listdir("/proc/self/fd"))
        )

    async def check(self) -> None:
        """Raises AssertionError naming what is left after a moment's grace."""
        await eventually(lambda: not self._left(), self._left)

    def _left(self) -> str:
        now = Traces.now()
        left = []
        if extra := now.processes - self.processes:
            left.append(f"processes {[(pid, command(pid)) for pid in extra]}")
        if mine := {folder for folder in now.folders - self.folders if _is_ours(folder)}:
            left.append(f"folders {mine}")
        if now.descriptors > self.descriptors:
            left.append(f"{now.descriptors - self.descriptors} descriptors {_open_files()}")
        return "; ".join(left)


def _is_ours(folder: str) -> bool:
    """Other sandboxes work on this machine too; ours hold their folder's lock, or nobody does any more."""
    try:
        return os.stat(folder).st_uid == os.geteuid() and f"-{os.getpid()}-" in folder
    except OSError:
        return False


def _open_files() -> list[str]:
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return names


def descendants(pid: int) -> Iterator[int]:
    """Every process below this one, zombies too; not the servers that other tests have started for the session."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        try:
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        except OSError:
            continue
        for child in children:
            if not _is_server(child):
                yield int(child)
                yield from descendants(int(child))


def _is_server(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() in ("postgres", "valkey-server", "weed")
    except OSError:
        return False


def command(pid: int) -> str:
    """A process's command line, for a failing test's message."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    except OSError:
        return "gone"


async def eventually(
    condition: Callable[[], object], why: Callable[[], str] = lambda: "it never came true", seconds: float = PATIENCE
) -> None:
    """Wait until the condition holds. Raises AssertionError."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, why()
        await asyncio.sleep(pause_after(waited))
