"""A Docker engine with Compose in namespaces of its own, from Debian's packages. Root only.

Its bridges and packet filters are in its own network namespace, and its containers end with it. It reaches no registry:
images are loaded into it, and stand-ins are made of the same Debian.
"""

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import psutil

from tests.deployment.commands import do
from tests.leaks import PATIENCE, until

PACKAGES = (
    *("docker.io", "docker-cli", "docker-compose", "iptables", "iproute2", "ca-certificates"),
    *("busybox", "netcat-openbsd", "valkey-server", "valkey-tools", "postgresql-17", "prometheus"),
)
"""The engine, and the servers of the stand-ins."""
REPOSITORY = "/repo"
"""Where the engine finds the repository."""
_START = """
set -eu
mount --make-rprivate /
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/run"
mkdir -p "$0$2"
mount --bind "$1" "$0$2"
ip link set lo up
cd "$0"
pivot_root . mnt
cd /
umount -l /mnt
exec dockerd --exec-opt native.cgroupdriver=cgroupfs
"""
"""A chroot would not do: a command in a container would find itself in this machine's root."""


class DockerEngine:
    """Use it as a context; leaving it ends every container. Images and volumes stay in `folder`."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.root = folder / "root"
        self._folder = folder
        self._repository = repository
        self._stack = contextlib.ExitStack()
        self._inside = 0

    def install(self) -> None:
        """Make its Debian, once."""
        if not (self.root / "usr/sbin/dockerd").exists():
            shutil.rmtree(self.root, ignore_errors=True)
            words = ["--variant=minbase", f"--include={','.join(PACKAGES)}", "trixie", str(self.root)]
            do("debootstrap", *words)

    def __enter__(self) -> Self:
        log = self._stack.enter_context((self._folder / "dockerd.log").open("wb"))
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", _START]
        command += [str(self.root), str(self._repository), REPOSITORY]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(_end, process)
        try:
            self._inside = until(lambda: _first_child(process), "the engine begins")
            until(self._answers, "the engine answers")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def inside(self, *command: str) -> list[str]:
        """The command as it is run where the engine is."""
        where = [f"--target={self._inside}", "--mount", "--net", "--pid"]
        clean = ["env", "-i", f"--chdir={REPOSITORY}", "PATH=/usr/local/bin:/usr/sbin:/usr/bin", "HOME=/root"]
        return ["nsenter", *where, *clean, *command]

    def beside(self, *command: str) -> list[str]:
        """The command as a program of this machine runs it on the engine's network."""
        return ["nsenter", f"--target={self._inside}", "--net", *command]

    def do(self, *command: str, **options: Any) -> str:
        """Run a command beside the engine; its output. Raises AssertionError if it fails."""
        return do(*self.inside(*command), **options)

    def load(self, saving: list[str]) -> None:
        """Load the image that this command writes."""
        with subprocess.Popen(saving, stdout=subprocess.PIPE) as saved:
            self.do("docker", "load", stdin=saved.stdout)

    def _answers(self) -> bool:
        asked = self.inside("docker", "info")
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _first_child(process: subprocess.Popen[bytes]) -> int:
    assert process.poll() is None, "the engine did not begin: see dockerd.log"
    children = psutil.Process(process.pid).children()
    return children[0].pid if children else 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """The first process of the namespace stops its containers; the others end with it."""
    for child in psutil.Process(process.pid).children() if process.poll() is None else []:
        child.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()  # --kill-child takes the namespace along
        process.wait()
