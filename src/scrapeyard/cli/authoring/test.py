"""`validate`, `test`, `certify`: fit to be published, as recorded, ready for release."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.authoring.common import Paths
from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapeyard.authoring.certifying import Certificate
    from scrapeyard.authoring.findings import Finding
    from scrapeyard.authoring.testing import CaseReport
    from scrapeyard.cli.runs.local import LocalYard
    from scrapeyard.settings import Settings


def register_validate(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(validate)


def validate(
    paths: Paths,
    no_load: Annotated[
        bool, typer.Option("--no-load", help="Only read the scripts; do not load them in a sandbox.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check manifests, scripts, schemas and limits. Exits 1 when something must be mended; warnings are advice."""
    import asyncio

    from scrapeyard.authoring.findings import is_good, scraper_folders
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.common.output import show_json

    folders = scraper_folders(paths)
    found = asyncio.run(_check(folders, author_settings(folders), load=not no_load))
    if as_json:
        show_json([_document(folder, findings) for folder, findings in found.items()])
    else:
        _show(found)
    if not all(is_good(findings) for findings in found.values()):
        raise typer.Exit(1)


async def _check(folders: list[Path], settings: "Settings", *, load: bool) -> "dict[Path, list[Finding]]":
    from scrapeyard.authoring.validating import validate
    from scrapeyard.cli.runs.local import open_yard

    async with AsyncExitStack() as stack:
        yard = await stack.enter_async_context(open_yard(settings)) if load else None
        return {folder: await validate(yard, folder, settings.limits.as_limits()) for folder in folders}


def _document(folder: Path, findings: "list[Finding]") -> dict[str, object]:
    from scrapeyard.authoring.findings import is_good

    points = [finding.document() for finding in findings]
    return {"folder": str(folder), "valid": is_good(findings), "points": points}


def _show(found: "dict[Path, list[Finding]]") -> None:
    from scrapeyard.authoring.findings import is_good
    from scrapeyard.cli.authoring.common import show_findings

    for folder, findings in found.items():
        typer.echo(str(folder))
        show_findings(findings)
    bad = sum(not is_good(findings) for findings in found.values())
    warnings = sum(finding.state == "warn" for findings in found.values() for finding in findings)
    typer.echo(f"scrapers: {len(found)}, to be mended: {bad}, warnings: {warnings}", err=True)


def register_test(app: typer.Typer) -> None:
    """Add the command."""
    app.command("test")(replay)


def replay(
    paths: Paths,
    case: Annotated[str | None, typer.Option(help="Run only this case.")] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Save the current results as the expected ones. Check the diff afterwards.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded cases and compare. Exits 1 when a case fails, or when there is none."""
    import asyncio

    from scrapeyard.authoring.findings import scraper_folders
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.runs.running import until_done

    folders = scraper_folders(paths)
    tell = None if as_json else _show_tested
    work = _run_all(folders, author_settings(folders), case, update, tell)
    found: dict[Path, list[CaseReport]] = asyncio.run(until_done(work))
    if as_json:
        show_json([_tested_document(folder, reports) for folder, reports in found.items()])
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


def _show_tested(folder: Path, report: "CaseReport") -> None:
    from scrapeyard.cli.authoring.common import show_diff, styled
    from scrapeyard.cli.common.output import duration, plain

    mark = "new" if report.updated else "pass" if report.passed else "fail"
    spent = f"  {duration(report.outcome.usage.wall_ms)}" if report.outcome else ""
    typer.echo(f"{styled(mark)} {folder}: {report.name}{spent}")
    for words in (*report.faults, *report.warnings):
        for line in words.splitlines():
            typer.echo(f"     {plain(line)}")
    show_diff(report.diff, indent=5)


def _tested_document(folder: Path, reports: "list[CaseReport]") -> dict[str, Any]:
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


def register_certify(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(certify)


def certify(paths: Paths, as_json: AsJson = False) -> None:
    """Validate, replay every case twice, and check inputs, output schema and limits. Exits 1 unless all is good."""
    import asyncio

    from scrapeyard.authoring.findings import scraper_folders
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.runs.running import until_done

    folders = scraper_folders(paths)
    found: list[Certificate] = asyncio.run(until_done(_certify(folders, author_settings(folders))))
    if as_json:
        show_json([certificate.document() for certificate in found])
    else:
        for certificate in found:
            _show_certified(certificate)
    if not all(certificate.is_granted for certificate in found):
        raise typer.Exit(1)


async def _certify(folders: list[Path], settings: "Settings") -> "list[Certificate]":
    from scrapeyard.authoring.certifying import certify
    from scrapeyard.cli.runs.local import open_yard

    async with open_yard(settings) as yard:
        return [await certify(yard, folder, settings.limits.as_limits()) for folder in folders]


def _show_certified(certificate: "Certificate") -> None:
    from scrapeyard.cli.authoring.common import show_findings

    ref = certificate.scraper.ref if certificate.scraper else None
    typer.echo(f"{certificate.folder}{f'  {ref}' if ref else ''}")
    show_findings(certificate.findings)
    for room in certificate.headroom:
        typer.echo(
            f"       {room.limit:<13} {room.used:>10.4g} of {room.allowed:g} ({room.percent:.3g} %), {room.case}"
        )
    verdict = "certified" if certificate.is_granted else "not certified"
    typer.echo(f"  {verdict}")
