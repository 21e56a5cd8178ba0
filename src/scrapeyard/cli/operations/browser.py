"""`browser`: what this machine has for pages in a browser, and how to get it."""

from typing import Annotated

import typer

from scrapeyard.cli.common.options import AsJson, Commands


def register(app: typer.Typer) -> None:
    """Add the commands."""
    browser = Commands(name="browser", help="The browser of this machine's workers.", no_args_is_help=True)
    browser.command("status")(status)
    browser.command("install")(install)
    app.add_typer(browser)


def status(as_json: AsJson = False) -> None:
    """Show which browser workers of this machine use. Exits 1 when there is none. `doctor` also starts it."""
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.engines.browser.found import find_browser
    from scrapeyard.settings import load

    settings = load().browser
    found = find_browser(settings)
    if as_json:
        told = {"driver": settings.driver, "browser": settings.name}
        show_json({**told, "executable": found.executable, "missing": found.missing})
    else:
        typer.echo(found.missing or f"{found.executable or 'the download of ' + settings.driver}, by {settings.driver}")
    if found.missing:
        raise typer.Exit(1)


def install(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands without running them.")] = False,
) -> None:
    """Install a browser: Chromium by apt where that is allowed, otherwise by the driver's own download."""
    import os
    import shlex
    import subprocess

    from scrapeyard.engines.browser.found import find_browser, install_commands
    from scrapeyard.errors import BadRequest
    from scrapeyard.extras import missing
    from scrapeyard.settings import load

    settings = load().browser
    if settings.driver == "patchright" and (words := missing("browser")):
        raise BadRequest(words)
    if not dry_run and not find_browser(settings).missing:
        typer.echo("a browser is installed; `scrapeyard browser status` shows it", err=True)
        return
    for command in install_commands(settings, is_root=os.geteuid() == 0):
        typer.echo(shlex.join(command), err=not dry_run)
        if not dry_run and subprocess.call(command) != 0:
            raise BadRequest("the installation failed; install Chromium by your system's packages, and run this again")
    if dry_run:
        return
    if words := find_browser(settings).missing:
        raise BadRequest(f"installed, but not found: {words}")
