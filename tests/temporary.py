"""One temporary folder for a whole test run. A run that leaves a file or a process in it fails.

It is in memory where there is enough, because databases, environments and Git take a third of the system's time to
write to a disk. `TMPDIR` names another place.

pytest keeps the folders of failed tests there; the folder of a run without failures is removed.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.leaks import Process, processes, until
from tests.services import postgres, seaweed, warm

_FOLDER = pytest.StashKey[Path]()
_TRACKER = "multiprocessing.resource_tracker"
"""A process of Python's own, which ends with the one that has it."""
_MEMORY = Path("/dev/shm")
_ENOUGH = 8 << 30
"""Bytes of memory that must be free. A run has less than 3 GB of files at any moment; its processes need the rest."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder and let every process of the run use it. Workers of pytest-xdist get it from their controller."""
    if hasattr(config, "workerinput"):
        return
    # Short: paths of sockets have 108 bytes.
    folder = config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="sy-", dir=_place()))
    folder.chmod(0o755)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    os.environ["XDG_CACHE_HOME"] = str(folder / "pytest-of-caches")  # a command that caches must not use the user's own


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when something is left. The workers have ended by now.

    What a worker shares among its tests is closed here, not at its exit: pytest-xdist kills a worker whose exit takes
    longer than ten seconds, as it may on a busy machine.
    """
    warm.close()
    postgres.close()
    seaweed.close()
    folder = session.config.stash.get(_FOLDER, None)
    if folder is None:
        return
    try:
        until(lambda: not _left(folder), "the run leaves nothing behind", 30)
    except AssertionError:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        session.config.get_terminal_writer().line(f"\nleft behind in {folder}: {_left(folder)}", red=True)
        _remove_left(folder)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(exitstatus: int, config: pytest.Config) -> None:
    """Say where the folders of failed tests are."""
    if exitstatus and _FOLDER in config.stash:
        config.get_terminal_writer().line(f"folders of failed tests: {config.stash[_FOLDER]}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder unless a failed test has its files there."""
    folder = config.stash.get(_FOLDER, None)
    if folder is not None and not any(folder.glob("pytest-of-*/pytest-0/*")):
        shutil.rmtree(folder)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, whose paths have 108 bytes at most: `tmp_path` has the name of the test in its own."""
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        yield Path(folder)


def _place() -> Path | None:
    """Where the folder is made; None leaves it to Python."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return None
    there = os.statvfs(_MEMORY)
    runs_programs = not there.f_flag & os.ST_NOEXEC
    free = min(there.f_bavail * there.f_frsize, _free_memory())
    return _MEMORY if runs_programs and free >= _ENOUGH else None


def _free_memory() -> int:
    """Bytes that programs can have, also within the limit of a container."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    free = next(int(words[1]) << 10 for words in fields if words[0] == "MemAvailable:")
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is none, or no such file
            free = min(free, int((Path("/sys/fs/cgroup") / limit).read_text()))
    return free


def _left(folder: Path) -> list[str]:
    """Files in the folder but pytest's own, and processes that were given the folder."""
    return [path.name for path in _files(folder)] + [process.words for process in _processes(folder)]


def _remove_left(folder: Path) -> None:
    """An interrupted run ends before its fixtures: its servers must not outlive it."""
    for process in _processes(folder):
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    until(lambda: not _processes(folder), "what was left has ended", 30)
    for path in _files(folder):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith("pytest-of-")]


def _processes(folder: Path) -> list[Process]:
    others = (each for each in processes().values() if each.pid != os.getpid() and _TRACKER not in each.words)
    return [process for process in others if process.lives and _was_given(process.pid, folder)]


def _was_given(pid: int, folder: Path) -> bool:
    try:
        return os.fsencode(folder) in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # it is gone, or another user's
