"""Frames and helper processes, away from what they are used for."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from scrapeyard import framed_process
from scrapeyard.builtin.reading import frames
from scrapeyard.framed_process import HEAD, Framing, PipeClosed
from scrapeyard.results.exports import protocol

SMALL = Framing(3)


def test_a_frame_is_read_as_it_was_packed() -> None:
    source = io.BytesIO(SMALL.pack(b"A", b"abc") + SMALL.pack(b"E"))
    assert [SMALL.read(source), SMALL.read(source)] == [(b"A", b"abc"), (b"E", b"")]


def test_a_frame_has_a_bound_on_both_sides() -> None:
    with pytest.raises(ValueError, match="a frame of 4 bytes; 3 are allowed"):
        SMALL.pack(b"A", b"abcd")
    with pytest.raises(ValueError, match="a frame of 4 bytes; 3 are allowed"):
        SMALL.read(io.BytesIO(Framing(4).pack(b"A", b"abcd")))


@pytest.mark.parametrize("size", range(HEAD + 3))
def test_a_frame_that_is_cut_is_none(size: int) -> None:
    with pytest.raises(PipeClosed):
        SMALL.read(io.BytesIO(SMALL.pack(b"A", b"abc")[:size]))


def test_bounds_of_the_helpers() -> None:
    assert frames.FRAMING.max_bytes == 256 * 1024 * 1024
    assert protocol.FRAMING.max_bytes == 512 * 1024 * 1024


@pytest.mark.parametrize(
    ("letter", "body"), [(frames.FAULT, b"\xff"), (frames.PAGE, b""), (frames.PAGE, frames.encode("x")), (b"X", b"x")]
)
def test_an_answer_of_a_parser_that_makes_no_sense(letter: bytes, body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        frames.decode_answer(letter, body)


async def test_a_child_sees_what_it_is_given_and_is_reaped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "told_environment.py").write_text(
        "import os, sys\n"
        "from scrapeyard.framed_process import Framing\n"
        "names = ' '.join(sorted(name for name in os.environ if name in ('PATH', 'TMPDIR', 'SECRET')))\n"
        "sys.stdout.buffer.write(Framing(99).pack(b'E', f'{sys.argv[1]} {names}'.encode()))\n"
    )
    for name, value in (("PYTHONPATH", str(tmp_path)), ("TMPDIR", str(tmp_path)), ("SECRET", "x")):
        monkeypatch.setenv(name, value)
    for variables, seen in (((), b"one PATH"), (("TMPDIR",), b"one PATH TMPDIR")):
        child = await framed_process.start_process("told_environment", "one", framing=Framing(99), variables=variables)
        try:
            assert await child.receive() == (b"E", seen)
            with pytest.raises(EOFError):
                await child.receive()
        finally:
            await child.end()
            await child.end()


def test_a_child_that_writes_exports_loads_no_event_loop() -> None:
    code = (
        "import sys, scrapeyard.results.exports.child\n"
        "print([name for name in ('asyncio', 'subprocess') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"
