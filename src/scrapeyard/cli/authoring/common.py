"""What the author's commands share: the settings they run under, and how findings are shown."""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from scrapeyard.authoring.findings import Finding
    from scrapeyard.settings import Settings

_COLOURS = {"ok": "green", "pass": "green", "new": "green", "warn": "yellow", "fail": "red"}

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="A scraper's folder, or a folder with many.", show_default=False)
]


def author_settings(folders: list[Path] | None = None, **overrides: Any) -> "Settings":
    """The settings in force, with a quiet platform log. Raises SettingsInvalid.

    Scrapers in `folders` load as if an operator had granted what they request; tests do not give it to them.
    """
    from scrapeyard.cli.runs.running import quiet
    from scrapeyard.settings import load

    settings = load(overrides)
    quiet(settings.log)
    if not folders:
        return settings
    granted = (*settings.sandbox.direct_network, *_ids(folders))
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"direct_network": granted})})


def _ids(folders: list[Path]) -> list[str]:
    from scrapeyard.authoring.cassette import read_bounded
    from scrapeyard.cli.runs.running import read_beside
    from scrapeyard.errors import ScraperInvalid
    from scrapeyard.repository.manifest.manifest import FILE_NAME, MAX_BYTES, read_manifest

    found = []
    for folder in folders:
        try:
            text = read_bounded(folder / FILE_NAME, MAX_BYTES)
            found.append(read_manifest(text, "", partial(read_beside, folder)).id)
        except ScraperInvalid:
            continue  # loading it later reports the error
    return found


def styled(mark: str) -> str:
    """A mark padded to the widest, in colour on a terminal."""
    return typer.style(f"{mark:<4}", fg=_COLOURS[mark]) if sys.stdout.isatty() else f"{mark:<4}"


def show_findings(findings: "Iterable[Finding]") -> None:
    """A line for each, and under it what to do."""
    from scrapeyard.cli.common.output import plain

    for finding in findings:
        first, *rest = finding.detail.splitlines() or [""]
        typer.echo(f"  {styled(finding.state)} {finding.point:<13} {plain(first)}")
        for line in rest:
            typer.echo(f"{'':<21}{plain(line)}")
        if finding.remedy:
            typer.echo(f"{'':<21}→ {plain(finding.remedy)}")


def show_diff(lines: "Iterable[str]", indent: int = 0) -> None:
    """The lines of a diff, in colour on a terminal."""
    from scrapeyard.cli.common.output import plain

    colours = {"+": "green", "-": "red", "@": "cyan"} if sys.stdout.isatty() else {}
    for line in lines:
        colour = colours.get(line[:1])
        text = plain(line)
        typer.echo(" " * indent + (typer.style(text, fg=colour) if colour else text))
