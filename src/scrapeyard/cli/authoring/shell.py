"""`shell`: a prompt to try selectors on a page, with the engine of a worker and no server."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.common.options import AllowPrivate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapeyard.cli.runs.engine_context import EngineThread
    from scrapeyard_sdk.page import Page

_HISTORY_LINES = 2000
_BANNER = """\
{page}
  page          the page; page.css("h1"), page.text("h1"), page.css_first("a"), page.html
  fetch(url)    another page, with the options of ctx.fetch
  ctx           as in a script: page = await ctx.fetch(url)
  view(page)    look at a page in the browser
Ctrl-D ends the shell."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(shell)


def shell(
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="The page to begin with.")] = None,
    allow_private: AllowPrivate = False,
) -> None:
    """Open a prompt with a page: try selectors, fetch more pages. No server is needed."""
    from scrapeyard.cli.common.inputs import complete
    from scrapeyard.cli.runs.engine_context import EngineThread
    from scrapeyard.cli.runs.running import quiet
    from scrapeyard.settings import load

    address = complete(url) if url else ""
    settings = load({"http": {"allow_private": allow_private or None}})
    quiet(settings.log)
    with EngineThread(settings) as engine:
        page = _first(engine, address) if address else None
        names = {"page": page, "fetch": engine.fetch, "ctx": engine.context(address), "view": view}
        _interact(engine, names, _BANNER.format(page=page or "no page yet"))


def _first(engine: "EngineThread", url: str) -> "Page | None":
    from scrapeyard.cli.common.output import plain
    from scrapeyard_sdk.outcomes import FetchError

    try:
        return engine.fetch(url)
    except FetchError as error:
        typer.echo(f"scrapeyard: {plain(str(error))}", err=True)
        return None


def view(page: "Page") -> str:
    """Open a page in the browser, as it came; returns where it lies."""
    import html
    import webbrowser

    from scrapeyard.cli.common.server_address import user_folder

    file = user_folder("XDG_CACHE_HOME", ".cache") / "view.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    base = f'<base href="{html.escape(page.url)}">'
    file.write_text(f"<!doctype html><meta charset=utf-8>{base}\n{page.html}", "utf-8", "replace")
    webbrowser.open(file.as_uri())
    return str(file)


def _interact(engine: "EngineThread", names: dict[str, Any], banner: str) -> None:
    """IPython if it is installed and this is a terminal, else Python's own prompt."""
    from importlib.util import find_spec

    if sys.stdin.isatty() and find_spec("IPython"):
        from importlib import import_module

        typer.echo(banner, err=True)
        import_module("IPython").start_ipython(argv=["--no-banner"], user_ns=names)
        return
    with _history():
        _console(engine, names).interact(banner, exitmsg="")


def _console(engine: "EngineThread", names: dict[str, Any]) -> Any:
    import ast
    import code
    import inspect
    import traceback
    import types

    class Console(code.InteractiveConsole):
        """Python's prompt, with `await` at its top level."""

        def runcode(self, code: types.CodeType) -> None:
            try:
                found = types.FunctionType(code, self.locals)()
                if inspect.iscoroutine(found):
                    engine.wait(found)
            except SystemExit:
                raise
            except BaseException:  # noqa: BLE001  Ctrl-C ends what runs, not the shell
                self.showtraceback()

        def showtraceback(self) -> None:
            """Only lines that were typed here, then the error."""
            error = sys.exc_info()[1]
            typed = [each for each in traceback.extract_tb(sys.exc_info()[2]) if each.filename == self.filename]
            shown = ["Traceback (most recent call last):\n", *traceback.format_list(typed)] if typed else []
            self.write("".join([*shown, *traceback.format_exception_only(error)]))

    console = Console(names)
    console.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    if not sys.stdin.isatty():
        sys.ps1 = sys.ps2 = ""
    return console


@contextmanager
def _history() -> "Iterator[None]":
    """Lines of earlier shells, and completion of names. Without a terminal, or where the file cannot be written, none
    are kept."""
    import contextlib

    try:
        import readline
        import rlcompleter  # noqa: F401  completes names at the prompt
    except ImportError:
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    file = history_file()
    readline.parse_and_bind("tab: complete")
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_history_length(_HISTORY_LINES)
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            readline.write_history_file(file)


def history_file() -> Path:
    """Where the shell keeps its history."""
    from scrapeyard.cli.common.server_address import user_folder

    return user_folder("XDG_STATE_HOME", ".local/state") / "shell_history"
