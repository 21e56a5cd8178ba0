"""The command line: data on stdout, logs and progress on stderr.

Exit codes: 0 done · 1 the run ended badly, or a check failed · 2 wrong usage or settings · 3 the server cannot be
reached
· 130 interrupted.
"""

import sys

import typer

from scrapeyard import __version__
from scrapeyard.cli import serve
from scrapeyard.errors import ScrapeyardError, SettingsInvalid

app = typer.Typer(
    name="scrapeyard",
    help="A self-hosted Lambda for scrapers.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
serve.register(app)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """The program `scrapeyard`."""
    try:
        app()
    except SettingsInvalid as error:
        typer.echo(f"scrapeyard: {error.message}", err=True)
        sys.exit(2)
    except ScrapeyardError as error:
        typer.echo(f"scrapeyard: {error.message}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
