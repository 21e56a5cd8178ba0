"""`test`: recorded cases replayed, with the walls and limits of a server and no network."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.authoring.common import Paths
from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapeyard.authoring.testing import CaseReport
    from scrapeyard.cli.runs.local import LocalYard
    from scrapeyard.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("test")(replay)


def replay(
    paths: Paths,
    case: Annotated[str | None, typer.Option(help="Only the case of this name.")] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Make what the run does now what is expected; look at the diff after.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded cases and compare. Exits 1 when a case fails, or when there is none."""
    import asyncio

    from scrapeyard.authoring.findings import scraper_folders
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.runs.run import until_done

    folders = scraper_folders(paths)
    tell = None if as_json else _show
    work = _run_all(folders, author_settings(folders), case, update, tell)
    found: dict[Path, list[CaseReport]] = asyncio.run(until_done(work))
    if as_json:
        show_json([_document(folder, reports) for folder, reports in found.items()])
    _finish(found)


async def _run_all(
    folders: list[Path],
    settings: "Settings",
    case: str | None,
    update: bool,
    tell: "Callable[[Path, CaseReport], None] | None",
) -> "dict[Path, list[CaseReport]]":
    from scrapeyard.cli.runs.local import open_yard

    found: dict[Path, list[CaseReport]] = {}
    async with open_yard(settings) as yard:
        for folder in folders:
            found[folder] = []
            async for report in _reports(yard, folder, case, update):
                found[folder].append(report)
                if tell is not None:
                    tell(folder, report)
    return found


async def _reports(yard: "LocalYard", folder: Path, case: str | None, update: bool) -> Any:
    from scrapeyard.authoring.testing import CaseReport, offline, run_case, select_cases
    from scrapeyard.errors import ScraperInvalid

    try:
        chosen = select_cases(folder, case)
        scraper = offline(yard.load(folder))
    except ScraperInvalid as error:
        yield CaseReport(name="(scraper)", faults=(error.message,))
        return
    for each in chosen:
        yield await run_case(yard, scraper, each, update=update)


def _show(folder: Path, report: "CaseReport") -> None:
    from scrapeyard.cli.authoring.common import styled
    from scrapeyard.cli.common.output import duration, plain

    mark = "new" if report.updated else "pass" if report.passed else "fail"
    spent = f"  {duration(report.outcome.usage.wall_ms)}" if report.outcome else ""
    typer.echo(f"{styled(mark)} {folder}: {report.name}{spent}")
    for words in (*report.faults, *report.warnings):
        for line in words.splitlines():
            typer.echo(f"     {plain(line)}")
    for line in report.diff:
        typer.echo(f"     {_coloured(plain(line))}")


def _coloured(line: str) -> str:
    if not sys.stdout.isatty():
        return line
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return typer.style(line, fg=colour) if colour else line


def _document(folder: Path, reports: "list[CaseReport]") -> dict[str, Any]:
    return {
        "folder": str(folder),
        "passed": bool(reports) and all(report.passed for report in reports),
        "cases": [report.document() for report in reports],
    }


def _finish(found: "dict[Path, list[CaseReport]]") -> None:
    for folder in (folder for folder, reports in found.items() if not reports):
        typer.echo(f"scrapeyard: {folder}: no recorded case; `scrapeyard record` makes one", err=True)
    reports = [report for each in found.values() for report in each]
    failed = sum(not report.passed for report in reports)
    typer.echo(f"cases: {len(reports)}, passed: {len(reports) - failed}, failed: {failed}", err=True)
    if failed or not all(found.values()):
        raise typer.Exit(1)
