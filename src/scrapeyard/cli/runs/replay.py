"""`replay`: perform a recording of Chrome's DevTools here, or on a server, or make a scraper of it."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AllowPrivate, Output, ServerUrl, WholeRun


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(replay)


def replay(
    file: Annotated[str, typer.Argument(help="Recording: a JSON export of the Recorder panel, or - for stdin.")],
    *,
    to_scraper: Annotated[
        Path | None,
        typer.Option(help="Write a scraper with these steps into this folder instead of replaying.", file_okay=False),
    ] = None,
    screenshots: Annotated[
        Literal["none", "failure", "each"] | None, typer.Option(help="Screenshots to keep. Default: failure.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a step leads to a URL or title that differs from the recording.")
    ] = False,
    artifacts: Annotated[
        Path | None, typer.Option(help="Copy screenshots and files of the run into this folder.", file_okay=False)
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Maximum seconds for the whole recording. Default: 300.", min=1)
    ] = None,
    allow_private: AllowPrivate = False,
    on_server: Annotated[
        bool, typer.Option("--on-server", help="Replay on the server instead of in this process.")
    ] = False,
    server: ServerUrl = DEFAULT_URL,
    as_json: WholeRun = False,
    output: Output = None,
) -> None:
    """Replay a recording of Chrome's DevTools in a browser and show the result of each step."""
    from scrapeyard.builtin import REPLAY
    from scrapeyard.cli.common.inputs import read_object
    from scrapeyard.errors import BadRequest

    recording = read_object(f"@{file}", "FILE")
    if to_scraper is not None:
        _write_scraper(recording, to_scraper)
        return
    if screenshots is not None:
        recording["screenshots"] = screenshots
    if strict:
        recording["strict"] = True
    if on_server and (artifacts is not None or timeout is not None):
        raise BadRequest("--artifacts and --timeout go with a replay here; `scrapeyard runs` has files of the server's")
    given = _as_input(recording)
    if on_server:
        from scrapeyard.cli.runs.scrape import scrape

        scrape(REPLAY, given=given, url=server, as_json=as_json, output=output)
        return
    from scrapeyard.cli.runs.run import run

    run(
        REPLAY,
        given=given,
        timeout=timeout,
        allow_private=allow_private,
        artifacts=artifacts,
        as_json=as_json,
        output=output,
    )


def _as_input(recording: dict[str, Any]) -> str:
    import json

    return json.dumps(recording)


def _write_scraper(recording: dict[str, Any], folder: Path) -> None:
    from scrapeyard.authoring.recorded_script import write_scraper
    from scrapeyard.builtin.replay.recording import read_recording
    from scrapeyard.errors import BadRequest

    try:
        written = write_scraper(folder, read_recording(recording))
    except OSError as error:
        raise BadRequest(f"{folder}: cannot be written: {error.strerror}") from None
    for path in written:
        typer.echo(path)
    typer.echo(f"Next: say in {written[0]} what to extract, then: scrapeyard run {folder}", err=True)
