"""The command line: data on stdout, logs and progress on stderr.

Exit codes: 0 done · 1 the run or job ended badly or not in time, or a check failed · 2 wrong usage, input or settings
· 3 the server cannot be reached · 130 interrupted.
"""

import atexit
import contextlib
import gc
import os
import sys
import threading
from typing import NoReturn

import typer

from scrapeyard import __version__
from scrapeyard.cli.authoring import dev, importing, patterns, shell
from scrapeyard.cli.authoring.publish import register_publish, register_signing
from scrapeyard.cli.authoring.record import register_new, register_record
from scrapeyard.cli.authoring.test import register_certify, register_test, register_validate
from scrapeyard.cli.common.options import Commands, outlined
from scrapeyard.cli.crawls import crawl
from scrapeyard.cli.crawls import map as site_map
from scrapeyard.cli.doctor import command as doctor
from scrapeyard.cli.jobs import commands as jobs
from scrapeyard.cli.mcp import command as mcp
from scrapeyard.cli.operations import alerts, audit, browser, cache, config, keys, login, plan, schedule, secrets, usage
from scrapeyard.cli.operations.serve import register_demo, register_serve
from scrapeyard.cli.operations.sites import register_sites, register_workers
from scrapeyard.cli.runs import extract, replay, run, runs, scrape, scrapers

app = Commands(
    name="scrapeyard",
    help="A self-hosted Lambda for scrapers.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for register in (
    *(
        register_serve,
        login.register,
        run.register,
        scrape.register,
        extract.register,
        replay.register,
        crawl.register,
        site_map.register,
    ),
    *(runs.register, jobs.register, schedule.register),
    *(scrapers.register, register_workers, register_sites, cache.register, alerts.register),
    *(keys.register, usage.register, audit.register, secrets.register, mcp.register),
    *(register_new, importing.register, dev.register, shell.register, patterns.register),
    *(register_validate, register_record, register_test, register_certify),
    *(
        register_publish,
        register_signing,
        browser.register,
        doctor.register,
        config.register,
        plan.register,
        register_demo,
    ),
):
    register(app)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


_OBJECTS = 200_000
"""New objects until the collector looks at them. Most commands end before; nearly all that they make is in use."""

_COMPLETION = "_SCRAPEYARD_COMPLETE"
"""Set by a shell that completes a command line, which stands in another variable."""


def main() -> NoReturn:
    """The program `scrapeyard`. Ends the process itself, see `_end`."""
    gc.set_threshold(_OBJECTS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # to look for some, it reads the metadata of every package
    status: object = 0
    try:
        with contextlib.nullcontext() if _COMPLETION in os.environ else outlined(app, sys.argv[1:]):
            app()
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        status = 130
    except Exception as error:  # noqa: BLE001  what is not ours is shown with its traceback
        status = _report(error)
    _end(status)


def _end(status: object) -> NoReturn:
    """Do what the interpreter does at its end, but leave the objects to the system.

    Threads of obstore and wreq outlive the last answer by a moment. One that calls into an interpreter whose objects
    are gone aborts the process (status 134), though the command has done all its work.
    """
    if not isinstance(status, int | None):
        typer.echo(status, err=True)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads it any more, or it is closed
            status = 120  # as the interpreter does
    os._exit((status or 0) & 0xFF)


def _report(error: Exception) -> int:
    """Print the error, with its traceback if it is not ours, and return the exit code."""
    from scrapeyard.cli.common.client import ServerUnreachable
    from scrapeyard.cli.common.output import plain
    from scrapeyard.errors import BadRequest, NotFound, ScrapeyardError, SettingsInvalid

    if not isinstance(error, ScrapeyardError):
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    typer.echo(f"scrapeyard: {plain(error.message, lines=True)}", err=True)
    if isinstance(error, ServerUnreachable):
        return 3
    return 2 if isinstance(error, SettingsInvalid | BadRequest | NotFound) else 1
