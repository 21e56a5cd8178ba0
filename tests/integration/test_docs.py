"""The documentation, held to the program: its commands run, its answers are true, its tables are whole.

A fence says what becomes of it. `sh test` is run by bash, all of one page in one shell; a `json` or `text` fence right
after it is the answer as the page shows it, shortened with `…`. `python test` is run as a program. A fence with
`file=path` is written to that file. Pages speak of the default ports; here they stand for free ones.
"""

import fnmatch
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard import errors, settings
from scrapeyard.gateway.remedies import EXITS, PROBLEMS
from scrapeyard.model import ExitReason, Limits
from scrapeyard.repository import manifest
from tests.leaks import until

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
SERVER, SHOP = "127.0.0.1:8000", "127.0.0.1:8800"
BIN = Path(sys.executable).parent
_FENCE = re.compile(r"^```([a-z]+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"|srcset=\"([^\"]+)\"")
_VOLATILE = re.compile(r"(_ms|_seconds|_mb|percent|pid|load|slots|busy|used|runs_done|^ms|bytes|memory)$")
_ID = re.compile(r"(run|worker|gateway)_[0-9a-f]+…?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One block of code of a page."""

    kind: str
    marks: tuple[str, ...]
    text: str
    follows: bool
    """Whether nothing but a short sentence stands between it and the block before."""

    @property
    def is_run(self) -> bool:
        return "test" in self.marks

    @property
    def file(self) -> str | None:
        """Where to write it; None when it is not a file's content."""
        return next((mark.removeprefix("file=") for mark in self.marks if mark.startswith("file=")), None)


def fences(page: Path) -> list[Fence]:
    text, end = page.read_text("utf-8"), 0
    found: list[Fence] = []
    for match in _FENCE.finditer(text):
        between = text[end : match.start()].strip()
        follows = bool(found) and "\n\n" not in between and len(between) < 200
        found.append(Fence(kind=match[1], marks=tuple(match[2].split()), text=match[3], follows=follows))
        end = match.end()
    return found


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

    def environment(self) -> dict[str, str]:
        return clean_environment() | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "SCRAPEYARD_URL": f"http://{self.server}",
            "NO_PROXY": "127.0.0.1",
        }


def clean_environment() -> dict[str, str]:
    strangers = ("SCRAPEYARD_", "REDIS_URL", "DATABASE_URL", "OTEL_", "LOG_LEVEL")
    return {name: value for name, value in os.environ.items() if not name.startswith(strangers)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """What the pages ask their reader to start: `make up`, as the Makefile has it, and the shop."""
    home = tmp_path_factory.mktemp("docs")
    home.chmod(0o755)
    shutil.copytree(ROOT / "examples", home / "examples")
    server, shop = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # we may run under make
    recipe = subprocess.run(["make", "-n", "up"], cwd=ROOT, capture_output=True, text=True, check=True, env=alone)
    up = recipe.stdout.strip().splitlines()[-1].split()
    assert up[0].endswith("scrapeyard"), up
    commands = (
        [*up[1:], "--port", server.rpartition(":")[2], "--data-dir", str(home / "data")],
        ["demo-site", "--port", shop.rpartition(":")[2]],
    )
    programs = [start(command, home / f"{command[0]}.log", home) for command in commands]
    try:
        until(lambda: answers(f"http://{server}/api/ready", programs), 60, "the server is ready")
        until(lambda: answers(f"http://{shop}/", programs), 60, "the shop is open")
        yield Place(server=server, shop=shop, home=home)
    finally:
        for program in programs:
            program.terminate()
        for program in programs:
            program.wait(30)


def start(arguments: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stream:
        command = [str(BIN / "scrapeyard"), *arguments]
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=clean_environment()
        )


def answers(url: str, programs: Sequence[subprocess.Popen[bytes]]) -> bool:
    assert all(program.poll() is None for program in programs), "a program ended"
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", run_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, place: Place) -> None:
    folder = place.home / page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "-")
    folder.mkdir()
    (folder / "examples").symlink_to(place.home / "examples")
    found = fences(page)
    steps = [step(number, fence, place, folder) for number, fence in enumerate(found)]
    script = "\n".join(["set -euo pipefail", *filter(None, steps), "exec >/dev/null 2>&1"])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=place.environment(), capture_output=True, timeout=240, check=False
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for groups in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        target, _, anchor = next(filter(None, groups)).partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(file), f"{page.name}: {file.name} has no heading #{anchor}"


def anchors(page: Path) -> set[str]:
    """As Git forges make them from headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_code_are_there(page: Path) -> None:
    for name in re.findall(
        r"`((?:src|tests|docs|examples|benchmarks|requirements)/[\w./-]+)`", page.read_text("utf-8")
    ):
        assert (ROOT / name).exists(), f"{page.name} speaks of {name}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_and_commands_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = page.read_text("utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)(?=[ `\n])", text, re.MULTILINE):
        assert target in targets, f"{page.name}: no target {target}"
    for command in re.findall(r"(?:^|`|/)scrapeyard ([a-z][a-z-]*)(?=[ `\n])", text, re.MULTILINE):
        assert command in commands(), f"{page.name}: no command {command}"


def commands() -> set[str]:
    from typer.main import get_command

    from scrapeyard.cli.main import app

    return set(get_command(app).commands)  # type: ignore[attr-defined]


def test_settings_table_is_whole() -> None:
    """`python -m tests.integration.test_docs` writes it."""
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    assert page.partition(begin)[2].partition(end)[0] == settings_table()


def settings_table() -> str:
    lines = []
    section = None
    for key, environment, default, meaning in settings.describe():
        head = key.rpartition(".")[0]
        if head != section:
            section = head
            lines += [
                "",
                f"### {section or 'Top level'}",
                "",
                "| key | environment | default | meaning |",
                "|---|---|---|---|",
            ]
        lines.append(f"| `{key}` | `{environment}` | {_default(default)} | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines[1:], "", ""])


def _default(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown}`" if shown else "(empty)"


def test_api_page_names_every_end_and_problem() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    rows = {row[0]: row[1:] for row in table_rows(page)}
    for reason in ExitReason:
        status = "504" if reason.is_time_limit else "200" if reason in ("succeeded", "skipped") else "502"
        assert rows[f"`{reason}`"][:2] == ["yes" if reason.retryable else "no", status], reason
    for code in {*PROBLEMS, *http_codes(errors.ScrapeyardError)}:
        assert f"`{code}`" in page, f"docs/api.md does not name the problem {code}"


def table_rows(page: str) -> Iterator[list[str]]:
    for line in page.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def http_codes(kind: type[errors.ScrapeyardError]) -> Iterator[str]:
    """Codes that a caller may see: what never leaves a worker or the command line is no problem document."""
    never = (errors.ScrapeyardError, errors.FetchFailed, errors.SandboxError, errors.SettingsInvalid)
    for below in kind.__subclasses__():
        if below.__module__ == "scrapeyard.errors" and below not in never:
            yield below.code
        yield from http_codes(below)


def test_api_page_names_every_path(place: Place) -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    document = httpx.get(f"http://{place.server}/api/openapi.json", trust_env=False).json()
    for path, operations in document["paths"].items():
        for method in operations:
            assert re.search(rf"`{method.upper()} {re.escape(path.replace('{run_id}', '{id}'))}`", page), (method, path)


def test_scrapers_page_names_every_key() -> None:
    page = (ROOT / "docs" / "scrapers.md").read_text("utf-8")
    rows = {row[0]: row[1:] for row in table_rows(page)}
    defaults = manifest.Manifest(id="a/b", version="1.0.0")
    for key in {"schema", "input", "output", *manifest._READERS}:
        assert f"`{key}`" in rows, f"docs/scrapers.md does not tell of {key}"
    for key in ("entry", "network", "lane"):
        assert rows[f"`{key}`"][0] == f"`{getattr(defaults, key)}`"
    ceiling = settings.LimitSettings().as_limits()
    for name in Limits.__struct_fields__:
        wanted = [f"{getattr(limits, name):g}" for limits in (defaults.limits, ceiling)]
        assert [cell.replace(",", "") for cell in rows[f"`{name}`"][:2]] == wanted, name


def test_scrapers_page_names_every_public_name() -> None:
    import scrapeyard_sdk

    page = (ROOT / "docs" / "scrapers.md").read_text("utf-8")
    for name in scrapeyard_sdk.__all__:
        assert name in page, f"docs/scrapers.md does not tell of {name}"


def test_troubleshooting_page_names_every_bad_end_and_problem() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    for name in {*(reason.value for reason in EXITS), *PROBLEMS} - {"succeeded", "skipped"}:
        assert f"`{name}`" in page, f"docs/troubleshooting.md does not tell of {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_stay_short(page: Path) -> None:
    assert len(page.read_text("utf-8").splitlines()) <= 260


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


def write_settings_table() -> None:
    """Bring the table of docs/settings.md up to date."""
    path = ROOT / "docs" / "settings.md"
    before, begin, rest = path.read_text("utf-8").partition("<!-- table -->\n")
    path.write_text(
        before + begin + settings_table() + "<!-- end of table -->" + rest.partition("<!-- end of table -->")[2]
    )


if __name__ == "__main__":
    write_settings_table()
