"""The parser process: `python -m scrapeyard.builtin.reading.serving MEMORY_MB`. Pages come on stdin, answers leave by
stdout.

It lives until its pipe closes. Its worker kills it if a page takes too long, and the kernel kills it if its worker is
gone. Its memory is limited, so that a page that makes the parser use too much ends only this process.
"""

import logging
import resource
import sys
from contextlib import suppress
from typing import BinaryIO

from selectolax.lexbor import SelectolaxError

import scrapeyard_sdk.extract.markdown  # noqa: F401 - loaded before memory is limited
from scrapeyard.builtin.pages.port import RawPage
from scrapeyard.builtin.reading import frames
from scrapeyard.builtin.reading.raw import read_raw
from scrapeyard.framed_process import PipeClosed, prepare_child

_NO_MEMORY = frames.FRAMING.pack(frames.FAULT, b"it takes more memory than a page may")
"""Built in advance, because there may be no memory left when it is needed."""


def main() -> None:
    """Serve until there is nothing more to read."""
    prepare_child()
    if sys.platform == "linux":
        limit_memory(int(sys.argv[1]))
    logging.disable(logging.CRITICAL)  # warnings of libraries about pages are of no use to an operator
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(pages: BinaryIO, answers: BinaryIO) -> None:
    """One answer for each page, in order."""
    with suppress(PipeClosed):
        while True:
            answers.write(answer(frames.decode_page(frames.FRAMING.read(pages)[1])))
            answers.flush()


def answer(page: RawPage) -> bytes:
    """The frame to send back."""
    try:
        fields = read_raw(page)
        return frames.FRAMING.pack(frames.PAGE, frames.encode(fields))
    except (MemoryError, SelectolaxError):  # the parser takes every text, so it fails only without memory
        return _NO_MEMORY
    except RecursionError:
        return frames.FRAMING.pack(frames.FAULT, b"it is nested too deeply")
    except Exception as error:  # noqa: BLE001 - a page costs itself, not the process
        return frames.FRAMING.pack(frames.FAULT, f"{type(error).__name__}: {str(error)[:200]}".encode())


def limit_memory(megabytes: int) -> None:
    """Limit memory to this much beyond what the process uses now."""
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        now = int(statm.read().split()[0]) * resource.getpagesize()
    most = now + megabytes * 1024 * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
