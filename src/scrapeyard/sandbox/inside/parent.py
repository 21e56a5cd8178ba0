"""A scraper's parent: loads the script once, inside its walls, and forks a child for each run. Standard library, SDK.

From the moment the script is loaded, this process is as untrusted as the script: the worker checks everything it says,
and kills it from outside. Inside a pid namespace it is process 1, so its death takes every descendant along.

    worker → parent    slot and CPU seconds (`plan.FORK`) with the child's wire attached · {"import": [names]}
    parent → worker    {"loaded": kind} or {"refused": {type, message, traceback}} once · {"exited": slot, "status": …}
"""

import contextlib
import errno
import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from scrapeyard import libc
from scrapeyard.sandbox.inside import folders
from scrapeyard.sandbox.walls import walls
from scrapeyard.sandbox.walls.plan import FORK, Plan
from scrapeyard_sdk import child
from scrapeyard_sdk.child.explain import explain
from scrapeyard_sdk.child.run import run_child
from scrapeyard_sdk.child.warming import nothing_async, warm_up
from scrapeyard_sdk.script import Script, load

_MESSAGE = 64 * 1024
_ONE_DESCRIPTOR = socket.CMSG_LEN(4)
_DESCRIPTOR = struct.Struct("i")
_EXITED = b'{"exited": %d, "status": %d, "cpu": %f, "rss_kb": %d, "output": %b}'
_TAIL = 8 * 1024
"""Maximum bytes reported of what a crashed child wrote to descriptors 1 and 2."""


def serve(control: socket.socket, plan: Plan, base_bytes: int) -> None:
    """Raise the walls, load the script, then fork children until the worker closes its end."""
    os.environ.clear()
    os.environ.update(plan.environment)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    try:
        walls.enclose(replace(plan, data_bytes=base_bytes + plan.data_bytes))
        wakeup = os.pipe()
        child_walls = walls.prepare_children(plan)
    except OSError as error:
        _say(control, walls=str(error))
        return
    if _is_closed(control):  # its death signal was not set while the walls changed the user, so it may have been missed
        return
    os.chdir(plan.work_folder)
    os.environ["HOME"] = os.environ["TMPDIR"] = plan.work_folder
    if plan.walls:
        sys.meta_path.insert(0, _Semaphores)
    try:
        _add_packages(plan.packages)
        script = load(plan.script_folder, plan.entry)
    except BaseException as error:  # noqa: BLE001 - import-time code may raise anything, SystemExit included
        _say(control, refused=explain(error, plan.script_folder))
        return
    if script.is_async:
        with contextlib.suppress(Exception):  # the script may have replaced what this uses; its children will tell
            warm_up(nothing_async)
    faulthandler.enable(2)  # by number: each child has its own file there
    gc.collect()
    gc.freeze()
    _say(control, loaded=script.kind)
    Parent(control, wakeup, plan, script, child_walls).run()


class _Semaphores:
    """Gives scripts semaphores that need no `/dev/shm`, for `multiprocessing.Lock` and `ThreadPool`."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """None for every module but `_multiprocessing`."""
        if name != "_multiprocessing":
            return None
        return importlib.util.spec_from_file_location(name, os.path.join(child.__path__[0], "semaphores.py"))  # noqa: PTH118


def _add_packages(places: tuple[str, ...]) -> None:
    """Add packages as `site` would at startup, so that `.pth` files run inside the walls."""
    if places:
        import site  # noqa: PLC0415

        for place in places:
            site.addsitedir(place)


def _is_closed(control: socket.socket) -> bool:
    """Whether the worker is gone."""
    waits = select.poll()
    waits.register(control.fileno(), 0)
    return bool(waits.poll(0))


def _say(control: socket.socket, **message: Any) -> None:
    _send(control, json.dumps(message, ensure_ascii=True).encode())


def _send(control: socket.socket, message: bytes) -> None:
    try:
        control.send(message)
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)


class Parent:
    """Forks, reaps and cleans up.

    After each fork, every page of memory that this process or the child writes to is copied, and using a Python object
    writes its count of references. So both do their work in few functions.
    """

    def __init__(
        self,
        control: socket.socket,
        wakeup: tuple[int, int],
        plan: Plan,
        script: Script,
        child_walls: walls.ChildWalls,
    ) -> None:
        self._control = control
        self._wakeup, self._wake = wakeup
        self._folder = plan.work_folder
        self._folder_variables = [libc.EnvironmentVariable(name, len(self._folder) + 30) for name in ("HOME", "TMPDIR")]
        self._leave: list[walls.Call] = [
            (signal.set_wakeup_fd, (-1,)),
            (os.setpgid, (0, 0)),  # a new session would make the kernel create and destroy a scheduling group
            *((os.closerange, each) for each in _ranges(control.fileno(), *wakeup, *child_walls.descriptors)),
        ]
        if not plan.has("namespaces"):
            self._leave.append((libc.bare_prctl, (libc.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)))
        self._script = script
        self._child_walls = child_walls
        self._slots: dict[int, int] = {}

    def run(self) -> None:
        """Until the worker closes its end."""
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        waits = select.poll()
        waits.register(self._control.fileno(), select.POLLIN)
        waits.register(self._wakeup, select.POLLIN)
        gc.disable()  # children inherit it; what is made here is freed by its count of references
        while True:
            for descriptor, _ in waits.poll():
                if descriptor == self._wakeup:
                    os.read(self._wakeup, 4096)
                    self._reap()
                elif not self._serve_one():
                    return

    def _serve_one(self) -> bool:
        """Whether there was a message: the worker's end is still open."""
        message, attached, flags, _ = self._control.recvmsg(_MESSAGE, _ONE_DESCRIPTOR)
        if attached:
            slot, cpu_seconds = FORK.unpack(message)
            self._fork(slot, cpu_seconds, *_DESCRIPTOR.unpack(attached[0][2]))
        elif flags & socket.MSG_CTRUNC:  # the script has all descriptors, so the wire was not received
            _say(self._control, exited=FORK.unpack(message)[0], status=-1, output=os.strerror(errno.EMFILE))
        elif message:
            self._learn(json.loads(message)["import"])
        return bool(message)

    def _learn(self, names: list[str]) -> None:
        """Import modules that a run imported, so that later children have them from the start."""
        self._set_folder(self._folder)
        for name in names:
            try:
                importlib.import_module(name)
            except BaseException:  # noqa: BLE001, S112 - it is the script's own code; a child will meet it again
                continue
        gc.collect()
        gc.freeze()

    def _fork(self, slot: int, cpu_seconds: int, fd: int) -> None:
        wire = socket.SocketType(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        folder = f"{self._folder}/{slot}"
        opened: list[int] = []
        try:
            calls = self._first_calls(folder, cpu_seconds, opened)
            pid = os.fork()
        except OSError as error:
            _remove(folder)
            _say(self._control, exited=slot, status=-1, output=str(error))
        else:
            if pid == 0:
                _be_child(calls, wire, self._script)
            self._slots[pid] = slot
        wire.close()
        for descriptor in opened:
            os.close(descriptor)

    def _first_calls(self, folder: str, cpu_seconds: int, opened: list[int]) -> list[walls.Call]:
        """What a child calls first: it leaves its parent's place, and goes to its own folder and inside its walls. What
        is opened for it is added to `opened`. Raises OSError.

        Looking functions and attributes up writes to memory that the child would have to copy, so it is done here.
        """
        os.mkdir(folder, 0o700)  # noqa: PTH102 - pathlib costs more than the call
        self._set_folder(folder)
        output = os.open(f"{folder}/.output", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        opened.append(output)
        enclosing, for_walls = walls.enclose_child(self._child_walls, folder, cpu_seconds)
        opened += for_walls
        calls = [*self._leave, (os.chdir, (folder,)), (os.dup2, (output, 1)), (os.dup2, (output, 2)), *enclosing]
        for descriptor in opened:
            calls.append((os.close, (descriptor,)))
        return calls

    def _set_folder(self, folder: str) -> None:
        """The folder that HOME and TMPDIR name."""
        path = folder.encode()
        for variable in self._folder_variables:
            variable.set(path)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            slot = self._slots.pop(pid, None)
            if slot is None:
                continue
            folder = f"{self._folder}/{slot}"
            cpu = usage.ru_utime + usage.ru_stime
            output = json.dumps(_tail(folder)).encode() if status else b'""'
            _remove(folder)
            _send(self._control, _EXITED % (slot, status, cpu, usage.ru_maxrss, output))


def _be_child(calls: list[walls.Call], wire: socket.SocketType, script: Script) -> NoReturn:
    try:
        for function, arguments in calls:
            function(*arguments)
        run_child(wire, script)
    finally:
        os._exit(1)


def _ranges(*descriptors: int) -> list[tuple[int, int]]:
    """First and end of each run of neighbours, for `os.closerange`."""
    found: list[tuple[int, int]] = []
    for each in sorted(descriptors):
        if found and found[-1][1] == each:
            found[-1] = (found[-1][0], each + 1)
        else:
            found.append((each, each + 1))
    return found


def _remove(folder: str) -> None:
    """Remove a run's folder. Most hold nothing but the output file."""
    try:
        os.unlink(f"{folder}/.output")  # noqa: PTH108 - pathlib costs more than the call
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        folders.remove(folder)


def _tail(folder: str) -> str:
    """Read the end of the output file without following links: a link could lead to the folder of another run."""
    try:
        fd = os.open(f"{folder}/.output", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.pread(fd, _TAIL, max(0, os.fstat(fd).st_size - _TAIL)).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
