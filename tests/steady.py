"""Run the whole suite many times, in the ways that strangers run it, and name every test that ever failed.

`make test-steady RUNS=10`. Every second run has a busy process on each core. For root the others are also run in a
private folder, as a plain user, and on a disk of 3 GB. Logs go to `build/steady`. Name files to run only those:
`python -m tests.steady --runs 10 --way busy tests/unit/engines/test_guard.py`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.leaks import killed_after

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "build" / "steady"
DISK = "3g"
USER = "65534"
RUN_SECONDS = 2 * 3600
WAYS = {
    "quiet": "in this checkout",
    "busy": "in this checkout, with a busy process on each core",
    "private": "from a new clone in a folder of mode 700 under the home folder",
    "user": f"from a new clone as user {USER}",
    "disk": "from a new clone on a disk of 3 GB, which is also the temporary folder",
}


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one run went."""

    way: str
    seconds: float
    status: int
    summary: str
    failed: tuple[str, ...]


def main() -> int:
    """Run it so often; 0 when nothing ever failed."""
    options = _options()
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    results = []
    for number in range(1, options.runs + 1):
        way = _way(number, options.way)
        print(f"run {number} of {options.runs}, {WAYS[way]} …", flush=True)
        result = _run(number, way, options.tests)
        results.append(result)
        print(f"    {result.summary} ({_clock(result.seconds)})", *result.failed, sep="\n      ", flush=True)
    return _conclude(results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="how often (default: %(default)s)")
    listed = "; ".join(f"{way}: {words}" for way, words in WAYS.items())
    parser.add_argument("--way", choices=WAYS, action="append", help=f"only so, may be repeated. {listed}")
    parser.add_argument("tests", nargs="*", help="files or folders of tests (default: all)")
    return parser.parse_args()


def _way(number: int, chosen: list[str] | None) -> str:
    if chosen:
        return chosen[(number - 1) % len(chosen)]
    if number % 2 == 0:
        return "busy"
    calm = ("quiet", "private", "user", "disk") if os.getuid() == 0 else ("quiet",)
    return calm[number // 2 % len(calm)]


def _run(number: int, way: str, tests: list[str]) -> Result:
    log = LOGS / f"{number:02}-{way}.log"
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steady-", dir=_place(way))))
        report = folder / "report.xml"
        command, where, environment = _command(way, folder)
        environment |= {"PYTEST_ADDOPTS": f"--junitxml={report}", "TESTS": " ".join(tests)}
        if way == "busy":
            stack.enter_context(_busy())
        with log.open("wb") as stream:
            status = subprocess.run(
                command, cwd=where, env=os.environ | environment, stdin=subprocess.DEVNULL,
                stdout=stream, stderr=stream, timeout=RUN_SECONDS, check=False,
            ).returncode  # fmt: skip
        failed = _failed(report) if report.exists() else ()
    summary = _summary(log, status)
    return Result(way=way, seconds=time.monotonic() - began, status=status, summary=summary, failed=failed)


def _place(way: str) -> Path | None:
    return Path.home() if way == "private" else None


def _command(way: str, folder: Path) -> tuple[list[str], Path, dict[str, str]]:
    """What to run, where, with which environment."""
    if way in ("quiet", "busy"):
        return ["make", "test"], ROOT, {}
    home = folder / "disk" if way == "disk" else folder
    home.mkdir(exist_ok=True)
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin") or "python3"
    get = f"git clone --quiet {ROOT} {home}/scrapeyard; mkdir {home}/tmp"
    test = f"cd {home}/scrapeyard; make test PYTHON={python}"
    if way == "private":
        return ["sh", "-ec", f"{get}; {test}"], folder, {}
    if way == "user":
        folder.chmod(0o755)
        become = f"chown -R {USER}:{USER} {folder}; exec setpriv --reuid={USER} --regid={USER} --clear-groups"
        words = ["sh", "-ec", f'{get}; {become} sh -ec "{test}"']
    else:
        words = ["unshare", "--mount", "sh", "-ec", f"mount -t tmpfs -o size={DISK} none {home}; {get}; {test}"]
    return words, folder, {"HOME": str(folder), "TMPDIR": f"{home}/tmp"}


@contextmanager
def _busy() -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            command = ["timeout", str(RUN_SECONDS), sys.executable, "-c", "while True: pass"]
            stack.enter_context(killed_after(subprocess.Popen(command)))
        yield


def _failed(report: Path) -> tuple[str, ...]:
    cases = ET.parse(report).iter("testcase")
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return tuple(dict.fromkeys(f"{case.get('classname')}::{case.get('name')}" for case in bad))


def _summary(log: Path, status: int) -> str:
    """The last line of pytest, or of whatever ended the run before."""
    lines = log.read_text("utf-8", errors="replace").splitlines() or ["it said nothing"]
    told = [line for line in lines if " passed" in line]
    return (told or lines)[-1].strip("= ") + (f", status {status}, see {log.relative_to(ROOT)}" if status else "")


def _conclude(results: list[Result]) -> int:
    often: dict[str, list[str]] = defaultdict(list)
    for number, result in enumerate(results, 1):
        for test in result.failed:
            often[test].append(f"{number} ({result.way})")
    for test, runs in sorted(often.items()):
        print(f"failed in {len(runs)} of {len(results)}: {test}, runs {', '.join(runs)}")
    broken = [number for number, result in enumerate(results, 1) if result.status]
    print(f"{len(results)} runs, {len(broken)} failed" if broken else f"{len(results)} runs, no test failed in any")
    return 1 if broken else 0


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


if __name__ == "__main__":
    sys.exit(main())
