"""This machine's own limit: how often a bare warm parent can fork a child that exits at once.

Run as a program it is one such parent: libraries imported, then, on a line from stdin, forking for the seconds it was
told and printing forks per second.
"""

import gc
import importlib
import os
import subprocess
import sys
import time

from benchmarks.processes import ROOT, StartFailed, clean_environment

LIBRARIES = ("asyncio", "json", "selectolax.lexbor", "httpx")
"""What the parent holds: the same that the fresh interpreter of the comparison imports."""


def fork_limit(*, parents: int = 2, seconds: float = 2.0) -> float:
    """Forks per second of `parents` parents at once, all together. Raises StartFailed when one dies."""
    started: list[subprocess.Popen[str]] = []
    try:
        for _ in range(parents):
            started.append(_start(seconds))
        for parent in started:
            _expect_ready(parent)
        for parent in started:
            _say_go(parent)
        return sum(float(parent.communicate(timeout=seconds + 30)[0]) for parent in started)
    finally:
        for parent in started:
            parent.kill()
            parent.wait()


def _start(seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.forks", str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=clean_environment(),
        text=True,
    )


def _expect_ready(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    if not parent.stdout.readline():
        raise StartFailed("a forking parent ended before it began")


def _say_go(parent: subprocess.Popen[str]) -> None:
    assert parent.stdin is not None
    parent.stdin.write("go\n")
    parent.stdin.flush()


def _forks_per_second(seconds: float) -> float:
    began = time.perf_counter()
    until = began + seconds
    forks = 0
    while time.perf_counter() < until:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        forks += 1
    return forks / (time.perf_counter() - began)


def main() -> None:
    """Be one parent."""
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    print("ready", flush=True)
    sys.stdin.readline()
    print(_forks_per_second(float(sys.argv[1])), flush=True)


if __name__ == "__main__":
    main()
