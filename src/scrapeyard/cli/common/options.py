"""Options and groups that several commands share. Imports nothing heavy, so that `--help` is quick."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

DEFAULT_URL = "http://127.0.0.1:8000"
FORMATS = ".json, .jsonl or .csv"

ServerUrl = Annotated[str, typer.Option("--url", envvar="SCRAPEYARD_URL", help="The server to call.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help=f"Write the result to a file ({FORMATS}) instead of stdout.")
]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Parts of the input. Numbers, true, [..] and {..} are read as JSON."),
]
Input = Annotated[
    str | None, typer.Option("--input", "-i", help="The input as a JSON object, @file to read one, @- for stdin.")
]
AsJson = Annotated[bool, typer.Option("--json", help="The whole document as JSON.")]
WholeRun = Annotated[bool, typer.Option("--json", help="The whole run as JSON, not its result alone.")]
AllowPrivate = Annotated[bool, typer.Option("--allow-private", help="Let it fetch private and loopback addresses.")]
ScrapersFolder = Annotated[
    Path | None, typer.Option("--scrapers", help="Folder with scrapers.", file_okay=False, exists=True)
]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run, as `scrapeyard runs` lists it.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job, as `scrapeyard jobs` lists it.")]


ListWords = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE | - | --urls URL...]", help="A list (CSV, JSONL, JSON, addresses; .gz too)."),
]
AreUrls = Annotated[bool, typer.Option("--urls", help="The words are addresses, not a file.")]
ListFormat = Annotated[
    Literal["auto", "csv", "jsonl", "json", "urls"] | None,
    typer.Option("--format", help="Of the list; default: as its name says."),
]
Delimiter = Annotated[
    Literal[",", ";", "|", "tab"] | None, typer.Option(help="Of CSV; default: told from its first line.")
]
Names = Annotated[str | None, typer.Option(help="Columns of CSV without a header, parted by commas.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="COLUMN=FIELD", help="This column is this field of the input; may be repeated."),
]
Given = Annotated[str | None, typer.Option("--input", "-i", help="Fields that every item has: a JSON object or @file.")]
BadRows = Annotated[
    Literal["reject", "skip"] | None,
    typer.Option(help="Refuse a list with unusable rows, or leave them out; default: reject; sitemaps, links: skip."),
]
Policy = Annotated[
    str | None, typer.Option(help='How items are run, as a JSON object or @file: {"retries": 2, "rate": 20}.')
]
Rate = Annotated[float | None, typer.Option(help="Items begun a second; short for the policy's rate.", min=0.0001)]
ExportType = Annotated[
    Literal["full", "seo", "diff", "links", "records"] | None,
    typer.Option("--type", help="Which columns. Default: full for pages, records (its own fields) for other scrapers."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 also when single items ended as errors.")]


def add_group(app: typer.Typer, name: str, group: typer.Typer, bare: Callable[[str], None]) -> None:
    """Add a group to the program; called without a command it does `bare` with the server's address."""

    @group.callback(invoke_without_command=True)
    def _bare(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            bare(os.environ.get("SCRAPEYARD_URL") or DEFAULT_URL)

    app.add_typer(group, name=name)
