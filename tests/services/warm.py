"""The program `scrapeyard` forked from a process that has it loaded: a command then costs what it does, not its start.

Each is a process with words, folder, environment and session of its own. What such a command cannot show is that it
loads what it needs; README.md and docs/getting-started.md start every command afresh, and so do commands on a terminal
and the first program of each role in the yards of `test_road.py`.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, Self

_START_SECONDS = 120.0
_MESSAGE = 1 << 20
_LOOK_SECONDS = 1.0
"""Between two looks whether another thread has read the status."""


class Done(NamedTuple):
    """A command that ended; `status` is negative when a signal ended it."""

    pid: int
    status: int
    out: bytes
    err: bytes


@cache
def warm() -> "Warm":
    """The one of this process; it ends with it."""
    atexit.register(close)
    return Warm()


def close() -> None:
    """End it, where there is one. May be called twice."""
    if warm.cache_info().currsize:
        warm().close()
        warm.cache_clear()


class Started:
    """A command that runs, with the methods of `subprocess.Popen` that tests use, from several threads at once."""

    def __init__(self, pid: int, plug: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._plug = plug
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        """Its status; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Its status. Raises TimeoutExpired."""
        ends = float("inf") if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = max(0.0, min(_LOOK_SECONDS, ends - time.monotonic()))
            if self._is_told(left):
                self._read()
            elif timeout is not None and time.monotonic() >= ends:
                raise subprocess.TimeoutExpired("scrapeyard", timeout)
        return self.returncode

    def _is_told(self, seconds: float) -> bool:
        try:
            return bool(select.select([self._plug], [], [], seconds)[0])
        except (OSError, ValueError):  # another thread has read it and closed the plug
            return self.returncode is not None

    def _read(self) -> None:
        with self._reading:
            if self.returncode is None:
                with self._plug, self._plug.makefile() as told:
                    # Nothing is told where the process that forks is gone.
                    self.returncode = int(told.readline() or -signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """By SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """At once."""
        self.send_signal(signal.SIGKILL)


class Talking(Started):
    """A command on pipes. As a context it is waited for at the end, and its pipes are closed."""

    def __init__(self, started: Started, stdin: IO[bytes] | None, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        super().__init__(started.pid, started._plug)
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_stdin()
        self.stdout.close()
        self.stderr.close()
        self.wait()

    def communicate(self, data: bytes | None = None, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Write this to it and read all that it writes. Raises TimeoutExpired, and kills it with all of its session."""
        with ThreadPoolExecutor(2) as readers:
            out, err = readers.submit(self.stdout.read), readers.submit(self.stderr.read)
            try:
                if self.stdin is not None and data:
                    self.stdin.write(data)
                self._close_stdin()
                self.wait(timeout)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
                raise
            return out.result(), err.result()

    def _close_stdin(self) -> None:
        if self.stdin is not None:
            with suppress(BrokenPipeError):
                self.stdin.close()


class Warm:
    """Holds the process that forks. Commands may be run from several threads at once."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._path = str(Path(self._folder.name) / "s")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen()
            kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=kept,
            )

    @property
    def pid(self) -> int:
        """Of the process that forks."""
        return self._process.pid

    def install(self, folder: Path) -> None:
        """Put a `scrapeyard` there for shell scripts."""
        command = folder / "scrapeyard"
        shim = Path(__file__).with_name("warm_command.py")
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {shim} {self._path} "$@"\n')
        command.chmod(0o755)

    def close(self) -> None:
        """End it. Commands that still run go on."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def run(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Done:
        """A command to its end, without input. Raises TimeoutExpired after `seconds`, and kills it."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            started = self.start(words, folder, environment, out.fileno(), err.fileno())
            try:
                status = started.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
                raise
            return Done(started.pid, status, _whole(out), _whole(err))

    def talk(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], *, stdin: bool = False
    ) -> Talking:
        """A command whose streams are pipes; without `stdin` it has no input."""
        (out, theirs_out), (err, theirs_err) = pipes = [os.pipe(), os.pipe()]
        theirs = [theirs_out, theirs_err]
        if stdin:
            pipes.insert(0, os.pipe())
            theirs.insert(0, pipes[0][0])
        try:
            started = self.start(words, folder, environment, *theirs)
        finally:
            for end in theirs:
                os.close(end)
        source = open(pipes[0][1], "wb") if stdin else None  # noqa: SIM115 - `Talking` closes them
        return Talking(started, source, open(out, "rb"), open(err, "rb"))

    def start(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], *streams: int) -> Started:
        """A command with these streams: all three, or stdout and stderr where it has no input."""
        order = json.dumps({"words": list(words), "folder": str(folder), "environment": dict(environment)})
        plug = socket.socket(socket.AF_UNIX)
        try:
            plug.settimeout(_START_SECONDS)
            plug.connect(self._path)
            socket.send_fds(plug, [order.encode() + b"\n"], streams)
            told = b""
            while not told.endswith(b"\n"):
                told += plug.recv(1)
            plug.settimeout(None)
        except BaseException:
            plug.close()
            raise
        return Started(int(told), plug)


def _whole(stream: Any) -> bytes:
    stream.seek(0)
    data: bytes = stream.read()
    return data


def _serve(listener: socket.socket) -> None:
    """Until killed: for each call a process, whose pid and status are told to the caller. If the tests are killed, the
    commands are told to end."""
    commands: dict[int, tuple[int, socket.socket]] = {}
    tests = os.pidfd_open(os.getppid())
    with select.epoll() as poll:
        poll.register(listener, select.EPOLLIN)
        poll.register(tests, select.EPOLLIN)
        while True:
            for ready, _ in poll.poll():
                if ready == tests:
                    _end_all(pid for pid, _ in commands.values())
                    return
                if ready == listener.fileno():
                    plug, _ = listener.accept()
                    if (pid := _fork(plug)) is not None:
                        end = os.pidfd_open(pid)
                        commands[end] = (pid, plug)
                        poll.register(end, select.EPOLLIN)
                else:
                    pid, plug = commands.pop(ready)
                    os.close(ready)
                    _, how = os.waitpid(pid, 0)
                    _tell(plug, os.waitstatus_to_exitcode(how))
                    plug.close()


def _end_all(commands: Iterable[int]) -> None:
    for pid in commands:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGTERM)


def _fork(plug: socket.socket) -> int | None:
    """The pid of the command that the caller orders; None where there is no order. Never returns in the command."""
    text, streams, _, _ = socket.recv_fds(plug, _MESSAGE, 3)
    while text and not text.endswith(b"\n"):
        text += plug.recv(_MESSAGE)
    if not text:
        plug.close()
        return None
    pid = os.fork()
    if pid == 0:
        _become(json.loads(text), streams)
    for stream in streams:
        os.close(stream)
    _tell(plug, pid)
    return pid


def _tell(plug: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # the caller has gone
        plug.sendall(f"{number}\n".encode())


def _become(order: dict[str, Any], streams: list[int]) -> NoReturn:
    """As if it had just been started."""
    for number, stream in enumerate(streams, 3 - len(streams)):  # all three, or stdout and stderr
        os.dup2(stream, number)
    os.closerange(3, 1024)
    os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    program = Path(sys.executable).with_name("scrapeyard")
    sys.argv = [str(program), *order["words"]]
    sys.path.insert(0, str(program.parent))

    from scrapeyard.cli.main import main

    main()


def _load() -> None:
    """What commands load when they run, so that a fork has it. None of it may have started a thread."""
    import asyncio  # noqa: F401
    import encodings.idna
    import encodings.utf_8_sig  # noqa: F401
    import urllib.request  # noqa: F401

    import aiosqlite  # noqa: F401
    import alembic.command
    import alembic.config  # noqa: F401
    import asyncpg  # noqa: F401
    import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
    import lxml.etree  # noqa: F401
    import redis.asyncio  # noqa: F401
    import structlog  # noqa: F401
    import typer
    import uvicorn.lifespan.off
    import uvicorn.protocols.http.httptools_impl
    import uvicorn.protocols.websockets.websockets_sansio_impl  # noqa: F401
    import uvloop  # noqa: F401

    import scrapeyard.authoring.certifying
    import scrapeyard.authoring.recording
    import scrapeyard.authoring.validating
    import scrapeyard.builtin.extraction.scraper
    import scrapeyard.cli.common.client
    import scrapeyard.cli.common.manners
    import scrapeyard.cli.common.output
    import scrapeyard.cli.common.progress
    import scrapeyard.cli.jobs.calls
    import scrapeyard.cli.jobs.documents
    import scrapeyard.cli.jobs.transfers
    import scrapeyard.cli.main
    import scrapeyard.cli.runs.local
    import scrapeyard.cli.runs.local_job
    import scrapeyard.cli.runs.run_file
    import scrapeyard.engines.browser.proxy.server
    import scrapeyard.gateway.limits.memory
    import scrapeyard.gateway.server
    import scrapeyard.inputs.site_map
    import scrapeyard.queues.redis.queue
    import scrapeyard.sealing.masters
    import scrapeyard.settings
    import scrapeyard.store.database.postgres
    import scrapeyard.store.database.sqlite
    import scrapeyard.telemetry.rendering
    import scrapeyard.wiring.browser
    import scrapeyard.wiring.duties
    import scrapeyard.wiring.on_redis
    import scrapeyard.wiring.platform
    import scrapeyard_sdk.extract.markdown  # noqa: F401
    from scrapeyard.wiring.starting import build_type_info

    # Made once: the tree of all commands takes longer than most of them do, and so does the reading of their options.
    # The validators of the settings, which are made when they are first needed, take as long as many a command.
    command = typer.main.get_command(scrapeyard.cli.main.app)
    typer.main.get_command = lambda _: command  # type: ignore[assignment]
    _prepare(command)
    scrapeyard.settings.Settings.model_rebuild()
    build_type_info()

    gc.collect()
    gc.freeze()
    assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1


def _prepare(command: Any) -> None:
    """Let each parameter of a command, and of those below it, make what reads its value."""
    for parameter in command.params:
        parameter.get_runtime_param()
    for below in getattr(command, "commands", {}).values():
        _prepare(below)


if __name__ == "__main__":
    _load()
    _serve(socket.socket(fileno=int(sys.argv[1])))
