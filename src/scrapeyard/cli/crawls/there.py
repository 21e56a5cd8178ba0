"""A crawl on a server: the job is made there, watched, and its pages are downloaded."""

import tempfile

import typer

from scrapeyard.cli.common.client import Server
from scrapeyard.cli.common.manners import tell_manners
from scrapeyard.cli.crawls.asked import MANNERS, Crawl, Ended
from scrapeyard.cli.crawls.page_files import write_pages
from scrapeyard.cli.jobs.results import fetch_export, make_export
from scrapeyard.cli.jobs.transfers import fetch_into
from scrapeyard.cli.jobs.watch import watched


def crawl(asked: Crawl, url: str) -> Ended:
    """Crawl and write the pages. Ctrl-C leaves the job running. Raises Refused or ServerUnreachable."""
    server = Server(url)
    _, job = server.call("POST", "/api/crawl", body=asked.table)
    tell_manners(job, MANNERS, asked.table["url"])
    ended = watched(server, job["id"])
    made = make_export(server, f"/api/jobs/{job['id']}", {**asked.wish, "bom": True, "against": None})
    if asked.is_folder and asked.output is not None:
        with tempfile.TemporaryFile() as lines:
            fetch_into(server, made, lines)
            lines.seek(0)
            count = write_pages(lines, asked.output)
        typer.echo(f"wrote {asked.output}: {count:,} files", err=True)
    else:
        fetch_export(server, made, asked.output)
    return Ended(job=ended, notes=tuple(made["notes"]))
