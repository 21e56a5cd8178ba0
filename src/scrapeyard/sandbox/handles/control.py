"""The wire to one scraper's parent: requests to it, and its messages, which are not trusted."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable, Sequence
from typing import Any

from scrapeyard.model import ExitReason, RunError
from scrapeyard.sandbox.handles.child import Child, Exit
from scrapeyard.sandbox.walls.plan import FORK

_MESSAGE = 128 * 1024

_LOAD_REASONS = {"memory_limit": ExitReason.MEMORY_LIMIT, "disk_limit": ExitReason.DISK_LIMIT}
"""Exit reasons for limits exceeded while loading; any other failure to load is the author's error."""

_NONSENSE = (ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Exceptions that parsing an invalid message may raise."""


class Control:
    """The worker's end. Calls `on_message` with the parent's messages, `on_nonsense` with the exception for an
    invalid one, and `on_end` when the parent has closed its end. Use it from the event loop's thread."""

    def __init__(
        self,
        *,
        on_message: Callable[[dict[str, Any]], None],
        on_nonsense: Callable[[Exception], None],
        on_end: Callable[[], None],
    ) -> None:
        self._on_message = on_message
        self._on_nonsense = on_nonsense
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._loop.add_reader(self._ours.fileno(), self._on_readable)

    def ask_for(self, child: Child, cpu_seconds: float) -> None:
        """Make the parent fork this child. Raises OSError if the parent no longer reads."""
        request = FORK.pack(child.slot, max(1, round(cpu_seconds + 0.5)))
        socket.send_fds(self._ours, [request], [child.theirs.fileno()])

    def teach(self, modules: Sequence[str]) -> None:
        """Make the parent import these for future children. Raises OSError if the parent no longer reads."""
        self._ours.send(json.dumps({"import": modules}).encode())

    def close(self) -> None:
        """The parent is gone. Read its last messages, since the zygote's report may arrive before them; a late
        `loaded` is ignored."""
        self._loop.remove_reader(self._ours.fileno())
        with contextlib.suppress(OSError):
            while data := self._ours.recv(_MESSAGE):
                with contextlib.suppress(*_NONSENSE):
                    if "loaded" not in (message := json.loads(data)):
                        self._on_message(message)
        self._ours.close()

    def _on_readable(self) -> None:
        try:
            data = self._ours.recv(_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._ours.fileno())
            self._on_end()
            return
        try:
            self._on_message(json.loads(data))
        except _NONSENSE as error:
            self._on_nonsense(error)


def read_refusal(told: dict[str, Any]) -> tuple[ExitReason, RunError]:
    """Why a script was not loaded. An exception for an invalid message counts as nonsense."""
    error = RunError(
        message=str(told["message"])[:4096], type=str(told["type"])[:200], traceback=str(told["traceback"])[:8192]
    )
    return _LOAD_REASONS.get(str(told.get("reason", "")), ExitReason.SCRAPER_INVALID), error


def read_exit(told: dict[str, Any]) -> Exit:
    """How a child ended. An exception for an invalid message counts as nonsense."""
    return Exit(
        status=min(max(int(told["status"]), -1), 0xFFFF),
        cpu_ms=_amount(told.get("cpu", 0)) * 1000,
        peak_kb=_amount(told.get("rss_kb", 0)),
        output=str(told.get("output", ""))[:8192],
    )


def _amount(value: object) -> float:
    """A plausible number from an untrusted process. Raises ValueError or TypeError for any other."""
    number = float(value)  # type: ignore[arg-type]
    if not 0 <= number < 1e12:
        raise ValueError(f"{number} is no amount")
    return number
