"""The documentation, held to the program: its commands run and its answers are true.

A fence says what becomes of it. `sh test` is run by bash, all of one page in one shell; a `json` or `text` fence right
after it is the answer as the page shows it, shortened with `…`. `python test` is run as a program. A fence with
`file=path` is written to that file. Pages speak of the default ports; here they stand for free ones.
"""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.docs_pages import PAGES, ROOT, Fence, fences
from tests.leaks import PATIENCE, killed_after, until
from tests.services.ports import free_port
from tests.services.warm import warm

SERVER, SHOP = "127.0.0.1:8000", "127.0.0.1:8800"
BIN = Path(sys.executable).parent
FRESH = ("README.md", "docs/getting-started.md")
"""Pages whose commands are started afresh, so that a test shows that each loads what it needs."""
_VOLATILE = re.compile(r"(_ms|_seconds|_mb|percent|pid|load|slots|busy|used|runs_done|^ms|bytes|memory)$")
_ID = re.compile(r"(run|job|export|schedule|delivery|worker|gateway)_[0-9a-f]+…?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def run_pages() -> list[Path]:
    return [page for page in PAGES if any(fence.is_run for fence in fences(page))]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A server, a shop, and the folder whose scrapers the server watches."""

    server: str
    shop: str
    home: Path

    def localized(self, text: str) -> str:
        """The page's words with the ports that are open here."""
        return text.replace(SERVER, self.server).replace(SHOP, self.shop)

    def environment(self, page: Path) -> dict[str, str]:
        """Commands of most pages are forked from a process that has them loaded."""
        warm_ones = "" if page.relative_to(ROOT).as_posix() in FRESH else f"{self.home / 'warm'}:"
        return clean_environment() | {
            "PATH": f"{warm_ones}{BIN}:{os.environ['PATH']}",
            "SCRAPEYARD_URL": f"http://{self.server}",
            "NO_PROXY": "127.0.0.1",
            "XDG_STATE_HOME": str(self.home / "state"),
        }


def clean_environment() -> dict[str, str]:
    strangers = ("SCRAPEYARD_", "REDIS_URL", "DATABASE_URL", "OTEL_", "LOG_LEVEL", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(strangers)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """What the pages ask their reader to start: `make up`, as the Makefile has it, and the shop."""
    home = tmp_path_factory.mktemp("docs")
    home.chmod(0o755)
    shutil.copytree(ROOT / "examples", home / "examples")
    shutil.copy(ROOT / "examples" / "sinks" / "scrapeyard.toml", home)
    (home / "warm").mkdir()
    warm().install(home / "warm")
    server, shop = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    for listed in (home / "examples" / "jobs").iterdir():
        listed.write_text(listed.read_text("utf-8").replace(SHOP, shop), "utf-8")
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # we may run under make
    recipe = subprocess.run(["make", "-n", "up"], cwd=ROOT, capture_output=True, text=True, check=True, env=alone)
    up = recipe.stdout.strip().splitlines()[-1].split()
    assert up[0].endswith("scrapeyard"), up
    commands = (
        [*up[1:], "--port", server.rpartition(":")[2], "--data-dir", str(home / "data")],
        ["demo-site", "--port", shop.rpartition(":")[2]],
    )
    with ExitStack() as stack:
        programs = [start(command, home / f"{command[0]}.log", home) for command in commands]
        for program in programs:
            stack.enter_context(killed_after(program))
        until(lambda: answers(f"http://{server}/api/ready", programs), "the server is ready")
        until(lambda: answers(f"http://{shop}/", programs), "the shop is open")
        yield Place(server=server, shop=shop, home=home)
        for program in programs:
            program.terminate()
        for program in programs:
            program.wait(PATIENCE)


def start(arguments: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stream:
        command = [str(BIN / "scrapeyard"), *arguments]
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=clean_environment()
        )


def answers(url: str, programs: Sequence[subprocess.Popen[bytes]]) -> bool:
    assert all(program.poll() is None for program in programs), "a program ended"
    try:
        return httpx.get(url, timeout=PATIENCE, trust_env=False, verify=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("page", run_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, place: Place) -> None:
    folder = place.home / page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "-")
    folder.mkdir()
    for name in ("examples", "warehouse.db"):
        (folder / name).symlink_to(place.home / name)
    found = fences(page)
    steps = [step(number, fence, place, folder) for number, fence in enumerate(found)]
    script = "\n".join(["set -euo pipefail", *filter(None, steps), "exec >/dev/null 2>&1"])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=place.environment(page), capture_output=True, timeout=500, check=False
    )
    assert done.returncode == 0, f"{page.name}: {last_words(folder)}{done.stderr.decode()}"
    for number, fence in enumerate(found[1:], 1):
        if found[number - 1].is_run and fence.follows and fence.kind in ("json", "text"):
            compare(fence, number - 1, place, folder)


def step(number: int, fence: Fence, place: Place, folder: Path) -> str:
    """The shell's part of a fence; empty when it has none."""
    text = place.localized(fence.text)
    into = f"exec >{number}.out 2>{number}.err\n"
    if fence.file is not None:
        (folder / f"{number}.file").write_text(text, "utf-8")
        return f"mkdir -p $(dirname {fence.file}) && cp {number}.file {fence.file}"
    if not fence.is_run:
        return ""
    if fence.kind == "python":
        (folder / f"{number}.py").write_text(text, "utf-8")
        return f"{into}python {number}.py"
    assert fence.kind == "sh", f"a {fence.kind} fence cannot be run"
    return into + text


def last_words(folder: Path) -> str:
    written = sorted(folder.glob("*.err"), key=lambda path: path.stat().st_mtime_ns)
    return "".join(path.read_text("utf-8") + path.with_suffix(".out").read_text("utf-8") for path in written[-1:])


def compare(shown: Fence, number: int, place: Place, folder: Path) -> None:
    out = (folder / f"{number}.out").read_text("utf-8")
    if shown.kind == "json":
        expected, real = json.loads(place.localized(shown.text)), json.loads(out)
        assert (fault := difference(expected, real, "")) is None, f"{fault}\nshown: {shown.text}\nreal: {out}"
        return
    rest = (out + (folder / f"{number}.err").read_text("utf-8")).splitlines()
    for line in filter(str.strip, place.localized(shown.text).splitlines()):
        position = next((at for at, real in enumerate(rest) if same_text(line, real)), None)
        assert position is not None, f"not in the answer: {line!r}\nrest of the answer: {rest}"
        del rest[: position + 1]


def difference(shown: Any, real: Any, place: str) -> str | None:
    """Where the page's answer is not the real one, shortened; None when it is."""
    if shown == "…":
        return None
    if isinstance(shown, dict) and isinstance(real, dict):
        faults = (_member(key, value, real, place) for key, value in shown.items() if key != "…")
        return next((fault for fault in faults if fault), None)
    if isinstance(shown, list) and isinstance(real, list):
        cut = shown[-1:] == ["…"]
        wanted = shown[:-1] if cut else shown
        if len(wanted) > len(real) or (not cut and len(wanted) != len(real)):
            return f"{place}: {len(real)} members, not {len(shown)}"
        faults = (
            difference(one, other, f"{place}/{at}") for at, (one, other) in enumerate(zip(wanted, real, strict=False))
        )
        return next((fault for fault in faults if fault), None)
    if isinstance(shown, str) and isinstance(real, str):
        return None if same_text(shown, real) else f"{place}: {real!r}, not {shown!r}"
    return None if type(shown) is type(real) and shown == real else f"{place}: {real!r}, not {shown!r}"


def _member(key: str, value: Any, real: dict[str, Any], place: str) -> str | None:
    if key not in real:
        return f"{place}/{key}: not there"
    numbers = isinstance(value, (int, float)) and isinstance(real[key], (int, float))
    return None if numbers and _VOLATILE.search(key) else difference(value, real[key], f"{place}/{key}")


def same_text(shown: str, real: str) -> bool:
    """Equal but for ids, times and what `…` stands for."""
    pattern, text = (_TIME.sub("(time)", _ID.sub("(id)", each.strip())) for each in (shown, real))
    literal = re.sub(r"[\[*?]", lambda found: f"[{found[0]}]", pattern)
    return fnmatch.fnmatchcase(" ".join(text.split()), " ".join(literal.replace("…", "*").split()))


def test_api_page_names_every_path(place: Place) -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    document = httpx.get(f"http://{place.server}/api/openapi.json", trust_env=False).json()
    for path, operations in document["paths"].items():
        for method in operations:
            assert re.search(rf"`{method.upper()} {re.escape(path.replace('{run_id}', '{id}'))}`", page), (method, path)


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ({"a": 1, "…": "…"}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {}, False),
        ({"wall_ms": 1.5}, {"wall_ms": 99}, True),
        ({"wall_ms": 1.5}, {"wall_ms": None}, False),
        ([1, "…"], [1, 2, 3], True),
        ([1, 2], [1], False),
        ([1], [1, 2], False),
        ("run_01…", "run_" + "a" * 32, True),
        ("2026-01-31T09:30:00.125Z", "2027-01-01T00:00:00.000Z", True),
        ("Practice … shop", "Practice [old] shop", True),
        ("a [b]", "a [b]", True),
        ("a?", "ab", False),
    ],
)
def test_answers_are_compared_as_said(shown: Any, real: Any, same: bool) -> None:
    assert (difference(shown, real, "") is None) is same
