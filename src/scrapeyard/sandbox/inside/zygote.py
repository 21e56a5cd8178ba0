"""The zygote: a small warm process that forks a walled parent for each scraper. Standard library and SDK only.

It is started once by the worker, outside its event loop, and never runs a script itself. It has one thread. When the
worker ends, its socket closes and the zygote exits; the kernel then kills its children, as they requested.

    worker → zygote    {"do": "parent", "id": n, "plan": …} with the parent's socket attached
    zygote → worker    {"hello": walls} once · {"made": n, "pid": …} · {"gone": n, "status": …}
                       · {"failed": n, "why": …}
"""

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import NoReturn

from scrapeyard import libc
from scrapeyard.sandbox.inside.parent import serve
from scrapeyard.sandbox.walls import walls
from scrapeyard.sandbox.walls.plan import Plan

_MESSAGE = 128 * 1024
_STRAYS_EVERY = 0.5


def main() -> None:
    """Serve the worker on the socket whose descriptor is the first argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM):  # these go to the whole group; the worker decides what ends
        signal.signal(number, signal.SIG_IGN)
    found = walls.probe()
    _warm_up()
    Zygote(control, found).run()


def _warm_up() -> None:
    """Import and do what every child needs, once, and keep the collector from touching it in every child.

    Nothing more is imported, because each fork pays for what is loaded. A scraper's parent loads what its script needs.
    """
    from scrapeyard_sdk.child.warming import nothing, warm_up  # noqa: PLC0415

    for script in nothing:
        warm_up(script)
    gc.collect()
    gc.freeze()


class Zygote:
    """Forks parents on request and reports their deaths."""

    def __init__(self, control: socket.socket, found: dict[str, str]) -> None:
        self._control = control
        self._found = found
        self._parents: dict[int, int] = {}
        self._pid_space = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._base_bytes = _data_bytes()

    def run(self) -> None:
        """Until the worker closes its end."""
        if not self._found["namespaces"] and os.geteuid() != 0:
            walls.enter_user_namespace()
        self._say(hello=self._found, pid=os.getpid(), rss_bytes=_resident_bytes())
        wakeup, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self._control.fileno(), wakeup], [], [], _STRAYS_EVERY)
            if wakeup in ready:
                os.read(wakeup, 4096)
                self._reap()
            self._kill_strays()
            if self._control.fileno() in ready and not self._serve_one():
                return

    def _serve_one(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self._control, _MESSAGE, 1)
        if not message:
            return False
        request = json.loads(message)
        try:
            plan = Plan.decode(request["plan"])
            self._fork_parent(request["id"], plan, fds[0])
        except OSError as error:
            self._say(failed=request["id"], why=str(error))
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _fork_parent(self, number: int, plan: Plan, fd: int) -> None:
        if not plan.has("namespaces"):
            pid = self._fork(plan, fd)
        elif os.geteuid() == 0:
            pid = self._fork_and_return(plan, fd)
        else:
            pid = self._fork_through_helper(plan, fd)
        self._parents[pid] = number
        self._say(made=number, pid=pid)

    def _fork(self, plan: Plan, fd: int) -> int:
        pid = os.fork()
        if pid == 0:
            self._become_parent(plan, fd)
        return pid

    def _fork_and_return(self, plan: Plan, fd: int) -> int:
        """Fork into a new pid namespace, then return to our own for the next fork."""
        libc.unshare(libc.NEWPID)
        try:
            return self._fork(plan, fd)
        finally:
            libc.setns(self._pid_space, libc.NEWPID)

    def _fork_through_helper(self, plan: Plan, fd: int) -> int:
        """Without root a process cannot return from a new pid namespace, so a helper enters it, forks the parent, ends.

        The parent becomes our child when the helper is gone. It waits until then, because its parent-death signal would
        otherwise refer to the helper. Raises OSError.
        """
        told, tell = os.pipe()
        gate, hold = os.pipe()
        helper = os.fork()
        if helper == 0:
            self._help(plan, fd, tell, gate, hold)
        os.close(tell)
        os.close(gate)
        with open(told, "rb") as answer:  # noqa: PTH123 - a descriptor, not a path
            words = answer.read(500).decode()
        os.waitpid(helper, 0)
        os.close(hold)
        if not words.isdecimal():
            raise OSError(f"no new pid namespace: {words}")
        return int(words)

    def _help(self, plan: Plan, fd: int, tell: int, gate: int, hold: int) -> NoReturn:
        try:
            os.close(hold)
            libc.unshare(libc.NEWPID)
            pid = os.fork()
            if pid == 0:
                os.close(tell)
                os.read(gate, 1)
                self._become_parent(plan, fd)
            os.write(tell, str(pid).encode())
        except OSError as error:
            os.write(tell, str(error).encode())
        finally:
            os._exit(0)

    def _become_parent(self, plan: Plan, fd: int) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()  # a signal to the parent's group must not reach our group
            kept = os.dup2(fd, 3)
            os.closerange(4, 4096)
            serve(socket.socket(fileno=kept), plan, self._base_bytes)
            status = 0
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._parents.pop(pid, None)
            if number is not None:
                self._say(gone=number, status=status)

    def _kill_strays(self) -> None:
        """Kill processes that a script left by forking twice; without a pid namespace they become our children."""
        with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", "rb") as children:  # noqa: PTH123
            for pid in map(int, children.read().split()):
                if pid not in self._parents:
                    os.kill(pid, signal.SIGKILL)

    def _say(self, **message: object) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)


def _data_bytes() -> int:
    """Private writable memory of this process, as RLIMIT_DATA counts it."""
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - before pathlib is warm
        return int(statm.read().split()[5]) * resource.getpagesize()


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
