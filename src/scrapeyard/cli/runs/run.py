"""`run`: a scraper here and now, with the same walls and limits as on the server, and no server.

With `--file` a whole job: `run_file.py`.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.common.options import (
    AllowPrivate,
    BadRows,
    Columns,
    Delimiter,
    ExportType,
    Input,
    ListFormat,
    Names,
    NoState,
    Pairs,
    Policy,
    Rate,
    ScrapersFolder,
    Strict,
    WholeRun,
)
from scrapeyard.cli.common.page_options import (
    Body,
    Cookies,
    EngineName,
    ExcludeTags,
    FieldPairs,
    Fields,
    Formats,
    IncludeTags,
    Method,
    OnlyMain,
    PageOptions,
    RequestHeaders,
    Screenshot,
    WaitFor,
)
from scrapeyard.cli.runs.running import folder_of, quiet, say, until_done

if TYPE_CHECKING:
    from scrapeyard.cli.jobs.calls import JobTerms
    from scrapeyard.cli.runs.local import LocalYard
    from scrapeyard.model import Limits, Outcome, Run, Scraper
    from scrapeyard.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)


def run(
    target: Annotated[str, typer.Argument(help="Folder of a scraper, scraper id (site/task), or URL.")],
    *,
    pairs: Pairs = None,
    given: Input = None,
    formats: Formats = None,
    field: FieldPairs = None,
    fields: Fields = None,
    header: RequestHeaders = None,
    cookie: Cookies = None,
    method: Method = None,
    body: Body = None,
    only_main: OnlyMain = None,
    include_tag: IncludeTags = None,
    exclude_tag: ExcludeTags = None,
    engine: EngineName = None,
    wait_for: WaitFor = None,
    screenshot: Screenshot = False,
    timeout: Annotated[
        float | None, typer.Option(help="Maximum seconds, if less than the scraper's own limit.", min=0.001)
    ] = None,
    allow_private: AllowPrivate = False,
    scrapers: ScrapersFolder = None,
    artifacts: Annotated[
        Path | None, typer.Option(help="Copy the artifacts of the run into this folder.", file_okay=False)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show on stderr where the time went.")] = False,
    as_json: WholeRun = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write to a file: .json, .jsonl or .csv; with --file also .xlsx or .parquet."
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", help="Run a whole job without a server: list of inputs, or - for stdin."),
    ] = None,
    policy: Policy = None,
    rate: Rate = None,
    kind: ExportType = None,
    list_format: ListFormat = None,
    delimiter: Delimiter = None,
    names: Names = None,
    column: Columns = None,
    bad_rows: BadRows = None,
    max_wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Give up after so many seconds without a success. Default: 60; after a first success 900.",
        ),
    ] = None,
    strict: Strict = False,
    no_state: NoState = False,
) -> None:
    """Run a scraper here, with the same walls and limits as on the server, and no server. With --file, on every input
    of a list; the options from --policy on go with it."""
    import asyncio

    from scrapeyard.cli.common.inputs import check_output
    from scrapeyard.cli.jobs.calls import JobTerms
    from scrapeyard.settings import load

    page = PageOptions.among(locals())
    overrides = {"repository": {"scrapers": scrapers}, "http": {"allow_private": allow_private or None}}
    terms = JobTerms(
        policy=policy,
        rate=rate,
        format=list_format,
        delimiter=delimiter,
        names=names,
        columns=column or (),
        given=given,
        bad_rows=bad_rows,
    )
    if file is not None:
        from scrapeyard.cli.jobs.results import check_stdout, chosen_format
        from scrapeyard.cli.runs.run_file import FileRun, run_file

        _check_list(target, artifacts, explain, kind)
        check_stdout(output, chosen_format(output, None), as_json)
        asked = FileRun(
            target=target,
            file=file,
            terms=terms,
            pairs=pairs or [],
            page=page.table(),
            timeout=timeout,
            output=output,
            kind=kind,
            form=chosen_format(output, None),
            max_wait=max_wait,
            keeps_state=not no_state,
        )
        settings = load(overrides)
        quiet(settings.log)
        run_file(asked, settings, strict=strict, as_json=as_json)
        return
    _check_single(terms, more=strict or kind is not None or max_wait is not None)
    check_output(output)
    settings = load(overrides)
    quiet(settings.log)
    job = _Local(target, pairs or [], given, timeout, artifacts, page=page.table(output), keeps_state=not no_state)
    ended, outcome, result = asyncio.run(until_done(job.run(settings)))
    if explain:
        _tell_explanation(ended, job.allowed())
    _finish(ended, outcome, result, as_json, output)


def _check_list(target: str, artifacts: Path | None, explain: bool, kind: str | None) -> None:
    from scrapeyard.cli.common.inputs import is_address
    from scrapeyard.errors import BadRequest

    if is_address(target):
        raise BadRequest("with --file the target is a scraper, such as builtin/page; the addresses stand in the list")
    if artifacts is not None or explain:
        raise BadRequest("--artifacts and --explain go with a single run, not with --file")
    if kind == "diff":
        raise BadRequest("--type diff compares jobs of a server; see `scrapeyard jobs results --help`")


def _check_single(terms: "JobTerms", *, more: bool) -> None:
    from dataclasses import replace

    from scrapeyard.cli.jobs.calls import JobTerms
    from scrapeyard.errors import BadRequest

    if replace(terms, given=None) != JobTerms() or more:
        raise BadRequest("--policy, --rate, --type, --max-wait, --strict and the options of lists go with --file")


class _Local:
    """The options of the command, and its steps."""

    def __init__(
        self,
        target: str,
        pairs: list[str],
        given: str | None,
        timeout: float | None,
        artifacts: Path | None,
        *,
        page: dict[str, Any],
        keeps_state: bool,
    ) -> None:
        self._target = target
        self._pairs = pairs
        self._given = given
        self._page = page
        self._timeout = timeout
        self._artifacts = artifacts
        self._keeps_state = keeps_state
        self._limits: Limits | None = None

    def allowed(self) -> "Limits":
        """The limits that were in force; only after `run`."""
        from msgspec.structs import replace

        from scrapeyard.model import Limits

        limits = self._limits or Limits()
        return (
            limits if self._timeout is None else replace(limits, wall_seconds=min(limits.wall_seconds, self._timeout))
        )

    async def run(self, settings: "Settings") -> "tuple[Run, Outcome, bytes]":
        from scrapeyard.cli.common.inputs import complete, is_address, read_input
        from scrapeyard.cli.runs.local import open_yard

        has_scripts = not self._is_builtin()
        async with open_yard(settings, has_scripts=has_scripts, keeps_state=self._keeps_state) as yard:
            scraper = await self._scraper(yard)
            self._limits = scraper.limits
            url = complete(self._target) if is_address(self._target) else None
            value = read_input(self._given, self._pairs, lambda: scraper.input_schema, url) | self._page
            value = yard.check(scraper, value)
            ended, outcome = await yard.run(scraper, value, timeout=self._timeout, hear=say)
            if self._artifacts is not None:
                await _copy_artifacts(yard, outcome, self._artifacts)
            return ended, outcome, await yard.result(outcome)

    def _is_builtin(self) -> bool:
        from scrapeyard.cli.common.inputs import is_address

        return is_address(self._target) or self._target.startswith("builtin/")

    async def _scraper(self, yard: "LocalYard") -> "Scraper":
        from scrapeyard.builtin import PAGE, default_for
        from scrapeyard.cli.common.inputs import is_address
        from scrapeyard.wiring.builtins import all_builtins

        wanted = default_for(self._page, PAGE) if is_address(self._target) else self._target
        if wanted.startswith("builtin/") and (found := all_builtins().get(wanted)) is not None:
            return found.scraper
        folder = folder_of(self._target)
        return await yard.find(self._target) if folder is None else yard.load(folder)


async def _copy_artifacts(yard: "LocalYard", outcome: "Outcome", folder: Path) -> None:
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.errors import BadRequest

    try:
        folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  the run is over
    except OSError as error:
        raise BadRequest(f"{folder}: cannot be made: {error.strerror}") from None
    for artifact in outcome.artifacts:
        with whole_file(folder / artifact.name) as stream:
            async for piece in yard.blobs.stream(artifact.key):
                stream.write(piece)
        typer.echo(f"kept {folder / artifact.name}", err=True)


def _tell_explanation(ended: "Run", allowed: "Limits") -> None:
    import json

    from scrapeyard.cli.runs.summary import explanation
    from scrapeyard.gateway.runs.documents import encode
    from scrapeyard.gateway.runs.explain import explain

    document = explain(ended, allowed, time.time())
    typer.echo(explanation(json.loads(encode(document))), err=True)


def _finish(ended: "Run", outcome: "Outcome", result: bytes, as_json: bool, output: Path | None) -> None:
    import json

    from scrapeyard.cli.common.inputs import write_result
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.model import RunStatus

    good = ended.status is RunStatus.SUCCEEDED
    value = json.loads(result)
    if good and output is not None:
        write_result(output, value)
    if as_json:
        show_json(_document(ended, value))
    elif good and output is None:
        show_json(value)
    if outcome.logs_cut:
        typer.echo("scrapeyard: the script wrote more than its log limit; the rest was cut", err=True)
    if ended.partial and not as_json:
        typer.echo("scrapeyard: the script yielded records before it failed; --json shows them", err=True)
    if not good:
        _tell_bad_end(ended)
        raise typer.Exit(1)
    if ended.error is not None:
        typer.echo(f"scrapeyard: {ended.exit_reason}: {ended.error.message}", err=True)


def _document(ended: "Run", value: Any) -> dict[str, Any]:
    """A run as the server shows it, without links: there is no server to follow them to."""
    import json

    from scrapeyard.gateway.runs.documents import encode, summary

    shown: dict[str, Any] = json.loads(encode(summary(ended)))
    del shown["links"]
    for artifact in shown["artifacts"]:
        del artifact["href"]
    return {**shown, "result": value}


def _tell_bad_end(ended: "Run") -> None:
    from scrapeyard.cli.runs.summary import tell_local_end
    from scrapeyard.model import ExitReason

    tell_local_end(ended.exit_reason or ExitReason.INTERNAL_ERROR, ended.error)
