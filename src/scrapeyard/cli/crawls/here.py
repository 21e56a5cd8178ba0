"""A crawl without a server: a job in this process, whose files stay until it has ended."""

import asyncio
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import typer

from scrapeyard.cli.crawls.asked import JOB_ID, Crawl, Ended

if TYPE_CHECKING:
    from scrapeyard.cli.runs.local_job import LocalJobs
    from scrapeyard.cli.runs.waiting import JobWait
    from scrapeyard.gateway.jobs.calls import JobCall
    from scrapeyard.model.job import Job
    from scrapeyard.results.exports.protocol import Written
    from scrapeyard.settings import Settings


def crawl(asked: Crawl, *, allow_private: bool) -> Ended:
    """Crawl and write the pages; also those that were read when the user interrupts it. Raises ScrapeyardError."""
    from scrapeyard.cli.common.manners import tell_manners
    from scrapeyard.cli.operations.serve import runner
    from scrapeyard.cli.runs.running import quiet, until_done
    from scrapeyard.settings import load

    call = _call(asked)
    settings = load({"http": {"allow_private": allow_private or None}})
    quiet(settings.log)
    tell_manners(settings.sites, asked.table, "--rate and --ignore-robots change that", asked.table["url"])
    ended = cast("Ended", runner()(until_done(_crawl(asked, call, settings))))
    if ended.job["status"] in ("completed", "failed"):
        asked.forget()
    return ended


async def _crawl(asked: Crawl, call: "JobCall", settings: "Settings") -> Ended:
    from scrapeyard.cli.common.progress import JobBar
    from scrapeyard.cli.runs.local_job import open_jobs
    from scrapeyard.cli.runs.waiting import Patience

    async with open_jobs(settings, asked.state) as jobs:
        job, interrupted = await _job(asked, call, jobs), False
        patience = Patience(None)
        with JobBar(asked.table["url"]) as bar:

            async def show(document: dict[str, Any], wait: "JobWait | None") -> None:
                if news := patience.news(wait):
                    bar.note(news)
                bar.show(document)

            try:
                job = await jobs.until_end(job, patience, show)
            except asyncio.CancelledError:
                interrupted = True
                _uncancel()
                bar.note("interrupted; writing the pages that were read")
                job = await jobs.interrupt(job)
        notes = await _write(asked, jobs, job)
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


async def _job(asked: Crawl, call: "JobCall", jobs: "LocalJobs") -> "Job":
    """A new job, or the one that was interrupted. Raises BadRequest if that one is of another URL."""
    from scrapeyard.errors import BadRequest

    job = await jobs.resume(JOB_ID) if asked.resume else None
    if job is None:
        return await jobs.create(call)
    if asked.table["url"] not in job.source.get("start", ()):
        raise BadRequest(f"{asked.state}: a crawl of {job.source.get('start')}, not of {asked.table['url']}")
    return job


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


async def _write(asked: Crawl, jobs: "LocalJobs", job: "Job") -> tuple[str, ...]:
    """Write the pages; returns what the file tells of them."""
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.output import size, write
    from scrapeyard.cli.crawls.page_files import write_pages

    if asked.output is None:
        return (await _built(asked, jobs, job, write)).notes
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
    from scrapeyard.cli.common.progress import share_bar
    from scrapeyard.model.job import ExportWish
    from scrapeyard.results.exporter import notes_of
    from scrapeyard.results.exports.builder import ExportBuilder

    builder = ExportBuilder(ExportWish(**asked.wish), send, notes_of(job))
    await jobs.rows(job, builder).advance(rest=True)
    with share_bar("writing") as show:
        for _, share in builder.finish():
            show(share)
    return builder.written
