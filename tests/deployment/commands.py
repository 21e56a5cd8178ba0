"""Commands that tests of deployments run: what they say when they fail, and programs that end with their context."""

import contextlib
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.leaks import PATIENCE


def do(*command: str, **options: Any) -> str:
    """Run a command; its output. Raises AssertionError with its last words if it fails."""
    done = subprocess.run(command, stdout=-1, stderr=-1, text=True, timeout=1800, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command[-6:])}: {done.stderr[-3000:] or done.stdout[-3000:]}"
    return done.stdout


def missing(*tools: str) -> str:
    """What a test lacks here; empty if nothing."""
    if os.geteuid() != 0:
        return "only root may do that"
    absent = [tool for tool in tools if not shutil.which(tool)]
    return f"no {', '.join(absent)}; apt-get install {' '.join(absent)}" if absent else ""


@contextlib.contextmanager
def started(command: list[str], log: Path | None = None) -> Iterator[None]:
    """A program that ends with this context, by SIGTERM."""
    with open(log or os.devnull, "wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE)


def answers(url: str) -> bool:
    """Whether it answers 200."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
