"""Options of jobs that several commands share. Imports nothing of ours, so that `--help` is quick."""

from typing import Annotated, Literal

import typer

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
    Literal["full", "seo", "diff", "records"] | None,
    typer.Option("--type", help="Which columns. Default: full for pages, records (its own fields) for other scrapers."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 also when single items ended as errors.")]
