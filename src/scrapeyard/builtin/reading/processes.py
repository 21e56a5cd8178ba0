"""Reads pages in processes of their own, so that a bad page costs a process; or in a thread, for a single run."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from scrapeyard.builtin.reading import frames
from scrapeyard.builtin.reading.bounds import MAX_LIGHT, is_light
from scrapeyard.builtin.reading.page import decode, read_page
from scrapeyard.builtin.reading.port import PageUnreadable, RawPage
from scrapeyard.telemetry.events import get_log

log = get_log("extract")
_ENVIRONMENT = frozenset({"PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"})
"""What a parser needs of ours. Secrets are none of its business."""
_SLOW_PARTS = frozenset({"product", "article"})


class ProcessExtractor:
    """A small pool of parser processes. Pages wait for a free one, in the order in which they came."""

    def __init__(
        self, processes: int = 2, *, seconds: float = 10, memory_mb: int = 1024, pages_per_process: int = 1000
    ) -> None:
        self._seconds = seconds
        self._memory_mb = memory_mb
        self._pages = pages_per_process
        self._room = asyncio.Semaphore(processes)
        self._idle: list[_Parser] = []
        self._all: set[_Parser] = set()
        self._stopped = False

    async def start(self) -> None:
        """Processes start when a page needs one."""
        self._stopped = False

    async def stop(self) -> None:
        """End the processes; pages that are being read come to nothing. May be called twice."""
        self._stopped = True
        idle, self._idle = self._idle, []
        busy = self._all.difference(idle)
        self._all.clear()
        for parser in busy:
            parser.kill()
        for parser in idle:
            await parser.end()
        for parser in busy:
            await parser.ended.wait()

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """As `Extractor`. A cancelled call ends its process."""
        if len(page.body) <= MAX_LIGHT and not _SLOW_PARTS.intersection(page.include):
            source = decode(page.body, page.encoding)
            if is_light(source):
                return read_page(source, page.url, include=page.include, headers=page.headers)
        async with self._room:
            return await self._in_process(page)

    async def _in_process(self, page: RawPage) -> dict[str, Any]:
        parser = self._idle.pop() if self._idle else await self._new()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await parser.ask(page)
        except TimeoutError:
            log.warning("extract.too_slow", host=urlsplit(page.url).hostname, seconds=self._seconds)
            raise PageUnreadable(f"reading the page took longer than {self._seconds:g} s") from None
        except (EOFError, OSError, ValueError) as error:
            log.warning("extract.parser_lost", host=urlsplit(page.url).hostname, error=repr(error))
            raise PageUnreadable("reading the page ended the parser: it takes more memory than a page may") from None
        finally:
            await self._settle(parser)
        if answer.page is None:
            raise PageUnreadable(f"the page cannot be read: {answer.error}")
        return answer.page

    async def _new(self) -> "_Parser":
        parser = await _Parser.begin(self._memory_mb)
        if self._stopped:
            await parser.end()
            raise PageUnreadable("the worker is stopping")
        self._all.add(parser)
        return parser

    async def _settle(self, parser: "_Parser") -> None:
        """Back among the idle, if it has answered and is not worn out; else it ends."""
        if parser.is_free and parser.answered < self._pages and not self._stopped:
            self._idle.append(parser)
        else:
            await self._end(parser)

    async def _end(self, parser: "_Parser") -> None:
        self._all.discard(parser)
        await parser.end()


class _Parser:
    """One process. It has one page at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.is_free = True
        self.answered = 0
        self.ended = asyncio.Event()

    @classmethod
    async def begin(cls, memory_mb: int) -> "_Parser":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "scrapeyard.builtin.reading.serving", str(memory_mb)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
        )
        return cls(process)

    async def ask(self, page: RawPage) -> frames.ReadPage:
        """Raises EOFError or OSError when the process is gone, ValueError when it does not make sense."""
        self.is_free = False
        assert self._process.stdin is not None  # noqa: S101 - made with pipes
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(frames.encode(page))
        await self._process.stdin.drain()
        head = await self._process.stdout.readexactly(frames.HEAD)
        body = await self._process.stdout.readexactly(frames.length(head))
        try:
            answer = frames.decode_answer(body)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from None
        self.is_free = True
        self.answered += 1
        return answer

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """Kill and reap. Only for one that nobody asks anything any more."""
        self.kill()
        assert self._process.stdout is not None  # noqa: S101
        # An answer that nobody read keeps the pipe open, and the process is not reaped before its pipes are closed.
        await self._process.stdout.read()
        await self._process.wait()
        self.ended.set()


class ThreadExtractor:
    """Keeps the loop free, but not Python's lock: a hostile page can slow everything in the process for a while."""

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """As `Extractor`. Never raises PageUnreadable."""
        from scrapeyard.builtin.reading.page import extract_page  # noqa: PLC0415 - a run of a script here needs no parser

        return await asyncio.to_thread(
            extract_page, page.body, page.url, encoding=page.encoding, include=page.include, headers=page.headers
        )
