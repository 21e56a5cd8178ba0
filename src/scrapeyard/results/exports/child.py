"""The process that writes a file: `python -m scrapeyard.results.exports.child`. Items come on stdin, the file leaves by
stdout, both in frames. It has no secrets, no store and no network; the kernel ends it with its parent.
"""

import sys
from collections.abc import Callable
from typing import BinaryIO

from scrapeyard.framed_process import prepare_child
from scrapeyard.results.exports import protocol
from scrapeyard.results.exports.builder import ExportBuilder


def main() -> None:
    """Write one file."""
    prepare_child()
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(source: BinaryIO, answers: BinaryIO) -> None:
    """Until the last frame, or until the parent closes its end: then nothing is finished."""

    def send(letter: bytes, body: bytes) -> None:
        answers.write(protocol.frame(letter, body))
        answers.flush()

    try:
        _make(source, send)
    except (MemoryError, OSError, ValueError) as error:
        send(protocol.FAULT, f"{type(error).__name__}: {error}".encode())


def _make(source: BinaryIO, send: Callable[[bytes, bytes], None]) -> None:
    letter, body = protocol.FRAMING.read(source)
    task = protocol.decode_task(body)
    maker = ExportBuilder(task.wish, lambda piece: send(protocol.DATA, piece), task.notes)
    while letter != protocol.END:
        letter, body = protocol.FRAMING.read(source)
        if letter == protocol.LINES:
            maker.add_lines(protocol.decode_lines(body))
        elif letter == protocol.ROWS:
            maker.add_rows(protocol.decode_rows(body))
        send(protocol.TOLD, protocol.encode(protocol.ExportProgress(rows=maker.rows)))
    for rows, share in maker.finish():
        send(protocol.TOLD, protocol.encode(protocol.ExportProgress(rows=rows, share=share)))
    send(protocol.END, protocol.encode(maker.written))


if __name__ == "__main__":
    main()
