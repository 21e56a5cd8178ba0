"""Checks of the machine: Python, kernel, limits, disk."""

import importlib.util
import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from scrapeyard.cli.doctor.findings import Finding, fail, ok, warn
from scrapeyard.cli.text import size

LEAST_PYTHON = (3, 11)
GOOD_FILES = 4096
LEAST_FILES = 256
GOOD_DISK = 1024**3
LEAST_DISK = 64 * 1024**2


def check_machine() -> Iterator[Finding]:
    """Python, kernel, event loop, open files."""
    yield _python(sys.version_info[:3])
    yield _kernel(platform.system(), platform.release())
    yield _event_loop()
    yield _open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def check_data_dir(folder: Path) -> Finding:
    """Whether it can be written, or made; and how much room there is."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        who = f"{there} cannot be written by this user"
        return fail("data dir", who, "choose another with --data-dir or SCRAPEYARD_DATA_DIR, or change its owner")
    free = shutil.disk_usage(there).free
    made = "" if there == folder else ", made at the first start"
    words = f"{folder}: {size(free)} free{made}"
    if free < LEAST_DISK:
        return fail("data dir", words, "make room: runs can no longer be recorded")
    return ok("data dir", words) if free >= GOOD_DISK else warn("data dir", words, "make room, or lower retention")


def _python(version: tuple[int, ...]) -> Finding:
    words = ".".join(map(str, version))
    if version < LEAST_PYTHON:
        return fail("python", words, "install Python 3.11 or newer")
    return ok("python", f"{words} at {sys.executable}")


def _kernel(system: str, release: str) -> Finding:
    if system != "Linux":
        return fail("kernel", f"{system} {release}", "the walls around children need Linux")
    return ok("kernel", f"{system} {release}, {platform.machine()}")


def _event_loop() -> Finding:
    if importlib.util.find_spec("uvloop") is None:
        return warn("event loop", "asyncio's own", "install uvloop: it halves the cost of a request")
    return ok("event loop", "uvloop")


def _open_files(soft: int) -> Finding:
    if soft == resource.RLIM_INFINITY or soft >= GOOD_FILES:
        return ok("open files", "no limit" if soft == resource.RLIM_INFINITY else f"limit {soft}")
    remedy = f"raise it: ulimit -n {GOOD_FILES}, or LimitNOFILE in the service's unit"
    return (fail if soft < LEAST_FILES else warn)("open files", f"limit {soft}", remedy)
