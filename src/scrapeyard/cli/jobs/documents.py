"""Job documents of the server: their paths, and their table rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from scrapeyard.cli.common.listing import input_words, whole_id
from scrapeyard.cli.common.output import age, plain, shortened, took

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

FINAL = ("completed", "cancelled", "failed")
_INPUT_SHOWN = 80
JOB_HEADERS = ("ID", "STATUS", "NAME", "SCRAPER", "DONE", "OF", "ERRORS", "AGE", "TOOK", "INPUT")
ITEM_HEADERS = ("ID", "STATUS", "ATTEMPT", "INPUT", "ERROR")


def path_of(server: "Server", job_id: str) -> str:
    """Where a job is, by its id, the beginning of it or `last`. Raises BadRequest when that means none or several."""
    return f"/api/jobs/{whole_id(server, 'job', job_id)}"


def job_row(job: Mapping[str, Any]) -> tuple[str, ...]:
    """Cells under JOB_HEADERS."""
    counts = job["counts"]
    done = counts["success"] + counts["error"]
    version = f"@{job['version']}" if job["version"] else ""
    numbers = (str(done), str(counts["total"]), str(counts["error"]))
    return (
        job["id"],
        _status(job),
        shortened(job["name"], 40),
        job["scraper"] + version,
        *numbers,
        age(job["created_at"]),
        took(job),
        shortened(_source(job), _INPUT_SHOWN),
    )


def _source(job: Mapping[str, Any]) -> str:
    """Where the items came from: an address, a file's name, or the site that they are about."""
    source = job.get("source") or {}
    first, *more = source.get("start") or [source.get("url") or source.get("name") or job.get("domain") or ""]
    return f"{first} (and {len(more)} more)" if more else str(first)


def item_row(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Cells under ITEM_HEADERS."""
    shown = input_words(item["input"], 100)
    return item["id"], item["status"], str(item["attempt"]), shown, shortened(_failure(item), 200)


def summary(job: Mapping[str, Any]) -> str:
    """How a job stands, in a line."""
    counts = job["counts"]
    numbers = [f"{counts[name]:,} {name}" for name in ("success", "error", "cancelled") if counts[name]]
    why = f": {job['error']['message']}" if job["error"] else ""
    ended = f"{job['status']}{why}, {counts['total']:,} items{spent(job)}: {', '.join(numbers) or 'none ended yet'}"
    return plain(ended + _warned(job))


def _warned(job: Mapping[str, Any]) -> str:
    """The first warning, and how many more there are."""
    first, *more = job.get("warnings") or [""]
    return f"; warning: {first}{f' (and {len(more)} more)' if more else ''}" if first else ""


def end(job: Mapping[str, Any], *, strict: bool) -> None:
    """Print how a final job ended; exits 1 if it failed, was cancelled, or no item succeeded."""
    typer.echo(f"scrapeyard: {job['id']} {summary(job)}", err=True)
    counts = job["counts"]
    if counts["error"]:
        typer.echo(f"  failures: scrapeyard jobs items {job['id']} --status error", err=True)
    if is_bad(job, strict=strict):
        raise typer.Exit(1)


def is_bad(job: Mapping[str, Any], *, strict: bool) -> bool:
    """Whether a final job makes a command exit 1; with `strict`, one failed item is enough."""
    counts = job["counts"]
    none_good = counts["total"] > 0 and counts["success"] == 0
    return job["status"] != "completed" or none_good or (strict and counts["error"] > 0)


def _status(job: Mapping[str, Any]) -> str:
    return (
        f"{job['status']}: {job['pause_reason']}"
        if job["status"] == "paused" and job["pause_reason"]
        else job["status"]
    )


def _failure(item: Mapping[str, Any]) -> str:
    if not item["error"]:
        return ""
    return f"{item['exit_reason']}: {item['error']['message']}"


def spent(job: Mapping[str, Any]) -> str:
    """` in 3 s` for a job that has begun and ended; otherwise empty."""
    return f" in {took(job)}" if job["finished_at"] and job["started_at"] else ""
