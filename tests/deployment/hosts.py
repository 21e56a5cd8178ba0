"""Hosts of their own on one machine: a network namespace each, a bridge between them. Root only.

A host that is cut off loses its cable: packets vanish, and nobody is told that a connection is gone. That is what a
lost machine looks like, and what a killed process never shows.
"""

import os
import secrets
import shutil
import subprocess
from contextlib import ExitStack
from typing import Self

_NETWORK = "10.213.77"


def missing() -> str:
    """Why there can be none here; empty if there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not shutil.which("ip"):
        return "no `ip`: apt-get install iproute2"
    return ""


class Hosts:
    """A bridge with an address of ours, and the hosts on it. Use it as a context; leaving it removes everything."""

    def __init__(self) -> None:
        self._tag = secrets.token_hex(2)
        self._bridge = f"sy{self._tag}"
        self._stack = ExitStack()
        self._numbers: dict[str, int] = {}

    def __enter__(self) -> Self:
        _ip("link", "add", self._bridge, "type", "bridge")
        self._stack.callback(_ip, "link", "del", self._bridge)
        _ip("addr", "add", f"{self.gateway}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def gateway(self) -> str:
        """Our own address among them."""
        return f"{_NETWORK}.1"

    def add(self, name: str) -> str:
        """A new host; its address."""
        self._numbers[name] = len(self._numbers) + 2
        space, cable = self._space(name), self._cable(name)
        _ip("netns", "add", space)
        self._stack.callback(_ip, "netns", "del", space)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("link", "set", cable, "master", self._bridge, "up")
        for words in (("link", "set", "lo", "up"), ("link", "set", "eth0", "up")):
            _ip("-n", space, *words)
        _ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        return self.address(name)

    def address(self, name: str) -> str:
        """Of a host."""
        return f"{_NETWORK}.{self._numbers[name]}"

    def inside(self, name: str) -> list[str]:
        """What stands before a command that runs on this host."""
        return ["ip", "netns", "exec", self._space(name)]

    def cut_off(self, name: str) -> None:
        """Pull its cable."""
        _ip("link", "set", self._cable(name), "down")

    def join(self, name: str) -> None:
        """Plug it in again. May be called where it is."""
        _ip("link", "set", self._cable(name), "up")

    def _space(self, name: str) -> str:
        return f"sy{self._tag}-{name}"

    def _cable(self, name: str) -> str:
        return f"sy{self._tag}v{self._numbers[name]}"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
