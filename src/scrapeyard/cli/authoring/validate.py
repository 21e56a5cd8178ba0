"""`validate`: are these scrapers fit to be published?"""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrapeyard.cli.authoring.common import Paths
from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
    from scrapeyard.authoring.findings import Finding
    from scrapeyard.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(validate)


def validate(
    paths: Paths,
    no_load: Annotated[
        bool, typer.Option("--no-load", help="Do not load the scripts inside their walls; only read them.")
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
