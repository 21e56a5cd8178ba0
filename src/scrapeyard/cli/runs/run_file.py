"""`run --file`: a whole job here and now, with no server."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

if TYPE_CHECKING:
    from scrapeyard.cli.jobs.calls import JobTerms
    from scrapeyard.cli.runs.local_job import LocalJobs
    from scrapeyard.cli.runs.waiting import JobWait
    from scrapeyard.model.export import Export
    from scrapeyard.model.job import Job
    from scrapeyard.settings import Settings

_FAILURES_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class FileRun:
    """The options of the command."""

    target: str
    file: str
    terms: "JobTerms"
    pairs: list[str]
    page: dict[str, Any]
    """What is wanted of each page: fields of every item."""
    timeout: float | None
    """Seconds for each item; None for the scraper's own limit."""
    output: Path | None
    kind: str | None
    """The export type, which sets the columns; None to choose by scraper."""
    form: str
    """Of the file that is written."""
    max_wait: float | None = None
    """Seconds that the job may wait without a success; None: as `Patience` says."""


def run_file(asked: FileRun, settings: "Settings", *, strict: bool, as_json: bool) -> None:
    """Run the job, write its results, print how it ended; exits 1 if it ended badly."""
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import is_bad, summary
    from scrapeyard.cli.jobs.transfers import open_list
    from scrapeyard.cli.operations.serve import runner
    from scrapeyard.cli.runs.running import until_done
    from scrapeyard.errors import BadRequest
    from scrapeyard.extras import missing

    if asked.form == "parquet" and (words := missing("parquet")):
        raise BadRequest(words)
    with open_list(asked.file) as (stream, _):
        job = runner()(until_done(_run(asked, settings, stream)))
    if as_json:
        show_json(job)
    typer.echo(f"scrapeyard: {summary(job)}", err=True)
    if is_bad(job, strict=strict):
        raise typer.Exit(1)


async def _run(asked: FileRun, settings: "Settings", stream: BinaryIO) -> dict[str, Any]:
    from scrapeyard.cli.common.manners import tell_manners
    from scrapeyard.cli.common.progress import JobBar
    from scrapeyard.cli.jobs.create import tell_rows
    from scrapeyard.cli.runs.local_job import open_jobs
    from scrapeyard.cli.runs.waiting import Patience

    wanted, settings = _wanted(asked.target, settings)
    tell_manners(settings.sites, asked.terms.table().get("policy", {}), "--rate and --policy change that")
    async with open_jobs(settings) as jobs:
        job, rows = await jobs.start(await _table(asked, wanted, jobs), stream)
        if rows is not None:
            tell_rows(rows.bad, [(row.line, row.reason) for row in rows.first])
        patience = Patience(asked.max_wait)
        with JobBar(asked.file) as bar:

            def show(document: dict[str, Any], wait: "JobWait | None") -> None:
                if news := patience.news(wait):
                    bar.note(news)
                bar.show(document)

            job = await jobs.until_end(job, patience, show)
        if (wait := patience.ended_by) is not None:
            _tell_given_up(wait)
        await _tell_failures(jobs, job)
        await _write(asked, jobs, job)
        return jobs.document(job)


def _wanted(target: str, settings: "Settings") -> "tuple[str, Settings]":
    """The scraper's name, and settings by which it is found: a folder is a repository of one. Raises ScraperInvalid."""
    from scrapeyard.cli.runs.running import folder_of
    from scrapeyard.repository.manifest.manifest import FILE_NAME, read_identity, read_manifest

    folder = folder_of(target)
    if folder is None:
        return target, settings
    text = _read(folder / FILE_NAME)
    scraper_id, version = read_identity(text)
    if not scraper_id or not version:
        read_manifest(text, str(folder / FILE_NAME))  # raises the error
    repository = settings.repository.model_copy(update={"scrapers": folder})
    return f"{scraper_id}@{version}", settings.model_copy(update={"repository": repository})


def _read(manifest: Path) -> bytes:
    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.manifest.manifest import MAX_BYTES

    try:
        with manifest.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadRequest(f"{manifest}: cannot be read: {error.strerror}") from None


async def _table(asked: FileRun, wanted: str, jobs: "LocalJobs") -> dict[str, Any]:
    """The job as the API takes it; pairs are fields of every item."""
    from scrapeyard.builtin import PAGE
    from scrapeyard.builtin.reading.port import DEFAULT
    from scrapeyard.cli.common.inputs import read_input
    from scrapeyard.cli.jobs.calls import list_format
    from scrapeyard.cli.jobs.results import default_type
    from scrapeyard.results.exports.columns import PARTS_OF

    table = {**asked.terms.table(), "scraper": wanted}
    if asked.pairs or asked.terms.given is not None or asked.page:
        scraper = await jobs.find(wanted)
        table["input"] = read_input(asked.terms.given, asked.pairs, lambda: scraper.input_schema) | asked.page
    kind = asked.kind or default_type(wanted)
    given = table.get("input", {})
    if wanted.partition("@")[0] == PAGE and PARTS_OF.get(kind) and "formats" not in given:
        table["input"] = {"include": [*DEFAULT, *PARTS_OF[kind]], **given}
    if asked.timeout is not None:
        table["policy"] = {**table.get("policy", {}), "timeout_seconds": asked.timeout}
    return {"format": list_format(asked.file) or "auto", **table}


def _tell_given_up(wait: "JobWait") -> None:
    from scrapeyard.cli.common.output import plain

    words = f"gave up, since it would wait until {wait.at}: {wait.why}; --max-wait SECONDS waits longer"
    typer.echo(f"scrapeyard: {plain(words)}", err=True)


async def _tell_failures(jobs: "LocalJobs", job: "Job") -> None:
    from scrapeyard.cli.common.output import plain, shortened

    for item in await jobs.failures(job, _FAILURES_SHOWN) if job.counts.error else ():
        said = f"{item.exit_reason}: {item.error.message}" if item.error else str(item.exit_reason)
        given = shortened(bytes(item.input).decode("utf-8", "replace"), 120)
        typer.echo(f"scrapeyard: failed: {plain(given)}: {plain(shortened(said, 300))}", err=True)
    if job.counts.error > _FAILURES_SHOWN:
        typer.echo(f"  … and {job.counts.error - _FAILURES_SHOWN:,} more", err=True)


async def _write(asked: FileRun, jobs: "LocalJobs", job: "Job") -> None:
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.output import size, write
    from scrapeyard.cli.common.progress import share_bar
    from scrapeyard.cli.jobs.results import default_type, tell_notes
    from scrapeyard.model.job import ExportWish

    kind: Any = asked.kind or default_type(job.pinned)
    form: Any = asked.form
    with share_bar("writing") as show:
        made: Export = await jobs.file(job, ExportWish(type=kind, format=form), show)
    tell_notes(made.notes)
    if asked.output is None:
        async for piece in jobs.bytes_of(made):
            write(piece)
        return
    with whole_file(asked.output) as stream:
        async for piece in jobs.bytes_of(made):
            await asyncio.to_thread(stream.write, piece)
    typer.echo(f"wrote {asked.output}: {made.rows:,} rows, {size(made.bytes)}", err=True)
