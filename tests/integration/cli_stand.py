"""The real `scrapeyard` program for tests of its commands: run to the end, or kept running until its test is over."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from tests.leaks import PATIENCE, killed_after, until
from tests.services.warm import Talking, warm

PROGRAM = str(Path(sys.executable).with_name("scrapeyard"))
EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "scrapers"
Running: TypeAlias = subprocess.Popen[bytes] | Talking
_OURS = ("SCRAPEYARD_", "REDIS_URL", "DATABASE_URL", "LOG_LEVEL", "OTEL_", "LC_", "PYTHONDONTWRITEBYTECODE")
"""Not for a command of a test; bytecode may be kept, since a start compiles a hundred modules."""

LAB = """
import asyncio
import sys


async def run(ctx, seconds: float = 0, boom: bool = False, name: str = "", big: int = 0):
    print("hello\\x1b[31m")
    print("aside", file=sys.stderr)
    ctx.log("noted", level="warning", number=1)
    await ctx.artifact("note.txt", "kept", "text/plain")
    if boom:
        raise ValueError("boom")
    await asyncio.sleep(seconds)
    return {"name": name, "big": "x" * big}
"""


LIMITS = "[limits]\nwall_seconds = 300\n"
"""A busy machine ends no run."""


class Ended:
    """A command that ended."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out = out.decode()
        self.err = err.decode()

    @property
    def json(self) -> Any:
        """What stdout held."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The table on stdout without its header."""
        return [line.split("\t") for line in self.out.splitlines()[1:]]


class Stand:
    """A folder to run commands in. Settings come from `environment` alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.cache = folder / "cache"
        self.scrapers = folder / "scrapers"
        self.write("lab/lab", LAB)

    def write(self, scraper_id: str, script: str, version: str = "1.0.0") -> Path:
        """A scraper in the folder of scrapers."""
        folder = self.scrapers / scraper_id
        folder.mkdir(parents=True)
        (folder / "scraper.py").write_text(script)
        (folder / "scraper.toml").write_text(f'id = "{scraper_id}"\nversion = "{version}"\n{LIMITS}')
        return folder

    def cli(self, *words: str, stdin: str = "", **environment: str) -> Ended:
        """Run a command to its end."""
        with self.started(*words, stdin=bool(stdin), **environment) as process:
            out, err = process.communicate(stdin.encode() or None, PATIENCE)
            until_gone(process.pid, words)
        assert process.returncode is not None
        return Ended(process.returncode, out, err)

    @contextmanager
    def started(self, *words: str, stdin: bool = False, **environment: str) -> Iterator[Running]:
        """A command in a session of its own. What is left of it when the block ends is killed.

        It is a fork of a warm process, unless it has settings for Python itself.
        """
        given = self._environment(environment)
        process: Running
        if any(name.startswith("PYTHON") for name in environment):
            process = subprocess.Popen(
                [PROGRAM, *words],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=given,
                start_new_session=True,
            )
        else:
            process = warm().talk(words, self.folder, given, stdin=stdin)
        with killed_after(process):
            yield process

    @contextmanager
    def serving(self, *words: str, says: bytes, **environment: str) -> Iterator[str]:
        """Keep a server running; yields the word of its stderr that follows `says`."""
        with self.started(*words, **environment) as process:
            try:
                yield line_with(process, says).partition(says)[2].split()[0].decode()
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=PATIENCE)
            until_gone(process.pid, words)

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        own = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("CACHE", "CONFIG", "STATE")}
        return {**kept, "LANG": "C.UTF-8", "TMPDIR": str(self.temporary), **own, **more}


def group_lives(session: int) -> bool:
    """Whether a process of this session's first group is left."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def until_gone(session: int, words: tuple[str, ...] = ()) -> None:
    """Nothing of this session is left. What was killed may take a moment to go."""
    until(lambda: not group_lives(session), f"{words} left processes")


def on_terminal(stand: Stand, *words: str, **environment: str) -> tuple[int, str]:
    """The status of a command, and what it shows where stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=stand.folder,
            env=stand._environment(environment),
        )
        os.close(theirs)
        with killed_after(process):
            shown = _all_of(ours)
            return process.wait(PATIENCE), shown
    finally:
        os.close(ours)


def _all_of(terminal: int) -> str:
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    return shown.decode("utf-8", "replace").replace("\r\n", "\n")


def line_with(process: Running, part: bytes) -> bytes:
    """The first line of its stderr that has this in it, however many come before. Fails when it ends first."""
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if part in line:
            return line
    raise AssertionError(f"it ended: {b''.join(heard).decode()}")
