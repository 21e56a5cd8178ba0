"""`certify`: is a scraper ready for release?"""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from scrapeyard.cli.authoring.common import Paths
from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
    from scrapeyard.authoring.certifying import Certificate
    from scrapeyard.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(certify)


def certify(paths: Paths, as_json: AsJson = False) -> None:
    """Validate, replay every case twice, and check inputs, output schema and limits. Exits 1 unless all is good."""
    import asyncio

    from scrapeyard.authoring.findings import scraper_folders
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.runs.run import until_done

    folders = scraper_folders(paths)
    found: list[Certificate] = asyncio.run(until_done(_certify(folders, author_settings(folders))))
    if as_json:
        show_json([certificate.document() for certificate in found])
    else:
        for certificate in found:
            _show(certificate)
    if not all(certificate.is_granted for certificate in found):
        raise typer.Exit(1)


async def _certify(folders: list[Path], settings: "Settings") -> "list[Certificate]":
    from scrapeyard.authoring.certifying import certify
    from scrapeyard.cli.runs.local import open_yard

    async with open_yard(settings) as yard:
        return [await certify(yard, folder, settings.limits.as_limits()) for folder in folders]


def _show(certificate: "Certificate") -> None:
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
