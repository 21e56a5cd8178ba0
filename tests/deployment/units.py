"""Starts the units of deploy/systemd under systemd and uses them: `python -m tests.deployment.units`.

A Debian with systemd is made of the image that `make image-test` builds, which has the program in /opt/scrapeyard, and
is started by systemd-nspawn with a network of its own and a Redis. Workers are `strict`, so that one starts only if
every wall around scripts stands under the unit's hardening. Everything stays in `build/systemd-test`. Needs root.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.deployment import image
from tests.deployment.commands import do, missing, say
from tests.leaks import PATIENCE, until

ROOT = Path(__file__).parents[2]
HERE = ROOT / "build" / "systemd-test"
TOOLS = (*image.TOOLS, "systemd-nspawn", "nsenter")
ROLES = ("gateway", "worker", "dispatcher")
UNITS = tuple(f"scrapeyard-{role}" for role in ROLES)
_PACKAGES = ("systemd", "systemd-sysv", "dbus", "redis-server")
_SETTINGS = """\
REDIS_URL=redis://127.0.0.1:6379/0
SCRAPEYARD_REPOSITORY__SCRAPERS=/srv/scrapers
SCRAPEYARD_HTTP__ALLOW_PRIVATE=true
SCRAPEYARD_SANDBOX__MODE=strict
"""
_SHOP = """\
[Service]
ExecStart=/opt/scrapeyard/bin/scrapeyard demo-site
[Install]
WantedBy=multi-user.target
"""


class BootedSystem:
    """A Debian that systemd has started."""

    def __init__(self, leader: int) -> None:
        self._leader = leader

    def do(self, *command: str) -> str:
        """Run a command in it; its output. Raises AssertionError if it fails."""
        spaces = ("--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup")
        clean = ("env", "-i", "PATH=/opt/scrapeyard/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root")
        return do("nsenter", f"--target={self._leader}", *spaces, *clean, *command)

    def state(self, unit: str, name: str = "ActiveState") -> str:
        """A property of a unit."""
        return self.do("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def health(self) -> dict[str, Any] | None:
        """What the gateway says; None while it does not answer."""
        ask = "import urllib.request as ask; print(ask.urlopen('http://127.0.0.1:8000/api/health').read().decode())"
        with suppress(AssertionError):
            found: dict[str, Any] = json.loads(self.do("python3", "-c", ask))
            return found
        return None


def main() -> int:
    """The program."""
    if why := missing(*TOOLS):
        say(f"The units are not tested: {why}.")
        return 0
    HERE.mkdir(parents=True, exist_ok=True)
    root = _root(image.build("lean"))
    with _booted(root) as system:
        _check(system)
    say("0 faults")
    return 0


def _root(built: str) -> Path:
    """The image as a folder, with systemd, Redis and our units."""
    root = HERE / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    container = do(*image.PODMAN, "create", built, "true").strip()
    with subprocess.Popen([*image.PODMAN, "export", container], stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "-x", "-C", str(root)], stdin=packed.stdout, check=True)
    do(*image.PODMAN, "rm", container)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    install = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {' '.join(_PACKAGES)}"
    do("chroot", str(root), "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", install)
    units = root / "etc/systemd/system"
    for unit in UNITS:
        shutil.copy(ROOT / "deploy/systemd" / f"{unit}.service", units)
    (units / "shop.service").write_text(_SHOP)
    worker = (units / "scrapeyard-worker.service").read_text()
    doctor = worker.replace("scrapeyard worker", "scrapeyard doctor --json").replace("on-failure", "no")
    (units / "doctor.service").write_text(doctor)
    (root / "etc/scrapeyard").mkdir()
    (root / "etc/scrapeyard/scrapeyard.env").write_text(_SETTINGS)
    (root / "etc/scrapeyard/scrapeyard.env").chmod(0o600)
    shutil.copytree(ROOT / "examples" / "scrapers", root / "srv/scrapers")
    do("chroot", str(root), "systemctl", "enable", *UNITS, "shop")
    return root


@contextmanager
def _booted(root: Path) -> Iterator[BootedSystem]:
    """The system, until its network, its Redis and our units are up."""
    words = ["--quiet", "--boot", "--register=no", "--keep-unit", "--private-network"]
    command = ["systemd-nspawn", *words, "-D", str(root)]
    # systemd-nspawn has a filter of its own, which forbids Landlock. Those of the units stay in force.
    unfiltered = {**os.environ, "SYSTEMD_SECCOMP": "0"}
    with (
        (HERE / "boot.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=unfiltered) as process,
    ):
        try:
            leader = until(lambda: psutil.Process(process.pid).children(), "systemd begins")[0]
            system = BootedSystem(leader.pid)
            until(lambda: (system.health() or {}).get("status") == "ok", "the gateway finds everything")
            yield system
        finally:
            process.terminate()  # nspawn tells systemd to power off
            process.wait(PATIENCE)


def _check(system: BootedSystem) -> None:
    for unit in UNITS:
        assert system.state(unit) == "active", system.do("journalctl", "-u", unit, "--no-pager")
    filtered = system.do("grep", "Seccomp:", f"/proc/{system.state(UNITS[0], 'MainPID')}/status").split()
    assert filtered == ["Seccomp:", "2"], "the unit's SystemCallFilter is in force"
    say(f"{', '.join(UNITS)} are active; workers are strict")
    _walls(system)
    _scrape(system)
    _kill(system)
    system.do("systemctl", "restart", *UNITS)
    until(lambda: (system.health() or {}).get("status") == "ok", "all is well after a restart")
    _scrape(system)
    system.do("systemctl", "stop", *UNITS)
    assert {system.state(unit, "Result") for unit in UNITS} == {"success"}
    say("restart and stop end well")


def _walls(system: BootedSystem) -> None:
    """What `doctor` finds under the hardening of the worker's unit."""
    with suppress(AssertionError):  # it ends with 1 where something is worth a warning
        system.do("systemctl", "start", "--wait", "doctor")
    said = system.do("journalctl", "-u", "doctor", "-o", "cat", "--no-pager")
    found = {each["check"]: each for each in json.loads(said[said.index("[") : said.rindex("]") + 1])}
    assert [found[f"wall {wall}"]["state"] for wall in image.WALLS] == ["ok"] * len(image.WALLS), found
    say("doctor finds every wall under the worker's unit")


def _scrape(system: BootedSystem) -> None:
    """A page by the worker itself, and one by a script in its sandbox."""
    page = "http://127.0.0.1:8800/product/1"
    for words in ((page,), ("shop/product", f"url={page}")):
        told = json.loads(system.do("scrapeyard", "scrape", *words, "--json"))
        assert "Aurora Lamp" in json.dumps(told["result"]), told
    say("a page and a script are scraped")


def _kill(system: BootedSystem) -> None:
    """systemd starts again what was killed."""
    for unit in UNITS:
        before = system.state(unit, "MainPID")
        system.do("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
        until(lambda old=before, unit=unit: system.state(unit, "MainPID") not in ("0", old), f"{unit} starts again")  # type: ignore[misc]
    until(lambda: (system.health() or {}).get("status") == "ok", "all is well after the kills")
    _scrape(system)


if __name__ == "__main__":
    sys.exit(main())
