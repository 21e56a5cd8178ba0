"""The worker's handle on one child: its wire, its process, and how to judge its exit."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable
from itertools import islice

import msgspec
from msgspec import Struct

from scrapeyard.model import ExitReason, RunError
from scrapeyard.sandbox.handles.frames import Frame, Head, Ready, parse
from scrapeyard.sandbox.port import Verdict
from scrapeyard_sdk import wire

_CREDENTIALS = struct.Struct("iII")
_READ = 64 * 1024
"""Bytes read at once. The C library maps fresh memory for 128 KB or more, which takes longer than the read."""
_LAST_READS = 64
"""More than a socket's buffer holds."""
_LARGE = 32 * 1024
"""Maximum bytes of a raw part that waits for others, so that they are sent together."""
_PARTS = 64
"""Buffers in one call of `sendmsg`."""


class Exit(Struct, frozen=True, kw_only=True):
    """How a child's process ended, as its parent reports it."""

    status: int = -1
    """The status from `waitpid`; -1 if its parent is gone too."""
    cpu_ms: float = 0.0
    peak_kb: float = 0.0
    output: str = ""

    @property
    def signal(self) -> int:
        """The signal that ended it, or 0."""
        return os.WTERMSIG(self.status) if self.status >= 0 and os.WIFSIGNALED(self.status) else 0


class Child:
    """A process that waits for a run, or runs it. Call all methods from the event loop's thread.

    The kernel identifies the other end: with SO_PASSCRED every message carries the sender's process id, translated to
    our pid namespace, and a process without capabilities cannot forge it.
    """

    def __init__(self, slot: int, on_ready: Callable[["Child"], None]) -> None:
        self.slot = slot
        self.pid = 0
        self.cpu_seconds = 0.0
        """CPU time at the last sample."""
        self.served = 0
        """Runs or items that it has served to their end."""
        self.first_peak_kb = 0.0
        """Peak memory after the first of them."""
        self.rested_at = 0.0
        """When it began to wait for another run, by the monotonic clock."""
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[Exit] = self._loop.create_future()
        self.on_frame: Callable[[Frame, bytes], None] = self._on_first_frame
        self.on_broken: Callable[[str], None] = lambda _: None
        self._on_ready = on_ready
        self._told = False
        self._pid_fd = -1
        self._decoder = wire.Decoder(parse, 64 * 1024)
        self._out: deque[bytes | memoryview] = deque()
        self._is_due = False
        """Whether what is queued is written before the loop looks for news again."""
        self.unread = 0
        """Bytes sent to the child that it has not read yet, but for what the socket holds."""
        self.on_unread: Callable[[], None] = lambda: None
        """Called after `unread` has changed."""
        self._drained = asyncio.Event()
        self._drained.set()
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._sock: socket.socket | None = ours
        self._loop.add_reader(ours.fileno(), self._on_readable)

    @property
    def alive(self) -> bool:
        """Whether its process has not been reported gone."""
        return not self.exited.done()

    @property
    def open(self) -> bool:
        """Whether its wire can still be used."""
        return self._sock is not None

    def allow_frames(self, max_bytes: int) -> None:
        """Set the maximum size of frames from now on."""
        self._decoder = wire.Decoder(parse, max_bytes)

    def send(self, head: Head, raw: bytes = b"") -> None:
        """Send a frame, or queue it if the child does not read; use `drained` before the next large one."""
        if self._sock is not None:
            self._queue(head, raw)
            self._write()

    def send_soon(self, head: Head, raw: bytes = b"") -> None:
        """The same, together with all that is sent before the event loop looks for news again: one call of the system
        and one waking of the child, however many pages have come. A large frame goes at once, so that `unread` tells
        whether the child keeps up."""
        if len(raw) > _LARGE:
            self.send(head, raw)
        elif self._sock is not None:
            self._queue(head, raw)
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._write)

    def _queue(self, head: Head, raw: bytes) -> None:
        prefix = _prefix(head, len(raw))
        self._out.append(prefix)
        if raw:
            self._out.append(raw)
        self.unread += len(prefix) + len(raw)

    async def drained(self) -> None:
        """Wait until the child has read everything sent, or is gone."""
        await self._drained.wait()

    def finish(self) -> None:
        """Its process is gone: read what it sent before, then close. Does not wait for others that hold its end."""
        for _ in range(_LAST_READS):
            if self._sock is None or not self._on_readable():
                break
        self._broken("")

    def kill(self) -> None:
        """Kill its process and the group it leads, at once. May be called twice."""
        if self._pid_fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pid_fd, signal.SIGKILL)
                os.killpg(self.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Close our end of the wire; an idle child then exits by itself. May be called twice."""
        if self._sock is not None:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
            self._sock = None
        self._drop_unread()
        self._drained.set()

    def reap(self, end: Exit) -> None:
        """Record that the process is gone, as reported by its parent or known otherwise."""
        if self._pid_fd >= 0:
            os.close(self._pid_fd)
            self._pid_fd = -1
        if not self.exited.done():
            self.exited.set_result(end)

    def _on_readable(self) -> bool:
        """Whether there was something to read."""
        if self._sock is None:
            return False
        try:
            data, ancillary, _, _ = self._sock.recvmsg(_READ, socket.CMSG_SPACE(_CREDENTIALS.size))
        except BlockingIOError:
            return False
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._broken("")
            return False
        if not self.pid and self.alive:
            self._learn_pid(ancillary)
        self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        try:
            for frame, raw in self._decoder.feed(data):
                self.on_frame(frame, raw)
        except wire.WireError as error:
            self._broken(str(error))

    def _learn_pid(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
                with contextlib.suppress(ProcessLookupError):
                    self._pid_fd = os.pidfd_open(pid)
                    self.pid = pid

    def _on_first_frame(self, frame: Frame, _raw: bytes) -> None:
        if not isinstance(frame, Ready) or frame.version != wire.VERSION or not self.pid:
            self._broken("the child did not begin with `ready`")
            return
        self.on_frame = self._on_early_frame
        self._on_ready(self)

    def _on_early_frame(self, _frame: Frame, _raw: bytes) -> None:
        self._broken("the child spoke before it had a run")

    def _broken(self, why: str) -> None:
        self.close()
        if not self._told:
            self._told = True
            self.on_broken(why)

    def _write(self) -> None:
        self._is_due = False
        if self._sock is None or not self._out:
            return
        try:
            sent = self._sock.sendmsg(islice(self._out, _PARTS))
        except BlockingIOError:
            sent = 0
        except OSError:  # it reads no more, but earlier data may still be unread; reading will detect its end
            self._drop_unread()
            sent = 0
        self._advance(sent)
        if self._out:
            self._drained.clear()
            self._loop.add_writer(self._sock.fileno(), self._write)
        elif not self._drained.is_set():
            self._loop.remove_writer(self._sock.fileno())
            self._drained.set()
        self.on_unread()

    def _advance(self, sent: int) -> None:
        """Forget bytes that the socket has taken."""
        self.unread -= sent
        while self._out and sent >= len(self._out[0]):
            sent -= len(self._out.popleft())
        if sent:
            self._out[0] = memoryview(self._out[0])[sent:]

    def _drop_unread(self) -> None:
        """Nothing more can be sent: free what waits now, not when the collector finds it."""
        if self._out:
            self._out.clear()
            self.unread = 0
            self.on_unread()


def _prefix(head: Head, raw_length: int) -> bytes:
    """As `wire.prefix`, in a fifth of the time. Text that UTF-8 has no bytes for is left to the wire's own encoder."""
    try:
        packed = msgspec.json.encode(head)
    except (ValueError, OverflowError, TypeError):
        return wire.prefix(msgspec.to_builtins(head), raw_length)
    return wire.prefix_of(packed, raw_length)


_SIGNAL_REASONS: dict[int, tuple[ExitReason, str]] = {
    signal.SIGXCPU: (ExitReason.CPU_LIMIT, "the run used its processor time"),
    signal.SIGXFSZ: (ExitReason.DISK_LIMIT, "the run wrote a file larger than limits.disk_mb"),
}


def judge_exit(end: Exit, cpu_limit: float) -> Verdict:
    """The verdict on a child that died without sending a result."""
    reason, message = ExitReason.CRASHED, "the child ended without a result"
    if end.signal in _SIGNAL_REASONS:
        reason, message = _SIGNAL_REASONS[end.signal]
    elif end.signal == signal.SIGKILL and end.cpu_ms >= cpu_limit * 1000:
        reason, message = ExitReason.CPU_LIMIT, "the run used its processor time"
    elif end.signal:
        message = f"the child was ended by {_signal_name(end.signal)}"
    error = RunError(message=message, details={"output": end.output} if end.output else {})
    return Verdict(exit_reason=reason, error=error, cpu_ms=end.cpu_ms, memory_mb=end.peak_kb / 1024)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def bounded(fields: dict[str, object]) -> dict[str, object]:
    """At most twenty fields, each a short plain value."""
    return {key[:100]: _plain(value) for key, value in list(fields.items())[:20]}


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    return str(value)[:2000]
