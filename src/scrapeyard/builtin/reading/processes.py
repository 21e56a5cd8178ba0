"""Reads pages in processes of their own, so that a bad page costs a process, and many pages use every core."""

import asyncio
import os
import time
from typing import Any
from urllib.parse import urlsplit

from scrapeyard.background import Background
from scrapeyard.builtin.pages.bounds import MAX_LIGHT, is_light
from scrapeyard.builtin.pages.kinds import HTML, JSON, TEXT
from scrapeyard.builtin.pages.page import decode, read_page
from scrapeyard.builtin.pages.port import PageUnreadable, RawPage
from scrapeyard.builtin.reading import frames
from scrapeyard.builtin.reading.raw import read_raw
from scrapeyard.framed_process import FramedProcess, start_process
from scrapeyard.telemetry.events import get_log

log = get_log("extract")
_MODULE = "scrapeyard.builtin.reading.serving"
_LIGHT_KINDS = frozenset({JSON, TEXT})
_START_SECONDS = 0.5
"""How long a page waits for a process that starts, before another one is started for it: most pages take less time than
a start."""
_SLOW_PARTS = frozenset({"product", "article", "html", "tables", "records"})


_SHARE_HERE = 0.05
"""Share of the time that this process may spend with light pages; processes read those beyond it."""
_BURST_SECONDS = 0.05
_IDLE_SECONDS = 60.0
_LOOK_SECONDS = 20.0


class ProcessExtractor:
    """A small pool of parser processes. Pages wait for a free one, in the order in which they came.

    A light page costs less to read here than to send to a process, so a few of them are read here. Under a job of many
    that would keep one core busy and leave the others idle.
    """

    def __init__(
        self,
        processes: int = 2,
        *,
        seconds: float = 10,
        memory_mb: int = 1024,
        pages_per_process: int = 10_000,
        share_here: float | None = None,
    ) -> None:
        """`share_here` is the share of the time that light pages may take here; None: all of it on a single core."""
        alone = 1.0 if os.cpu_count() == 1 else _SHARE_HERE
        self._here = _Allowance(alone if share_here is None else share_here)
        self._background = Background()
        self._seconds = seconds
        self._memory_mb = memory_mb
        self._pages = pages_per_process
        self._room = asyncio.Semaphore(processes)
        self._idle: list[_Parser] = []
        self._all: set[_Parser] = set()
        self._starting: set[asyncio.Future[None]] = set()
        """One for each process that has not read its first page yet."""
        self._stopped = False

    async def start(self) -> None:
        """Processes start when a page needs one, and end when none did for a while."""
        self._stopped = False
        self._background.start(self._end_idle, name="page-readers")

    async def stop(self) -> None:
        """Kill the processes; pages that are being read fail. May be called twice."""
        self._stopped = True
        await self._background.stop()
        idle, self._idle = self._idle, []
        busy = self._all.difference(idle)
        self._all.clear()
        for parser in busy:
            parser.process.kill()
        for parser in idle:
            await parser.process.end()
        for parser in busy:
            await parser.ended.wait()

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """As `Extractor`. A cancelled call ends its process."""
        if page.kind in _LIGHT_KINDS and len(page.body) <= MAX_LIGHT and page.fields is None:
            return read_raw(page)
        if page.kind == HTML and len(page.body) <= MAX_LIGHT and not _is_slow(page) and self._here.is_left():
            source = decode(page.body, page.encoding)
            if is_light(source):
                with self._here:
                    return read_page(source, page)
        async with self._room:
            return await self._in_process(page)

    async def _in_process(self, page: RawPage) -> dict[str, Any]:
        parser = await self._free()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await parser.ask(page)
        except TimeoutError:
            log.warning("extract.too_slow", host=urlsplit(page.url).hostname, seconds=self._seconds)
            raise PageUnreadable(f"reading the page took longer than {self._seconds:g} s") from None
        except (EOFError, OSError, ValueError) as error:
            log.warning("extract.parser_lost", host=urlsplit(page.url).hostname, error=repr(error))
            raise PageUnreadable("reading the page ended its parser process: it may have run out of memory") from None
        finally:
            await self._settle(parser)
        if isinstance(answer, str):
            raise PageUnreadable(f"the page cannot be read: {answer}")
        return answer

    async def _free(self) -> "_Parser":
        """An idle process. If there is none, one that starts meanwhile, or a new one."""
        if not self._idle and self._starting:
            await asyncio.wait(self._starting, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        return self._idle.pop() if self._idle else await self._new()

    async def _new(self) -> "_Parser":
        started = asyncio.get_running_loop().create_future()
        self._starting.add(started)
        started.add_done_callback(self._starting.discard)
        try:
            process = await start_process(_MODULE, str(self._memory_mb), framing=frames.FRAMING)
        except BaseException:
            started.cancel()
            raise
        if self._stopped:
            started.cancel()
            await process.end()
            raise PageUnreadable("the worker is stopping")
        parser = _Parser(process, started)
        self._all.add(parser)
        return parser

    async def _settle(self, parser: "_Parser") -> None:
        """Return it to the idle ones if it has answered and may serve more pages; otherwise end it."""
        parser.started.cancel()
        if parser.is_free and parser.answered < self._pages and not self._stopped:
            parser.idle_since = time.monotonic()
            self._idle.append(parser)
        else:
            await self._end(parser)

    async def _end(self, parser: "_Parser") -> None:
        self._all.discard(parser)
        await parser.process.end()
        parser.ended.set()

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            late = time.monotonic() - _IDLE_SECONDS
            for parser in [parser for parser in self._idle if parser.idle_since < late]:
                self._idle.remove(parser)
                await self._end(parser)


class _Allowance:
    """Time that may be spent on something: a share of all time, and a little at once."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._left = _BURST_SECONDS
        self._at = time.perf_counter()

    def is_left(self) -> bool:
        """Whether more may be spent now."""
        now = time.perf_counter()
        self._left = min(_BURST_SECONDS, self._left + self._share * (now - self._at))
        self._at = now
        return self._left > 0 or self._share >= 1

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._left -= time.perf_counter() - self._began


def _is_slow(page: RawPage) -> bool:
    """Whether reading even a small page may take long: a selector may be as costly as its author likes."""
    chooses = bool(page.include_tags or page.exclude_tags or page.fields is not None or page.task is not None)
    return chooses or not _SLOW_PARTS.isdisjoint(page.include)


class _Parser:
    """One process. It has one page at a time."""

    def __init__(self, process: FramedProcess, started: asyncio.Future[None]) -> None:
        self.process = process
        self.started = started
        """Cancelled when the first page was read, or could not be."""
        self.is_free = True
        self.answered = 0
        self.idle_since = 0.0
        self.ended = asyncio.Event()

    async def ask(self, page: RawPage) -> dict[str, Any] | str:
        """As `decode_answer`. Raises EOFError or OSError if the process is gone, ValueError for an invalid answer."""
        self.is_free = False
        await self.process.send(frames.FRAMING.pack(frames.PAGE, frames.encode(page)))
        answer = frames.decode_answer(*await self.process.receive())
        self.is_free = True
        self.answered += 1
        return answer
