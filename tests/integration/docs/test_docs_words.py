"""The documentation's own words: its links lead somewhere, what it names is there, its tables are whole."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scrapeyard import errors, settings
from scrapeyard.gateway.auth.permissions import GRANTS, Permission, asked_for
from scrapeyard.gateway.http.problems import EXITS, PROBLEMS
from scrapeyard.model import ExitReason, Limits
from scrapeyard.model.identity import Role
from scrapeyard.repository.manifest import manifest
from tests.integration.docs_pages import FENCE, PAGES, ROOT

BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"|srcset=\"([^\"]+)\"")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for groups in _LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        target, _, anchor = next(filter(None, groups)).partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(file), f"{page.name}: {file.name} has no heading #{anchor}"


def anchors(page: Path) -> set[str]:
    """As Git forges make them from headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
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


@cache
def commands() -> set[str]:
    from typer.main import get_command

    from scrapeyard.cli.main import app

    return set(get_command(app).commands)  # type: ignore[attr-defined]


def test_settings_table_is_whole() -> None:
    """`python -m tests.integration.docs.test_docs_words` writes it."""
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == settings_table()


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


def test_permission_table_is_whole() -> None:
    """`python -m tests.integration.docs.test_docs_words` writes it."""
    page = (ROOT / "docs" / "permissions.md").read_text("utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == permission_table()


def permission_table() -> str:
    lines = ["", f"| route | permission | {' | '.join(Role)} |", f"|---|---|{'---|' * len(Role)}"]
    for route, permission in asked_for().items():
        marks = " | ".join(_mark(role, permission) for role in Role)
        lines.append(f"| `{route}` | `{permission}` | {marks} |")
    return "\n".join([*lines, "", ""])


def _mark(role: Role, permission: Permission) -> str:
    if permission not in GRANTS[role]:
        return "no"
    return "own" if role is Role.CLIENT and permission in (Permission.WORK_READ, Permission.WORK_WRITE) else "yes"


def _default(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown}`" if shown else "(empty)"


def test_api_pages_name_every_end_and_problem() -> None:
    page, ends = ((ROOT / "docs" / name).read_text("utf-8") for name in ("api.md", "exit-reasons.md"))
    rows = {row[0]: row[1:] for row in table_rows(ends)}
    for reason in ExitReason:
        status = "504" if reason.is_time_limit else "200" if reason.is_good else "502"
        assert rows[f"`{reason}`"][:2] == ["yes" if reason.retryable else "no", status], reason
    for code in {*PROBLEMS, *http_codes(errors.ScrapeyardError)}:
        assert f"`{code}`" in page, f"docs/api.md does not name the problem {code}"


def table_rows(page: str) -> Iterator[list[str]]:
    for line in page.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def http_codes(kind: type[errors.ScrapeyardError]) -> Iterator[str]:
    """Codes that a caller may see: what never leaves a worker or the command line is no problem document."""
    never = (
        errors.ScrapeyardError,
        errors.ExportFailed,
        errors.FetchFailed,
        errors.SandboxError,
        errors.SettingsInvalid,
        errors.SealBroken,
    )
    for below in kind.__subclasses__():
        if below.__module__ == "scrapeyard.errors" and below not in never:
            yield below.code
        yield from http_codes(below)


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
    for name in {*(reason.value for reason in EXITS), *PROBLEMS} - {
        reason.value for reason in ExitReason if reason.is_good
    }:
        assert f"`{name}`" in page, f"docs/troubleshooting.md does not tell of {name}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_pages_stay_short(page: Path) -> None:
    """Without the tables in which things are looked up, which grow with what they list. The changelog may grow, too: it
    is read from its top."""
    tables = r"<!-- (table|steps) -->.*<!-- end of \1 -->"
    text = re.sub(tables, "", page.read_text("utf-8"), flags=re.DOTALL)
    assert len(text.splitlines()) <= 260


def write_tables() -> None:
    """Bring the tables that are made from the code up to date."""
    for name, table in (("settings.md", settings_table()), ("permissions.md", permission_table())):
        path = ROOT / "docs" / name
        before, begin, rest = path.read_text("utf-8").partition(BEGIN)
        path.write_text(before + begin + table + END + rest.partition(END)[2])


if __name__ == "__main__":
    write_tables()
