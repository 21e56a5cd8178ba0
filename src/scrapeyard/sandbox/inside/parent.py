"""A scraper's parent: loads the script once, inside its walls, and forks a child for each run. Standard library, SDK.

From the moment the script is loaded, this process is as untrusted as the script: the worker checks everything it says,
and kills it from outside. Inside a pid namespace it is process 1, so its death takes every descendant along.

    worker → parent    {"fork": slot, "cpu": seconds} with the child's wire attached · {"import": [names]}
    parent → worker    {"loaded": kind} or {"refused": {type, message, traceback}} once · {"exited": slot, "status": …}
"""

import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from scrapeyard import libc
from scrapeyard.sandbox.inside import folders
from scrapeyard.sandbox.walls import walls
from scrapeyard.sandbox.walls.plan import Plan
from scrapeyard_sdk import child
from scrapeyard_sdk.child.explain import explain
from scrapeyard_sdk.child.run import run_child
from scrapeyard_sdk.script import Script, load

_MESSAGE = 64 * 1024
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
        import asyncio  # noqa: F401, PLC0415
    faulthandler.enable(2)  # by number: each child has its own file there
    gc.collect()
    gc.freeze()
    _say(control, loaded=script.kind)
    Parent(control, plan, script, child_walls).run()


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
    try:
        control.send(json.dumps(message, ensure_ascii=True).encode())
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)


class Parent:
    """Forks, reaps and cleans up."""

    def __init__(self, control: socket.socket, plan: Plan, script: Script, child_walls: walls.ChildWalls) -> None:
        self._control = control
        self._plan = plan
        self._script = script
        self._child_walls = child_walls
        self._slots: dict[int, int] = {}

    def run(self) -> None:
        """Until the worker closes its end."""
        wakeup, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup = (wakeup, wake)
        while True:
            ready, _, _ = select.select([self._control.fileno(), wakeup], [], [])
            if wakeup in ready:
                os.read(wakeup, 4096)
                self._reap()
            if self._control.fileno() in ready:
                message, fds, _, _ = socket.recv_fds(self._control, _MESSAGE, 1)
                if not message:
                    return
                request = json.loads(message)
                if "import" in request:
                    self._learn(request["import"])
                else:
                    self._fork(request, fds)

    def _learn(self, names: list[str]) -> None:
        """Import modules that a run imported, so that later children have them from the start."""
        for name in names:
            try:
                importlib.import_module(name)
            except BaseException:  # noqa: BLE001, S112 - it is the script's own code; a child will meet it again
                continue
        gc.collect()
        gc.freeze()

    def _fork(self, request: dict[str, Any], fds: list[int]) -> None:
        slot = int(request["fork"])
        try:
            pid = os.fork()
        except OSError as error:
            _say(self._control, exited=slot, status=-1, output=str(error))
        else:
            if pid == 0:
                self._become_child(slot, fds[0], int(request["cpu"]))
            self._slots[pid] = slot
        finally:
            for fd in fds:
                os.close(fd)

    def _become_child(self, slot: int, fd: int, cpu_seconds: int) -> NoReturn:
        try:
            gc.disable()
            signal.set_wakeup_fd(-1)
            for inherited in (*self._wakeup, self._control.detach()):
                os.close(inherited)
            os.setpgid(0, 0)  # a new session would make the kernel create and destroy a scheduling group
            if not self._plan.has("namespaces"):
                libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
            folder = f"{self._plan.work_folder}/{slot}"
            _enter_folder(folder)
            walls.enclose_child(self._child_walls, folder, cpu_seconds)
            run_child(socket.socket(fileno=fd), self._script)
        finally:
            os._exit(1)

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
            folder = f"{self._plan.work_folder}/{slot}"
            output = _tail(folder) if status else ""
            folders.remove(folder)
            cpu = usage.ru_utime + usage.ru_stime
            _say(self._control, exited=slot, status=status, cpu=cpu, rss_kb=usage.ru_maxrss, output=output)


def _enter_folder(folder: str) -> None:
    """The run's own folder: working directory, HOME, TMPDIR, and a file for what is written to bare descriptors."""
    os.mkdir(folder, 0o700)  # noqa: PTH102 - pathlib costs more than the call
    os.chdir(folder)
    os.environ["HOME"] = os.environ["TMPDIR"] = folder
    output = os.open(".output", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)


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
