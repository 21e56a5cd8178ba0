"""The process that writes a file: `python -m scrapeyard.results.exports.child`. Items come on stdin, the file leaves by
stdout, both in frames. It has no secrets, no store and no network; the kernel ends it with its parent.
"""

import ctypes
import signal
import sys
from typing import BinaryIO

from scrapeyard.results.exports import lines
from scrapeyard.results.exports.making import Maker

_DIE_WITH_PARENT = 1


def main() -> None:
    """Write one file."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the parent decides what ends
        signal.signal(number, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(source: BinaryIO, answers: BinaryIO) -> None:
    """Until the last frame, or until the parent closes its end: then nothing is finished."""

    def send(letter: bytes, body: bytes) -> None:
        answers.write(lines.frame(letter, body))
        answers.flush()

    try:
        _make(source, send)
    except (MemoryError, OSError, ValueError) as error:
        send(lines.FAULT, f"{type(error).__name__}: {error}".encode())


def _make(source: BinaryIO, send: "lines.Send") -> None:
    letter, body = _read(source)
    maker = Maker(lines.decode_wish(body), lambda piece: send(lines.DATA, piece))
    while letter != lines.END:
        letter, body = _read(source)
        if letter == lines.LINES:
            maker.add_lines(lines.decode_lines(body))
        elif letter == lines.ROWS:
            maker.add_rows(lines.decode_rows(body))
        send(lines.TOLD, lines.encode(lines.Told(rows=maker.rows)))
    for rows, share in maker.finish():
        send(lines.TOLD, lines.encode(lines.Told(rows=rows, share=share)))
    send(lines.END, lines.encode(maker.written))


def _read(source: BinaryIO) -> tuple[bytes, bytes]:
    head = source.read(lines.HEAD)
    if len(head) < lines.HEAD:
        raise EOFError("the parent is gone")
    size, letter = lines.read_head(head)
    return letter, source.read(size)


if __name__ == "__main__":
    main()
