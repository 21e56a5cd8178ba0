"""Options that several commands share. Imports nothing of ours, so that `--help` is quick."""

from pathlib import Path
from typing import Annotated

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
