"""The parser process: `python -m scrapeyard.builtin.reading.serving MEMORY_MB`. Pages come on stdin, answers leave by
stdout.

It lives until its pipe closes. Its worker kills it when a page takes too long, and it is killed by the kernel when its
worker is gone. What it may allocate is limited, so that a page that makes the parser swell ends this process alone.
"""

import ctypes
import logging
import resource
import signal
import sys
from typing import BinaryIO

from scrapeyard.builtin.reading import frames
from scrapeyard.builtin.reading.page import extract_page
from scrapeyard.builtin.reading.port import RawPage

_DIE_WITH_PARENT = 1
_NO_MEMORY = frames.encode(frames.ReadPage(error="it takes more memory than a page may"))
"""Made beforehand: there may be no memory left to make it in."""


def main() -> None:
    """Serve until there is nothing more to read."""
    if sys.platform == "linux":
        limit_memory(int(sys.argv[1]))
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    logging.disable(logging.CRITICAL)  # libraries complain about pages; that is no news to an operator
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the worker decides what ends
        signal.signal(number, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(pages: BinaryIO, answers: BinaryIO) -> None:
    """One answer for each page, in order."""
    while head := pages.read(frames.HEAD):
        answers.write(answer(frames.decode_page(pages.read(frames.length(head)))))
        answers.flush()


def answer(page: RawPage) -> bytes:
    """The frame to send back."""
    try:
        fields = extract_page(page.body, page.url, encoding=page.encoding, include=page.include, headers=page.headers)
        return frames.encode(frames.ReadPage(page=fields))
    except MemoryError:
        return _NO_MEMORY
    except RecursionError:
        return frames.encode(frames.ReadPage(error="it is nested too deeply"))


def limit_memory(megabytes: int) -> None:
    """Beyond what the process has now."""
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        now = int(statm.read().split()[0]) * resource.getpagesize()
    most = now + megabytes * 1024 * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
