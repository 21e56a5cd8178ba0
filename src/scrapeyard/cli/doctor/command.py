"""`doctor`: does this machine have what is needed, and what to do where it has not."""

import sys
from typing import TYPE_CHECKING

import typer

from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from scrapeyard.cli.doctor.checks import CheckResult
    from scrapeyard.settings import Settings

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(as_json: AsJson = False) -> None:
    """Check this machine, the sandbox's walls and everything the settings name. Exits 1 when a check fails."""
    import asyncio

    from scrapeyard.cli.common.output import show_json

    found = asyncio.run(_examine(None if as_json else _print))
    if as_json:
        show_json([finding.document() for finding in found])
    failed = sum(finding.state == "fail" for finding in found)
    warned = sum(finding.state == "warn" for finding in found)
    if not as_json:
        typer.echo(f"\n{len(found)} checks: {failed} failed, {warned} warnings", err=True)
    if failed:
        raise typer.Exit(1)


async def _examine(tell: "Callable[[CheckResult], None] | None") -> "list[CheckResult]":
    found = []
    async for finding in _findings():
        found.append(finding)
        if tell is not None:
            tell(finding)
    return found


async def _findings() -> "AsyncIterator[CheckResult]":
    from scrapeyard.cli.doctor.checks import check_machine, fail, ok
    from scrapeyard.errors import SettingsInvalid
    from scrapeyard.settings import load

    for finding in check_machine():
        yield finding
    try:
        settings = load()
    except SettingsInvalid as error:
        yield fail("settings", error.message, "`scrapeyard config --describe` lists every key")
        return
    yield ok("settings", "readable; `scrapeyard config` shows them")
    async for finding in _with_settings(settings):
        yield finding


async def _with_settings(settings: "Settings") -> "AsyncIterator[CheckResult]":
    import asyncio

    from scrapeyard.cli.common.server_address import named_server
    from scrapeyard.cli.doctor import checks
    from scrapeyard.cli.doctor.checks import check_data_dir, check_sandbox
    from scrapeyard.cli.doctor.topics import check_topics
    from scrapeyard.settings import LogSettings
    from scrapeyard.telemetry.events import configure

    configure(LogSettings(level="error", format="human", lang=settings.log.lang))
    yield check_data_dir(settings.data_dir.resolve())
    async for finding in check_sandbox(settings):
        yield finding
    for check in (checks.check_browser, checks.check_store, checks.check_queue, checks.check_blobs):
        yield await check(settings)
    async for finding in check_topics(settings):
        yield finding
    async for finding in checks.check_sinks(settings):
        yield finding
    url, source = named_server()
    yield await asyncio.to_thread(checks.check_server, url, asked_for=bool(source))


def _print(finding: "CheckResult") -> None:
    from scrapeyard.cli.common.output import plain

    mark = typer.style(f"{finding.state:<5}", fg=_COLOURS[finding.state]) if sys.stdout.isatty() else finding.state
    lead = f"{mark} {finding.check:<16}" if sys.stdout.isatty() else f"{mark:<5} {finding.check:<16}"
    typer.echo(f"{lead} {plain(finding.detail)}")
    if finding.remedy:
        typer.echo(f"{'':<22} → {plain(finding.remedy)}")
