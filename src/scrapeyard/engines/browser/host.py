"""The worker's side of the process that holds driver and browser."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from scrapeyard.background import Background
from scrapeyard.engines.browser import wire
from scrapeyard.engines.browser.found import find_browser, find_light
from scrapeyard.engines.browser.operations import Operation
from scrapeyard.engines.browser.port import USUAL_HOST, ContextEnd, Done, HostContext, HostKind, LogMessage
from scrapeyard.errors import FetchFailed
from scrapeyard.framed_process import FramedProcess, start_process
from scrapeyard.model import ExitReason
from scrapeyard.settings.engine import BrowserSettings

_MODULE: Final = "scrapeyard.engines.browser.inside.host"
_PREFIX: Final = "browser-"
_MAX_PATH: Final = 55
"""Bytes of a folder's path, so that a socket of the browser in it has less than 108."""
_START_SECONDS: Final = 120
_END_SECONDS: Final = 10
_SILENT_SECONDS: Final = 60
"""A process that answers nothing for so long, not even a ping, is dead."""
_MAX_MESSAGES: Final = 200
_MAX_CLOSED: Final = 100
"""Closed contexts whose messages may still be asked for."""
_MAX_CALL: Final = wire.FRAMING.max_bytes - 1024
_MEMORY_EVERY: Final = 2.0
_VARIABLES: Final = ("PLAYWRIGHT_BROWSERS_PATH", "PATCHRIGHT_BROWSERS_PATH", "HOME")
_decode_end: Final = msgspec.msgpack.Decoder(ContextEnd).decode
_decode_message: Final = msgspec.msgpack.Decoder(LogMessage).decode


async def start_host(
    settings: BrowserSettings, proxy_socket: str, folder: Path, kind: HostKind = USUAL_HOST
) -> "ProcessHost":
    """Start the process, its driver and its browser. `folder` is private to the hosts of this user; what dead ones left
    there is removed. Raises FetchFailed (`browser_unavailable`)."""
    found = await asyncio.to_thread(find_light if kind.light else find_browser, settings)
    if found.missing:
        raise _unavailable(found.missing)
    own = await asyncio.to_thread(_make_folder, folder)
    plan = wire.HostPlan(
        driver="playwright" if kind.light else settings.driver,  # the other does not get along with it
        name=wire.LIGHT if kind.light else settings.name,
        executable=found.executable,
        sandbox=settings.sandbox,
        namespace=settings.namespace,
        arguments=settings.arguments,
        socket=proxy_socket,
        folder=str(own),
        language=kind.language,
    )
    try:
        process = await start_process(
            _MODULE, msgspec.json.encode(plan).decode(), framing=wire.FRAMING, variables=_VARIABLES
        )
    except OSError as error:
        await asyncio.to_thread(_remove_folder, own)
        raise _unavailable(f"its process does not start: {error}") from None
    host = ProcessHost(process, own, page_mb=settings.memory_mb / 2)
    try:
        await host.start()
    except BaseException:
        await host.end()
        raise
    return host


class ProcessHost:
    """As `BrowserHost`."""

    def __init__(self, process: FramedProcess, folder: Path, page_mb: float) -> None:
        self.pid = process.pid
        self._page_mb = page_mb
        self.facts = wire.HostFacts(driver="", browser="", version="")
        self._process = process
        self._folder = folder
        self._calls: dict[int, asyncio.Future[wire.HostAnswer]] = {}
        self._last_call = 0
        self._messages: dict[int, deque[LogMessage]] = {}
        self._views: dict[int, set[asyncio.Queue[bytes]]] = {}
        self._open: set[int] = set()
        self._background = Background()
        self._is_alive = False
        self._heard_at = 0.0
        self._closed = asyncio.Event()
        """Set when its end of the pipe is closed: it and all that it started have ended."""

    @property
    def is_alive(self) -> bool:
        """False once it died or its browser did; open contexts fail with `browser_crashed`."""
        return self._is_alive

    async def start(self) -> None:
        """Wait for its browser. Raises FetchFailed (`browser_unavailable`)."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                letter, body = await self._process.receive()
                self.facts = wire.decode_facts(body)
        except TimeoutError:
            raise _unavailable(f"no browser within {_START_SECONDS} s") from None
        except (EOFError, OSError, ValueError) as error:
            raise _unavailable(f"its process ended as it started: {error!r}") from None
        if letter != wire.HELLO or self.facts.failure:
            raise _unavailable(self.facts.failure or "its process does not say what it has")
        self._is_alive = True
        self._background.start(self._read, self._listen, self._guard_memory, name="browser-host")

    async def open(self, number: int, context: HostContext) -> None:
        """As `BrowserHost`."""
        self._messages[number] = deque(maxlen=_MAX_MESSAGES)
        if len(self._messages) > _MAX_CLOSED + len(self._open):
            del self._messages[next(each for each in self._messages if each not in self._open)]
        self._open.add(number)
        await self._call("open", number, wire.encode(context))

    async def perform(self, number: int, operation: Operation, raw: bytes = b"") -> Done:
        """As `BrowserHost`."""
        answer = await self._call("perform", number, msgspec.json.encode(operation), raw)
        return Done(msgspec.Raw(answer.body), answer.raw)

    async def close(self, number: int) -> ContextEnd:
        """As `BrowserHost`."""
        try:
            return _decode_end((await self._call("close", number)).body)
        finally:
            self._open.discard(number)
            for pictures in self._views.get(number, ()):
                _offer(pictures, b"")

    async def watch(self, number: int) -> AsyncGenerator[bytes]:
        """As `BrowserHost`."""
        pictures: asyncio.Queue[bytes] = asyncio.Queue(1)
        views = self._views.setdefault(number, set())
        views.add(pictures)
        try:
            if len(views) == 1:
                await self._call("watch", number, b"on")
            while picture := await pictures.get():
                yield picture
        finally:
            views.discard(pictures)
            if not views:
                self._views.pop(number, None)
                if self._is_alive and number in self._open:
                    self._background.spawn(self._unwatch(number), name="browser-unwatch")

    async def _unwatch(self, number: int) -> None:
        if number not in self._views:  # else somebody else has begun to look meanwhile
            with suppress(FetchFailed):
                await self._call("watch", number, b"off")

    def messages(self, number: int) -> list[LogMessage]:
        """As `BrowserHost`."""
        kept = self._messages.get(number, deque())
        found = list(kept)
        kept.clear()
        return found

    async def memory_mb(self) -> float:
        """As `BrowserHost`."""
        return sum((await asyncio.to_thread(_memory_below, self.pid)).values())

    async def end(self) -> None:
        """As `BrowserHost`. Removes its folder."""
        self._is_alive = False
        with suppress(ProcessLookupError):
            os.kill(self.pid, wire.STOP)
        if self._background.started:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await self._closed.wait()
        await self._background.stop()
        await self._process.end()
        self._fail_calls()
        await asyncio.to_thread(_remove_folder, self._folder)

    async def _call(self, do: str, context: int, body: bytes = b"", raw: bytes = b"") -> wire.HostAnswer:
        if not self._is_alive:
            raise _crashed()
        if len(body) + len(raw) > _MAX_CALL:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"what is sent to the browser is larger than {_MAX_CALL} bytes")
        self._last_call += 1
        number = self._last_call
        answer: asyncio.Future[wire.HostAnswer] = asyncio.get_running_loop().create_future()
        self._calls[number] = answer
        try:
            call = wire.HostCall(number=number, do=do, context=context, body=body, raw=raw)
            await self._send(wire.FRAMING.pack(wire.CALL, wire.encode(call)))
            found = await answer
        except asyncio.CancelledError:
            self._background.spawn(self._send(wire.FRAMING.pack(wire.CANCEL, number.to_bytes(8))), name="cancel")
            raise
        finally:
            self._calls.pop(number, None)
        if found.reason:
            raise FetchFailed(ExitReason(found.reason), found.message, **found.details)
        return found

    async def _send(self, frame: bytes) -> None:
        with suppress(ConnectionError):  # the reader sees its end
            await self._process.send(frame)

    async def _read(self) -> None:
        try:
            while True:
                letter, body = await self._process.receive()
                self._heard_at = asyncio.get_running_loop().time()
                if letter == wire.ANSWER:
                    self._take_answer(wire.decode_answer(body))
                elif letter == wire.EVENT:
                    self._take_event(wire.decode_event(body))
        except (EOFError, OSError, ValueError):
            self._closed.set()
        finally:
            self._is_alive = False
            self._fail_calls()

    def _take_answer(self, answer: wire.HostAnswer) -> None:
        waiting = self._calls.get(answer.number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _take_event(self, event: wire.HostEvent) -> None:
        if event.kind == "log" and event.context in self._messages:
            self._messages[event.context].append(_decode_message(event.body))
        elif event.kind == "picture":
            for pictures in self._views.get(event.context, ()):
                _offer(pictures, event.body)

    async def _guard_memory(self) -> None:
        """Kill the page that takes half of all: its context fails, the others go on."""
        while True:
            await asyncio.sleep(_MEMORY_EVERY)
            if self._open:
                memory = await asyncio.to_thread(_memory_below, self.pid)
                for pid in [pid for pid, megabytes in memory.items() if megabytes > self._page_mb and _is_page(pid)]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    async def _listen(self) -> None:
        """Kill it when it falls silent: all calls fail then."""
        loop = asyncio.get_running_loop()
        while self._is_alive:
            asked_at = loop.time()
            with suppress(TimeoutError, FetchFailed):
                async with asyncio.timeout(_SILENT_SECONDS):
                    await self._call("ping", 0)
                    await asyncio.sleep(_SILENT_SECONDS / 4)
            if self._heard_at < asked_at and self._is_alive:
                self._process.kill()
                return

    def _fail_calls(self) -> None:
        for waiting in self._calls.values():
            if not waiting.done():
                waiting.set_exception(_crashed())
        for views in self._views.values():
            for pictures in views:
                _offer(pictures, b"")


def _crashed() -> FetchFailed:
    return FetchFailed(ExitReason.BROWSER_CRASHED, "the browser's process ended; trying again may help")


def _unavailable(why: str) -> FetchFailed:
    return FetchFailed(ExitReason.BROWSER_UNAVAILABLE, f"there is no browser: {why}")


def _make_folder(folder: Path) -> Path:
    """A new one. The browser makes a socket below `wire.TEMPORARY` in it, whose path must be short, so this may be a
    link to a folder elsewhere."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_leftovers(folder)
    own = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=folder.absolute()))
    if len(os.fsencode(own)) <= _MAX_PATH:
        (own / wire.TEMPORARY).mkdir()
    else:
        is_short = len(os.fsencode(tempfile.gettempdir())) + 20 <= _MAX_PATH
        place = None if is_short else "/tmp"  # noqa: S108 - TMPDIR itself may be too long
        (own / wire.TEMPORARY).symlink_to(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    return own


def _remove_folder(own: Path) -> None:
    with suppress(OSError):
        shutil.rmtree((own / wire.TEMPORARY).readlink(), ignore_errors=True)
    shutil.rmtree(own, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Of hosts whose worker was killed."""
    for path in folder.glob(f"{_PREFIX}*"):
        owner = path.name.removeprefix(_PREFIX).partition("-")[0]
        if not (owner.isdecimal() and Path(f"/proc/{owner}").exists()):
            _remove_folder(path)


def _offer(pictures: "asyncio.Queue[bytes]", picture: bytes) -> None:
    """The last one wins."""
    if pictures.full():
        pictures.get_nowait()
    pictures.put_nowait(picture)


def _memory_below(pid: int) -> dict[int, float]:
    """Megabytes of a process and of each below it, without what they share."""
    memory: dict[int, float] = {}
    parents: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE") / 1024 / 1024
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone
        if name.isdigit():
            with suppress(OSError, ValueError):
                stat = Path(f"/proc/{name}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
                pages = Path(f"/proc/{name}/statm").read_text("ascii").split()
                parents[int(name)] = int(stat[1])
                memory[int(name)] = (int(pages[1]) - int(pages[2])) * page
    return {each: megabytes for each, megabytes in memory.items() if _is_below(each, pid, parents)}


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process and process != ancestor:
        process = parents.get(process, 0)
    return process == ancestor


def _is_page(pid: int) -> bool:
    """Whether it is a process of the browser that shows pages."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"--type=renderer" in words or words.partition(b"\0")[0].endswith(wire.LIGHT.encode())
    except OSError:
        return False
