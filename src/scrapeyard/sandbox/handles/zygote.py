"""The worker's handle on one zygote: its process, its socket, and the lock that protects its environment."""

import asyncio
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from scrapeyard.errors import SandboxError
from scrapeyard.model import Environment
from scrapeyard.sandbox.inside import launch
from scrapeyard.sandbox.inside.libraries import sdk_folder
from scrapeyard.sandbox.walls.plan import Plan

ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "USER": "scrapeyard"}
_BIND_NOW = {"LD_BIND_NOW": "1"}
"""Otherwise each child looks up the functions of libraries that it calls first, and copies memory for it."""
_MESSAGE = 128 * 1024
_HELLO_PATIENCE = 20.0
_TRIES = 3
"""Attempts to start one: it may be killed, by the OOM killer or by hand, before it is ready."""

Told = Callable[["ZygoteHandle", dict[str, Any]], None]
Gone = Callable[["ZygoteHandle"], None]


class _Ended(SandboxError):
    """The zygote ended before it said hello."""


class ZygoteHandle:
    """One zygote, started when it is first needed and again after its death. Call all methods from the event loop."""

    def __init__(self, environment: Environment | None, on_told: Told, on_gone: Gone) -> None:
        self.environment = environment
        """None for the base, whose children see the platform's packages."""
        self.numbers: set[int] = set()
        """Live parents that it has forked."""
        self.found: dict[str, str] = {}
        """Each wall, and why it is not available; empty if it is."""
        self.base_bytes = 0
        """Its own memory, which does not count as a script's."""
        self._used_at = time.monotonic()
        self._on_told = on_told
        self._on_gone = on_gone
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._hello: asyncio.Future[dict[str, Any]] | None = None
        self._lease = -1
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int:
        """Its process; 0 while it has none."""
        return 0 if self._process is None else self._process.pid

    def idle_seconds(self, now: float) -> float:
        """Seconds since the last request; 0 while it starts or has a parent."""
        return 0.0 if self.numbers or self._starting.locked() else now - self._used_at

    async def start(self) -> bool:
        """Start it if it is not running; returns whether it had to. Raises SandboxError. May be called at any time."""
        self._used_at = time.monotonic()
        async with self._starting:
            if self._control is not None:
                return False
            for _ in range(_TRIES - 1):
                with suppress(_Ended):
                    await self._begin()
                    return True
            await self._begin()
            return True

    def fork(self, number: int, plan: Plan, theirs: socket.socket) -> None:
        """Request a parent; `on_told` is called with the outcome later. Raises SandboxError."""
        if self._control is None:
            raise SandboxError("the zygote is not running")
        self._used_at = time.monotonic()
        message = json.dumps({"do": "parent", "id": number, "plan": plan.encode()}).encode()
        try:
            socket.send_fds(self._control, [message], [theirs.fileno()])
        except OSError as error:
            raise SandboxError(f"the zygote does not answer: {error}") from None
        self.numbers.add(number)

    def end(self) -> None:
        """Kill it; the kernel kills its parents and their children with it. May be called twice."""
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control.fileno())
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._hello is not None and not self._hello.done():
            self._hello.set_exception(_Ended("the zygote ended as it started; `scrapeyard doctor` shows why"))
        if self._lease >= 0:
            os.close(self._lease)
            self._lease = -1

    def _hold_environment(self) -> None:
        """Lock the marker, so that no process evicts the environment."""
        if self.environment is None:
            return
        marker = self.environment.marker
        try:
            lease = os.open(marker, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if marker.stat().st_ino != os.fstat(lease).st_ino:
                    raise FileNotFoundError
            except BaseException:
                os.close(lease)
                raise
        except OSError:
            raise SandboxError("the environment was removed to make room for others; it is built again") from None
        self._lease = lease

    async def _begin(self) -> None:
        self._hold_environment()
        try:
            await self._launch()
        except BaseException:
            self.end()
            raise

    async def _launch(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - a fork and an exec; asyncio wants a child watcher
                self._command(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=ENVIRONMENT | _BIND_NOW,
                cwd="/",
            )
        loop = asyncio.get_running_loop()
        self._control, self._hello = ours, loop.create_future()
        loop.add_reader(ours.fileno(), self._on_readable)
        try:
            async with asyncio.timeout(_HELLO_PATIENCE):
                hello = await self._hello
        except TimeoutError:
            raise SandboxError("the zygote did not start; `scrapeyard doctor` shows why") from None
        self.found = {name: str(why) for name, why in hello["hello"].items()}
        self.base_bytes = int(hello["rss_bytes"])

    def _command(self, socket_number: int) -> list[str]:
        if self.environment is None:
            return [sys.executable, "-I", "-m", "scrapeyard.sandbox.inside.zygote", str(socket_number)]
        return [sys.executable, "-I", "-S", launch.__file__, str(socket_number), sdk_folder()]

    def _on_readable(self) -> None:
        if self._control is None:
            return
        try:
            data = self._control.recv(_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._receive(json.loads(data))
            return
        self.end()
        self._on_gone(self)

    def _receive(self, message: dict[str, Any]) -> None:
        if "hello" in message and self._hello is not None and not self._hello.done():
            self._hello.set_result(message)
        else:
            self._on_told(self, message)
