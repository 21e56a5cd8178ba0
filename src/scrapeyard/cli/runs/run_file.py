"""`run --file`: a whole job here and now, with no server."""

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

if TYPE_CHECKING:
    from scrapeyard.cli.jobs.calls import JobTerms
    from scrapeyard.cli.runs.local_job import LocalJobs
    from scrapeyard.cli.runs.waiting import JobWait
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
    keeps_state: bool = True
    """Whether the next command finds what `ctx.state` has."""


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
    from scrapeyard.cli.jobs.create import MANNERS, tell_rows
    from scrapeyard.cli.runs.local_job import open_jobs
    from scrapeyard.cli.runs.waiting import Patience

    wanted, settings = _wanted(asked.target, settings)
    has_scripts = not wanted.startswith("builtin/")
    async with open_jobs(settings, keeps_state=asked.keeps_state, has_scripts=has_scripts) as jobs:
        job, taken = await jobs.start(await _table(asked, wanted, jobs), stream)
        tell_manners(jobs.document(job), MANNERS)
        if taken is not None:
            tell_rows(taken.bad, [(row.line, row.reason) for row in taken.first])
        patience = Patience(asked.max_wait)
        with _OutputFile(asked, job) as file:
            rows = jobs.rows(job, file.builder)
            with JobBar(asked.file) as bar:

                async def show(document: dict[str, Any], wait: "JobWait | None") -> None:
                    if news := patience.news(wait):
                        bar.note(news)
                    bar.show(document)
                    await rows.advance()

                try:
                    job = await jobs.until_end(job, patience, show)
                except asyncio.CancelledError:
                    await rows.advance()
                    bar.note(file.keep())
                    raise
            if (wait := patience.ended_by) is not None:
                _tell_given_up(wait)
            await _tell_failures(jobs, job)
            await rows.advance(rest=True)
            file.finish(job)
        return jobs.document(job)


def _wanted(target: str, settings: "Settings") -> "tuple[str, Settings]":
    """The scraper's name, and settings by which it is found: a folder is a repository of one. Raises ScraperInvalid."""
    from scrapeyard.cli.runs.running import folder_of, read_beside
    from scrapeyard.repository.manifest.manifest import FILE_NAME, read_identity, read_manifest

    folder = folder_of(target)
    if folder is None:
        return target, settings
    text = _read(folder / FILE_NAME)
    scraper_id, version = read_identity(text)
    if not scraper_id or not version:
        read_manifest(text, str(folder / FILE_NAME), partial(read_beside, folder))  # raises the error
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
    from scrapeyard.builtin.pages.port import DEFAULT
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


_LIVE = ("csv", "jsonl")
"""Formats that can be read before they are whole: rows are written as items end, in the order of the list."""


class _OutputFile:
    """Where rows go, as a context: a file, or stdout. Of a file that is live, the rows so far stay when the command is
    interrupted; any other appears when it is whole."""

    def __init__(self, asked: FileRun, job: "Job") -> None:
        from scrapeyard.cli.jobs.results import default_type
        from scrapeyard.model.job import ExportWish
        from scrapeyard.results.exports.builder import ExportBuilder

        kind: Any = asked.kind or default_type(job.pinned)
        form: Any = asked.form
        self._path = asked.output
        self._is_live = form in _LIVE and kind != "links"
        self._stack = contextlib.ExitStack()
        self._stream: BinaryIO | None = None
        restart = self._empty if self._path is not None and self._is_live else None
        self.builder = ExportBuilder(ExportWish(type=kind, format=form), self._write, restart=restart)

    def __enter__(self) -> "_OutputFile":
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def keep(self) -> str:
        """End a live file after the rows so far; what is told of it."""
        if not self._is_live:
            return "interrupted; nothing was written, since only .csv and .jsonl are written as rows come"
        for _ in self.builder.finish():
            pass
        return f"interrupted; {self._path or 'stdout'} has {self.builder.written.rows:,} rows"

    def finish(self, job: "Job") -> None:
        """Write the rest, and tell what was written."""
        from scrapeyard.cli.common.output import size
        from scrapeyard.cli.common.progress import share_bar
        from scrapeyard.cli.jobs.results import tell_notes
        from scrapeyard.results.exporter import notes_of

        self.builder.notes = notes_of(job)
        with share_bar("writing") as show:
            for _, share in self.builder.finish():
                show(share)
        self._open()
        self._stack.close()
        written = self.builder.written
        tell_notes(written.notes)
        if self._path is not None:
            typer.echo(f"wrote {self._path}: {written.rows:,} rows, {size(written.bytes)}", err=True)

    def _open(self) -> "BinaryIO | None":
        """The file, made when the first bytes come: a run that cannot begin leaves an older file alone."""
        from scrapeyard.cli.common.inputs import whole_file
        from scrapeyard.errors import BadRequest

        if self._path is None or self._stream is not None:
            return self._stream
        try:
            opened = self._path.open("wb") if self._is_live else whole_file(self._path)
        except OSError as error:
            raise BadRequest(f"{self._path}: cannot be written: {error.strerror}") from None
        self._stream = self._stack.enter_context(opened)
        return self._stream

    def _write(self, piece: bytes) -> None:
        from scrapeyard.cli.common.output import write

        stream = self._open()
        if stream is None:
            write(piece)
            return
        stream.write(piece)
        if self._is_live:
            stream.flush()

    def _empty(self) -> None:
        if self._stream is not None:
            self._stream.seek(0)
            self._stream.truncate()
