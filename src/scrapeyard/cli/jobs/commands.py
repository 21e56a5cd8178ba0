"""`jobs`: many inputs for one scraper, on a server. Lists and shows them; see the other modules here for the rest."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from scrapeyard.cli.common.listing import complete_ids
from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, JobId, OfScraper, ServerUrl, add_group
from scrapeyard.cli.jobs import create, results, sinks, steer, watch

if TYPE_CHECKING:
    from collections.abc import Mapping

Limit = Annotated[int, typer.Option(help="Maximum number to list.", min=1, max=100_000)]
group = Commands(help="Jobs of many items: create, append, watch, steer, results, exports, dead letters.")


def register(app: typer.Typer) -> None:
    """Add the group."""
    for part in (create, watch, steer, results, sinks):
        part.add_to(group)
    add_group(app, "jobs", group, lambda url: list_jobs(url=url))
    for name, command in ALIASES.items():
        app.command(name, hidden=True)(command)


@group.command("list")
def list_jobs(
    *,
    status: Annotated[
        list[str] | None,
        typer.Option(help="Jobs with this status: creating, running, paused, completed …; may be repeated."),
    ] = None,
    scraper: OfScraper = None,
    schedule: Annotated[
        str | None, typer.Option(help="Jobs started by this schedule.", autocompletion=complete_ids("schedule"))
    ] = None,
    domain: Annotated[str | None, typer.Option(help="Jobs of this site, e.g. shop.example.")] = None,
    limit: Limit = 20,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages, whole_id
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.cli.jobs.documents import JOB_HEADERS, job_row

    server = Server(url)
    of_schedule = whole_id(server, "schedule", schedule) if schedule else None
    where = {"status": status or None, "scraper": scraper, "schedule_id": of_schedule, "domain": domain}
    found = list(pages(server, "/api/jobs", "jobs", limit, **where))
    show_list(found, as_json, JOB_HEADERS, job_row, empty="no jobs")


Reasons = Annotated[
    list[str] | None, typer.Option(help="Items that ended for this reason, e.g. fetch_timeout; may be repeated.")
]
Sites = Annotated[list[str] | None, typer.Option(help="Items of this site, e.g. shop.example; may be repeated.")]


@group.command()
def status(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show a job: counts, HTTP statuses, warnings, rate, time left, breaker and usage."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import path_of

    server = Server(url)
    job = server.get(path_of(server, job_id))
    if as_json:
        show_json(job)
    else:
        typer.echo("\n".join(f"{name:<10} {value}" for name, value in _facts(job) if value))


@group.command()
def items(
    job_id: JobId,
    *,
    status: Annotated[
        list[str] | None,
        typer.Option(help="Items with this status: pending, queued, in_progress, success …; may be repeated."),
    ] = None,
    exit_reason: Reasons = None,
    site: Sites = None,
    item: Annotated[list[str] | None, typer.Option(help="The item with this id; may be repeated.")] = None,
    limit: Limit = 50,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List items in the order they were added. --json includes their results."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.cli.jobs.documents import ITEM_HEADERS, item_row, path_of

    where = {"status": status, "exit_reason": exit_reason, "site": site, "key": item}
    given = {name: value for name, value in where.items() if value}
    server = Server(url)
    found = list(pages(server, f"{path_of(server, job_id)}/items", "items", limit, **given))
    show_list(found, as_json, ITEM_HEADERS, item_row, empty="no such items")


@group.command("dead-letters")
def dead_letters(
    *,
    job: Annotated[str | None, typer.Option(help="Items of this job.", autocompletion=complete_ids("job"))] = None,
    scraper: OfScraper = None,
    exit_reason: Reasons = None,
    site: Sites = None,
    limit: Limit = 50,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List failed items of all jobs. `jobs redrive` runs them again."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages, whole_id
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.cli.jobs.documents import ITEM_HEADERS, item_row

    def row(item: dict[str, Any]) -> tuple[str, ...]:
        return item["job_id"], *item_row(item)

    server = Server(url)
    of_job = whole_id(server, "job", job) if job else None
    where = {"job_id": of_job, "scraper": scraper, "exit_reason": exit_reason, "site": site}
    given = {name: value for name, value in where.items() if value}
    found = list(pages(server, "/api/dead-letters", "items", limit, **given))
    show_list(found, as_json, ("JOB", *ITEM_HEADERS), row, empty="no dead letters")


def _facts(job: "Mapping[str, Any]") -> "list[tuple[str, str]]":
    from scrapeyard.cli.common.output import plain, size
    from scrapeyard.cli.common.progress import facts
    from scrapeyard.cli.jobs.documents import FINAL

    counts, breaker, used = job["counts"], job["breaker"], job["usage"]
    version = f"@{job['version']}" if job["version"] else ""
    found = (
        ("id", job["id"]),
        ("name", job["name"]),
        ("scraper", job["scraper"] + version),
        ("status", job["status"] + (f": {job['pause_reason']}" if job["pause_reason"] else "")),
        ("error", (job["error"] or {}).get("message", "")),
        ("items", ", ".join(f"{count:,} {name}" for name, count in counts.items() if count or name == "total")),
        ("http", ", ".join(f"{status}: {count:,}" for status, count in job["http_statuses"].items())),
        ("skipped", f"{job['skipped_rows']:,} rows" if job["skipped_rows"] else ""),
        *(("warning", warning) for warning in job["warnings"]),
        ("progress", "" if job["status"] in FINAL else f"{job['progress']:.1%}, {facts(job)}"),
        ("archive", job["archive"]),
        *(("sink", _sink_words(sink)) for sink in job.get("sink_deliveries", ())),
        ("files", "are being written" if job["files_pending"] else ""),
        ("breaker", "" if breaker["state"] == "closed" else f"{breaker['state']}: {breaker['reason']}"),
        ("used", f"{used['requests']:,} requests, {size(used['bytes_received'])}"),
        ("created", job["created_at"]),
        ("started", job["started_at"] or ""),
        ("finished", job["finished_at"] or ""),
    )
    return [(name, plain(str(value))) for name, value in found]


def _sink_words(sink: "Mapping[str, Any]") -> str:
    behind = f", {sink['behind']:,} behind" if sink["behind"] else ""
    failed = f", {sink['failed']:,} failed" if sink["failed"] else ""
    why = f": {sink['last_error']}" if sink["last_error"] and (sink["state"] != "done" or sink["failed"]) else ""
    return f"{sink['sink']} {sink['state']}, {sink['delivered']:,} delivered{behind}{failed}{why}"


ALIASES: Final[dict[str, Callable[..., None]]] = {
    "create-job": create.create,
    "list-jobs": list_jobs,
    "job-status": status,
    "cancel-job": steer.cancel,
}
"""Other names of commands, which help does not list."""
