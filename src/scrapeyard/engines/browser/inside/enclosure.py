"""Namespaces for the browser, and the supervision of everything that the host process starts. Standard library only.

    worker ── starts ──> supervisor ── forks ──> [ init of a pid namespace ── forks ──> ] host ──> node ──> browser

In namespaces of its own the browser has no network but loopback, and dies as a whole when its init does. Without them
the supervisor adopts whatever is orphaned, and kills it.
"""

import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from scrapeyard import libc
from scrapeyard.engines.browser.wire import STOP

_USER = 1000
"""As the browser sees itself. Chromium refuses to build its sandbox for user 0."""
_SIOCSIFFLAGS, _IFF_UP_AND_RUNNING = 0x8914, 0x1 | 0x40


def find_obstacle(namespace: str) -> str:
    """Why there are no namespaces; empty: there are. Tries in a child, because a half-made namespace cannot be left."""
    if namespace == "off":
        return "switched off by browser.namespace"
    if sys.platform != "linux":
        return "only Linux has namespaces"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _leave()
        except OSError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:  # noqa: PTH123 - a descriptor, not a path
        obstacle = pipe.read(500).decode(errors="replace")
    os.waitpid(child, 0)
    return obstacle


def run_supervised(work: Callable[[], None], *, enclosed: bool) -> NoReturn:
    """Do the work in a process below, in namespaces of its own or not, and leave nothing of it. Ends this process."""
    if enclosed:
        _leave()
        _supervise(lambda: _begin_init(work))
    _supervise(work)


def _leave() -> None:
    """Leave for new namespaces. The next process that is forked is the init of the new pid namespace."""
    user, group = os.getuid(), os.getgid()
    libc.unshare(libc.NEWUSER | libc.NEWNET | libc.NEWPID | libc.NEWIPC)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_USER} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{_USER} {group} 1")
    with socket.socket() as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", _IFF_UP_AND_RUNNING, b""))


def _begin_init(work: Callable[[], None]) -> NoReturn:
    with suppress(OSError):  # a container may hide parts of /proc, and then none may be mounted; the old one serves
        libc.unshare(libc.NEWNS)
        libc.mount("none", "/", flags=libc.MS_REC | libc.MS_PRIVATE)
        libc.mount("proc", "/proc", "proc", libc.MS_NOSUID | libc.MS_NODEV | libc.MS_NOEXEC)
    libc.drop_capabilities()
    _supervise(work, is_init=True)


def _supervise(work: Callable[[], None], *, is_init: bool = False) -> NoReturn:
    """Run the work in a child and reap orphans meanwhile, until it ends, our parent ends or `STOP` comes."""
    awaited = {STOP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    if sys.platform == "linux":
        libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
        libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL if is_init else STOP)
    child = os.fork()
    if child == 0:
        _work(work, awaited)
    while _is_running(child) and signal.sigwait(awaited) != STOP:
        pass
    if not is_init:  # with an init the kernel kills all others
        _kill_children()
    os._exit(0)


def _work(work: Callable[[], None], blocked: set[signal.Signals]) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
    if sys.platform == "linux":
        libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def _is_running(child: int) -> bool:
    """Reaps whatever has ended."""
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if ended == 0:
            return True
        if ended == child:
            return False


def _kill_children() -> None:
    """Orphans of those that are killed come to us, so this goes on until none is left."""
    with suppress(ChildProcessError):
        while True:
            for child in children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def children() -> list[int]:
    """Of this process."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone
        if name.isdigit():
            with suppress(OSError):
                fields = Path(f"/proc/{name}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
                if int(fields[1]) == os.getpid():
                    found.append(int(name))
    return found
