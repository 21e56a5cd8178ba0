"""Checks of the sandbox: every wall, and a real child."""

import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from scrapeyard.cli.doctor.findings import Finding, fail, ok, warn
from scrapeyard.cli.runs.local import LocalYard, open_yard
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import ExitReason
from scrapeyard.sandbox.port import Wall
from scrapeyard.settings import Settings

SLOW_WARM_MS = 250.0
_MANIFEST = 'schema = 1\nid = "doctor/child"\nversion = "1.0.0"\n'
_SCRIPT = "def run(ctx, number: int) -> int:\n    return number + 1\n"
_REMEDIES = {
    "namespaces": "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0), or run the container with its own security profile",
    "root": "needs the namespaces wall",
    "user": "run the worker as root, so that each scraper gets a user id of its own",
    "landlock": "use a kernel of 5.13 or newer with landlock in its list of security modules (lsm=…)",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64",
    "rlimits": "do not run with limits below those of the scrapers",
}


async def check_sandbox(settings: Settings) -> AsyncIterator[Finding]:
    """The walls of a sandbox that was really started, then a tiny script in a child, cold and warm."""
    began = time.perf_counter()
    try:
        async with open_yard(settings) as yard:
            yield ok("sandbox", f"mode {settings.sandbox.mode}, ready in {_since(began):.0f} ms")
            for wall in yard.walls():
                yield _wall(wall)
            yield await _child(yard)
    except ScrapeyardError as error:
        yield fail("sandbox", error.message, "set sandbox.mode to auto to go without, or raise the walls it names")


def _wall(wall: Wall) -> Finding:
    name = f"wall {wall.name}"
    if wall.up:
        return ok(name, wall.detail or "up")
    return warn(name, wall.detail or "missing", _REMEDIES.get(wall.name, "see docs/security.md"))


async def _child(yard: LocalYard) -> Finding:
    with tempfile.TemporaryDirectory(prefix="scrapeyard-doctor-") as name:
        folder = Path(name)
        (folder / "scraper.toml").write_text(_MANIFEST)
        (folder / "scraper.py").write_text(_SCRIPT)
        scraper = yard.load(folder)
    times = []
    for number in (1, 2):
        began = time.perf_counter()
        _, outcome = await yard.run(scraper, {"number": number})
        times.append(_since(began))
        if outcome.exit_reason is not ExitReason.SUCCEEDED or await yard.result(outcome) != b"%d" % (number + 1):
            words = outcome.error.message if outcome.error else outcome.exit_reason.value
            return fail("child", words, "leave walls out one by one with SCRAPEYARD_SANDBOX__WITHOUT to find which")
    detail = f"a script ran in {times[0]:.0f} ms cold, {times[1]:.1f} ms warm"
    return ok("child", detail) if times[1] < SLOW_WARM_MS else warn("child", detail, "the machine is slow or busy")


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
