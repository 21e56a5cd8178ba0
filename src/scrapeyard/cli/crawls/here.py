"""A crawl without a server: a job in this process, whose files stay until it has ended."""

import asyncio
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import typer

from scrapeyard.cli.crawls.asked import JOB_ID, MANNERS, Crawl, Ended

if TYPE_CHECKING:
    from scrapeyard.cli.runs.local_job import JobRows, LocalJobs
    from scrapeyard.cli.runs.waiting import JobWait, Patience
    from scrapeyard.gateway.jobs.calls import JobCall
    from scrapeyard.model.job import Job
    from scrapeyard.results.exports.builder import ExportBuilder
    from scrapeyard.results.exports.protocol import Written
    from scrapeyard.settings import Settings


def crawl(asked: Crawl, *, allow_private: bool) -> Ended:
    """Crawl and write the pages; also those that were read when the user interrupts it. Raises ScrapeyardError."""
    from scrapeyard.cli.operations.serve import runner
    from scrapeyard.cli.runs.running import quiet, until_done
    from scrapeyard.model import ExitReason
    from scrapeyard.settings import load

    call = _call(asked)
    _check_extra(asked)
    settings = load({"http": {"allow_private": allow_private or None}})
    quiet(settings.log)
    ended = cast("Ended", runner()(until_done(_crawl(asked, call, settings))))
    if not allow_private and any(ExitReason.FETCH_PRIVATE_ADDRESS in note for note in ended.notes):
        typer.echo("scrapeyard: --allow-private lets it fetch private and loopback addresses", err=True)
    if ended.job["status"] in ("completed", "failed"):
        asked.forget()
    return ended


async def _crawl(asked: Crawl, call: "JobCall", settings: "Settings") -> Ended:
    from scrapeyard.cli.common.manners import tell_manners
    from scrapeyard.cli.common.progress import JobBar
    from scrapeyard.cli.runs.local_job import open_jobs
    from scrapeyard.cli.runs.waiting import Patience

    async with open_jobs(settings, asked.state, has_scripts=False) as jobs:
        job, interrupted = await _job(asked, call, jobs), False
        tell_manners(jobs.document(job), MANNERS, asked.table["url"])
        patience = Patience(None, needs_name=True)
        lines = _Lines(asked, jobs, job) if asked.output is None else None
        with JobBar(asked.table["url"]) as bar:

            async def show(document: dict[str, Any], wait: "JobWait | None") -> None:
                if news := patience.news(wait):
                    bar.note(news)
                bar.show(document)
                if lines is not None:
                    await lines.rows.advance()

            try:
                job = await jobs.until_end(job, patience, show)
            except asyncio.CancelledError:
                interrupted = True
                _uncancel()
                bar.note("interrupted; writing the pages that were read")
                job = await jobs.interrupt(job)
        _tell_given_up(asked, patience)
        notes = await (_write(asked, jobs, job) if lines is None else lines.finish(job))
        return Ended(job=jobs.document(job), notes=notes, interrupted=interrupted)


def _call(asked: Crawl) -> "JobCall":
    """Raises BadRequest for what `/api/crawl` would refuse."""
    from scrapeyard.cli.runs.local_job import checked
    from scrapeyard.gateway.crawls.calls import CrawlCall
    from scrapeyard.inputs.patterns import Chooser
    from scrapeyard.inputs.source import UrlChoice

    call = checked(CrawlCall, asked.table).job_call()
    Chooser(UrlChoice(include=tuple(call.follow.include), exclude=tuple(call.follow.exclude)))
    return call.model_copy(update={"job_id": JOB_ID})


def _check_extra(asked: Crawl) -> None:
    """Raises BadRequest if the file cannot be written on this machine."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.extras import missing

    if asked.form == "parquet" and (words := missing("parquet")):
        raise BadRequest(words)


def _tell_given_up(asked: Crawl, patience: "Patience") -> None:
    """Say why a crawl was given up. Raises BadRequest if the name of its host does not resolve."""
    from scrapeyard.cli.common.output import plain
    from scrapeyard.errors import BadRequest

    wait = patience.ended_by
    if wait is not None and wait.is_no_name:
        asked.forget()
        raise BadRequest(f"{asked.table['url']}: {wait.failure}")
    if wait is not None:
        words = f"gave up, since it would wait until {wait.at}: {wait.why}"
        typer.echo(f"scrapeyard: {plain(words)}{'; go on with --resume' if asked.output else ''}", err=True)


async def _job(asked: Crawl, call: "JobCall", jobs: "LocalJobs") -> "Job":
    """A new job, or the one that was interrupted. Raises BadRequest if that one is of another URL."""
    from scrapeyard.errors import BadRequest

    job = await jobs.resume(JOB_ID) if asked.resume else None
    if job is None:
        if asked.resume:
            typer.echo(f"scrapeyard: {asked.state} has no crawl to go on with; this one begins anew", err=True)
        return await jobs.create(call)
    if asked.table["url"] not in job.source.get("start", ()):
        raise BadRequest(f"{asked.state}: a crawl of {job.source.get('start')}, not of {asked.table['url']}")
    typer.echo(
        f"scrapeyard: goes on after {job.counts.success:,} pages, with the options it began with; "
        "only --rate and --concurrency change them",
        err=True,
    )
    pace: dict[str, Any] = {name: asked.table[name] for name in ("rate", "concurrency") if name in asked.table}
    return await jobs.change_pace(job, pace) if pace and not job.status.is_final else job


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


class _Lines:
    """The pages as lines of JSON on stdout, each as soon as those before it are there."""

    def __init__(self, asked: Crawl, jobs: "LocalJobs", job: "Job") -> None:
        from scrapeyard.cli.common.output import write
        from scrapeyard.model.job import ExportWish
        from scrapeyard.results.exports.builder import ExportBuilder

        self._builder = ExportBuilder(ExportWish(**asked.wish), write, live=True)
        self.rows = jobs.rows(job, self._builder)

    async def finish(self, job: "Job") -> tuple[str, ...]:
        """Write the rest; returns what is told of the pages."""
        return (await _finished(self._builder, self.rows, job)).notes


async def _write(asked: Crawl, jobs: "LocalJobs", job: "Job") -> tuple[str, ...]:
    """Write the pages to a file or folder; returns what the file tells of them."""
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.output import size
    from scrapeyard.cli.crawls.page_files import write_pages

    assert asked.output is not None  # noqa: S101 - otherwise they are lines on stdout
    if asked.is_folder:
        with tempfile.TemporaryFile() as lines:
            written = await _built(asked, jobs, job, lines.write)
            lines.seek(0)
            count = await asyncio.to_thread(write_pages, lines, asked.output)
        typer.echo(f"wrote {asked.output}: {count:,} files", err=True)
        return written.notes
    with whole_file(asked.output) as stream:
        written = await _built(asked, jobs, job, stream.write)
    typer.echo(f"wrote {asked.output}: {written.rows:,} rows, {size(written.bytes)}", err=True)
    return written.notes


async def _built(asked: Crawl, jobs: "LocalJobs", job: "Job", send: Callable[[bytes], Any]) -> "Written":
    from scrapeyard.model.job import ExportWish
    from scrapeyard.results.exports.builder import ExportBuilder

    builder = ExportBuilder(ExportWish(**asked.wish), send)
    return await _finished(builder, jobs.rows(job, builder), job)


async def _finished(builder: "ExportBuilder", rows: "JobRows", job: "Job") -> "Written":
    from scrapeyard.cli.common.progress import share_bar
    from scrapeyard.model.job import JobStatus
    from scrapeyard.results.exporter import notes_of

    builder.notes = notes_of(job)
    await rows.advance(rest=True, read=job.status is JobStatus.CANCELLED)
    with share_bar("writing") as show:
        for _, share in builder.finish():
            show(share)
    return builder.written
