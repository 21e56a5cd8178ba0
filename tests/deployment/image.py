"""Builds the image and starts it: `python -m tests.deployment.image [--target lean] [--base IMAGE]`.

Needs root, buildah, podman and runc; without `--base`, debootstrap makes a Debian to build on, so that no registry is
needed. Everything stays in `build/image`. The container has a read-only root, no capability and another user than
root. In it, `doctor` must find every wall under our seccomp profile, and tell which are missing under one that forbids
namespaces; `up` must answer and scrape the practice shop.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.deployment.commands import answers, do, missing, say, started
from tests.leaks import PATIENCE, until

ROOT = Path(__file__).parents[2]
HERE = ROOT / "build" / "image"
PROFILE = ROOT / "deploy" / "seccomp" / "scrapeyard.json"
TOOLS = ("buildah", "podman", "runc", "debootstrap")
TARGETS = ("lean", "browser")
WALLS = ("namespaces", "root", "user", "landlock", "seccomp", "rlimits")
_PORT = 18_765
_PLACE = ["--root", str(HERE / "store"), "--runroot", str(HERE / "run")]
PODMAN = ["podman", *_PLACE, "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
_RUN = [
    *("run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "all"),
    *("--security-opt", "no-new-privileges", "--network", "host", "--shm-size", "512m"),
    *("--ulimit", "nofile=16384:16384", "--ulimit", "nproc=30000:30000"),
]


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append", help="build these alone")
    parser.add_argument("--base", default="", help="a base image that is at hand")
    options = parser.parse_args()
    if why := missing(*(TOOLS[:3] if options.base else TOOLS)):
        say(f"The image is not tested: {why}.")
        return 0
    for target in options.target or TARGETS:
        build(target, options.base)
        say(f"{target}: {_size(target) / 1e6:,.0f} MB, on a base of {_size('base') / 1e6:,.0f} MB")
        _check(target)
    return 0


def _bootstrapped() -> str:
    name = "localhost/scrapeyard:base"
    if subprocess.run([*PODMAN, "image", "exists", name], check=False).returncode:
        folder = HERE / "root"
        shutil.rmtree(folder, ignore_errors=True)
        do("debootstrap", "--variant=minbase", "bookworm", str(folder))
        for left in ((folder / "var/cache/apt/archives").glob("*.deb"), (folder / "var/lib/apt/lists").glob("*_*")):
            for path in left:
                path.unlink()
        with subprocess.Popen(["tar", "-C", str(folder), "-c", "."], stdout=subprocess.PIPE) as packed:
            subprocess.run([*PODMAN, "import", "-", name], stdin=packed.stdout, check=True, capture_output=True)
        shutil.rmtree(folder)
    return name


def build(target: str, base: str = "") -> str:
    """Build the target on a base image, or on a Debian of its own; the name of the image."""
    HERE.mkdir(parents=True, exist_ok=True)
    base = base or _bootstrapped()
    began = time.monotonic()
    words = ["--isolation", "chroot", "--network", "host", "--layers", "--build-arg", f"BASE={base}"]
    place = ["-f", "deploy/Dockerfile", "--target", target, "-t", f"localhost/scrapeyard:{target}", "."]
    with (HERE / f"{target}.log").open("w") as log:
        command = ["buildah", *_PLACE, "bud", *words, *_trust(), *place]
        built = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, check=False)
    assert built.returncode == 0, (HERE / f"{target}.log").read_text()[-3000:]
    say(f"{target}: built in {time.monotonic() - began:.0f} s")
    return f"localhost/scrapeyard:{target}"


def _trust() -> list[str]:
    """The authorities that this machine trusts, where it has others than a Debian."""
    authorities = os.environ.get("SSL_CERT_FILE")
    if not authorities:
        return []
    (HERE / "pip.conf").write_text("[global]\ncert = /host-ca.pem\n")
    (HERE / "npmrc").write_text("cafile=/host-ca.pem\n")
    mounts = {authorities: "/host-ca.pem", HERE / "pip.conf": "/etc/pip.conf", HERE / "npmrc": "/root/.npmrc"}
    return [word for source, place in mounts.items() for word in ("-v", f"{source}:{place}:ro")]


def _size(target: str) -> int:
    told = do(*PODMAN, "image", "inspect", f"localhost/scrapeyard:{target}", "--format", "{{.Size}}")
    return int(told)


def _check(target: str) -> None:
    stands = _doctor(target, PROFILE)
    assert [stands[f"wall {wall}"]["state"] for wall in WALLS] == ["ok"] * len(WALLS), stands
    assert not [each for each in stands.values() if each["state"] == "fail"], stands
    assert ("sandbox and network namespace" in stands["browser"]["detail"]) == (target == "browser"), stands["browser"]
    say(f"{target}: doctor finds every wall under {PROFILE.name}; {stands['browser']['detail']}")
    bare = _doctor(target, _without_namespaces())
    assert bare["wall namespaces"]["state"] == "warn", bare
    assert "seccomp" in bare["wall namespaces"]["remedy"], bare
    assert bare["child"]["state"] != "fail", bare["child"]
    say(f"{target}: without namespaces doctor tells {_missing_walls(bare)}, and scripts run")
    _serve(target)


def _missing_walls(found: dict[str, dict[str, str]]) -> str:
    return ", ".join(name for name, each in found.items() if name.startswith("wall") and each["state"] != "ok")


def _doctor(target: str, profile: Path) -> dict[str, dict[str, str]]:
    command = [*PODMAN, *_RUN, "--security-opt", f"seccomp={profile}", f"localhost/scrapeyard:{target}"]
    done = subprocess.run([*command, "doctor", "--json"], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.startswith("["), done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)}


def _without_namespaces() -> Path:
    """Our profile without what Docker's own forbids."""
    profile = json.loads(PROFILE.read_text())
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in ("unshare", "mount", "pivot_root", "umount2")]
    path = HERE / "without-namespaces.json"
    path.write_text(json.dumps(profile))
    return path


def _serve(target: str) -> None:
    """`up` in a container, called from inside it."""
    name = f"scrapeyard-image-test-{os.getpid()}"
    with _container(name, target) as log:
        key = until(lambda: re.search(r"\bsy_\S+", log.read_text()), "the admin key")[0]
        until(lambda: answers(f"http://127.0.0.1:{_PORT}/api/ready"), "an answer")
        assert _inside(name, "id", "-u").strip() == "10001"
        assert "Read-only" in _inside(name, "sh", "-c", "touch /opt/x 2>&1; true")
        shop = [*PODMAN, "exec", name, "scrapeyard", "demo-site", "--port", str(_PORT + 1)]
        with started(shop):
            until(lambda: answers(f"http://127.0.0.1:{_PORT + 1}/"), "the shop")
            server = ("--server", f"http://127.0.0.1:{_PORT}")
            page = f"http://127.0.0.1:{_PORT + 1}/product/1"
            command = ["env", f"SCRAPEYARD_KEY={key}", "scrapeyard", "scrape", page, *server, "--json"]
            told = json.loads(_inside(name, *command))
            assert told["status"] == "succeeded", told
            assert told["result"]["title"], told
            say(f"{target}: `up` answers as user 10001 with a read-only root, and scraped {told['result']['title']!r}")


@contextlib.contextmanager
def _container(name: str, target: str) -> Iterator[Path]:
    log = HERE / "up.log"
    words = ["--name", name, "--security-opt", f"seccomp={PROFILE}", "--env", "SCRAPEYARD_HTTP__ALLOW_PRIVATE=true"]
    command = [*PODMAN, *_RUN, *words, f"localhost/scrapeyard:{target}", "up", "--port", str(_PORT)]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield log
        finally:
            subprocess.run([*PODMAN, "stop", "--time", "40", name], capture_output=True, check=False)
            process.wait(PATIENCE)


def _inside(name: str, *command: str) -> str:
    return do(*PODMAN, "exec", name, *command)


if __name__ == "__main__":
    sys.exit(main())
