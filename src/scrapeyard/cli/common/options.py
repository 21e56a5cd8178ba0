"""Options and groups that several commands share. Imports nothing heavy, so that `--help` is quick."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name

from scrapeyard.cli.common import server_address
from scrapeyard.cli.common.listing import complete_ids, complete_scrapers, server_name

DEFAULT_URL = server_address.DEFAULT_URL
FORMATS = ".json, .jsonl or .csv; of a page .md, .html or .txt"
PAGE_FILES = {".md": "markdown", ".html": "html", ".txt": "text"}
"""Extensions of files that hold one part of a page, and that part."""


def _server(context: typer.Context, given: str) -> str:
    """The server of a command: its own option, else its group's, else the one in force."""
    from scrapeyard.errors import BadRequest

    at: Any = context
    while at is not None:
        name = server_name(at)
        source = at.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return str(at.params.get(name) or given)
        at = at.parent
    try:
        return server_address.server_in_force()
    except BadRequest:
        if context.resilient_parsing:  # the shell completes; nothing may be told
            return given
        raise


ServerUrl = Annotated[
    str,
    typer.Option(
        "--server",
        callback=_server,
        help="URL of the server. Default: SCRAPEYARD_SERVER, then the one saved by `scrapeyard login`.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help=f"Write the result to a file ({FORMATS}) instead of stdout.")
]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Input fields. Numbers, true, [..] and {..} are read as JSON."),
]
Input = Annotated[
    str | None, typer.Option("--input", "-i", help="Input as a JSON object; @file reads it from a file, @- from stdin.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WholeRun = Annotated[bool, typer.Option("--json", help="Print the whole run as JSON, not only its result.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Allow requests to private and loopback addresses.")
]
ScrapersFolder = Annotated[
    Path | None, typer.Option("--scrapers", help="Folder of scrapers.", file_okay=False, exists=True)
]
RunId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Run id, the beginning of one, or `last`.", autocompletion=complete_ids("run")),
]
JobId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Job id, the beginning of one, or `last`.", autocompletion=complete_ids("job")),
]
OfScraper = Annotated[
    str | None,
    typer.Option("--scraper", help="Only those of this scraper (site/task).", autocompletion=complete_scrapers),
]


ListWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE | - | --urls URL...]", help="List of items: CSV, JSONL, JSON or one URL per line; .gz too."
    ),
]
AreUrls = Annotated[bool, typer.Option("--urls", help="The arguments are URLs, not a file.")]
ListFormat = Annotated[
    Literal["auto", "csv", "jsonl", "json", "urls"] | None,
    typer.Option("--format", help="Format of the list. Default: the ending of its name."),
]
Delimiter = Annotated[
    Literal[",", ";", "|", "tab"] | None, typer.Option(help="CSV delimiter. Default: guessed from the first line.")
]
Names = Annotated[str | None, typer.Option(help="Column names of a CSV file without a header, separated by commas.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="COLUMN=FIELD", help="Read this input field from this column; may be repeated."),
]
Given = Annotated[
    str | None, typer.Option("--input", "-i", help="Input fields that all items share: a JSON object or @file.")
]
BadRows = Annotated[
    Literal["reject", "skip"] | None,
    typer.Option(
        help="Reject a list with invalid rows, or skip those rows. Default: reject; sitemaps and links: skip."
    ),
]
Policy = Annotated[
    str | None, typer.Option(help='Policy for the items, as a JSON object or @file: {"retries": 2, "rate": 20}.')
]
Rate = Annotated[
    float | None, typer.Option(help="Maximum items started per second; sets `rate` of the policy.", min=0.0001)
]
NoState = Annotated[bool, typer.Option("--no-state", help="Start with an empty ctx.state and do not save it.")]
NO_LIMIT = 100_000.0
"""The highest rate there is."""
ExportType = Annotated[
    Literal["full", "pages", "seo", "diff", "links", "records"] | None,
    typer.Option(
        "--type", help="Set of columns. Default: full for pages, records (the fields of the result) for other scrapers."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if any item failed.")]


Called = TypeVar("Called", bound=Callable[..., Any])


class _PlainValues:
    """Reads the value of a parameter without pydantic, which Typer would load to read a text. What it cannot read, such
    as a number that was given, is left to Typer."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Called by Typer."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if value is param.default or (param.type_descriptor.annotation is str and isinstance(value, str)):
            return value
        if param.type_descriptor.annotation == list[str] and isinstance(value, tuple | list):
            return list(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _read_plainly(params: Iterable[Any]) -> None:
    for param in params:
        if getattr(param, "_runtime_param", param) is None:  # not yet chosen; another Typer may have no such thing
            param._runtime_param = _PlainValues()


class Command(TyperCommand):
    """A command that takes `--url` for `--server`, its former name, which help does not list."""

    def make_parser(self, ctx: Any) -> Any:
        """Called by Typer."""
        _read_plainly(self.get_params(ctx))
        return _take_former_name(super().make_parser(ctx), self.params)


def _take_former_name(parser: Any, params: Sequence[Any]) -> Any:
    known = {name: param for param in params for name in param.opts}
    if "--server" in known and "--url" not in known:
        parser.add_option(obj=known["--server"], opts=["--url"], dest=known["--server"].name)
    return parser


class Group(TyperGroup):
    """A group of commands, or the program. Takes `--url` as `Command` does."""

    def make_parser(self, ctx: Any) -> Any:
        """Called by Typer."""
        _read_plainly(self.get_params(ctx))
        return _take_former_name(super().make_parser(ctx), self.params)


class Commands(typer.Typer):
    """The program, or a group of its commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, cls=Group, rich_markup_mode=None)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Called], Called]:
        """As Typer's."""
        return super().command(name, **{"cls": Command, **options})


@contextlib.contextmanager
def outlined(app: typer.Typer, words: Sequence[str]) -> Iterator[None]:
    """Meanwhile the commands that `words` do not name have no parameters. Typer builds every command before it runs or
    lists any, and most of that time goes into parameters that nobody asks for."""
    hidden = [info for info in _commands(app) if _name(info) not in words and info.callback is not None]
    whole = [info.callback for info in hidden]
    for info in hidden:
        info.callback = _outline(info.callback)
    try:
        yield
    finally:
        for info, callback in zip(hidden, whole, strict=True):
            info.callback = callback


def _commands(app: typer.Typer) -> Iterator[Any]:
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance)


def _name(info: Any) -> str:
    return str(info.name or get_command_name(info.callback.__name__))


def _outline(command: Any) -> Callable[[], None]:
    def outline() -> None: ...

    outline.__name__, outline.__doc__ = command.__name__, command.__doc__
    return outline


def add_group(app: typer.Typer, name: str, group: typer.Typer, bare: Callable[[str], None]) -> None:
    """Add a group to the program; called without a command it does `bare` with the server's address."""

    @group.callback(invoke_without_command=True)
    def _bare(context: typer.Context, url: ServerUrl = DEFAULT_URL) -> None:
        if context.invoked_subcommand is None:
            bare(url)

    app.add_typer(group, name=name)
