"""Job documents of the server: their paths, and their table rows."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from scrapeyard.cli.common.output import age, plain, shortened
from scrapeyard.errors import BadRequest

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

FINAL = ("completed", "cancelled", "failed")
_PAGE = 200
JOB_HEADERS = ("ID", "STATUS", "NAME", "SCRAPER", "DONE", "OF", "ERRORS", "AGE")
ITEM_HEADERS = ("ID", "STATUS", "ATTEMPT", "INPUT", "ERROR")


def path_of(job_id: str) -> str:
    """Where a job is. Raises BadRequest when this is not the id of one."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", job_id) is None:
        raise BadRequest(f"{job_id[:100]!r} is not a job's id; `scrapeyard jobs` lists them")
    return f"/api/jobs/{job_id}"


def pages(server: "Server", path: str, name: str, limit: int, **where: Any) -> Iterator[dict[str, Any]]:
    """The documents of a listing, page after page, at most `limit`."""
    cursor = None
    while limit > 0:
        page = server.get(path, **where, cursor=cursor, limit=min(limit, _PAGE))
        yield from page[name][:limit]
        limit -= len(page[name])
        cursor = page["next_cursor"]
        if cursor is None:
            return


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
    )


def item_row(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Cells under ITEM_HEADERS."""
    given = item["input"]
    shown = given["url"] if set(given) == {"url"} else ", ".join(f"{key}={value}" for key, value in given.items())
    return item["id"], item["status"], str(item["attempt"]), shortened(shown, 100), shortened(_failure(item), 200)


def summary(job: Mapping[str, Any]) -> str:
    """How a job stands, in a line."""
    counts = job["counts"]
    numbers = [f"{counts[name]:,} {name}" for name in ("success", "error", "cancelled") if counts[name]]
    why = f": {job['error']['message']}" if job["error"] else ""
    took = f" in {_took(job)}" if job["finished_at"] and job["started_at"] else ""
    ended = f"{job['status']}{why}, {counts['total']:,} items{took}: {', '.join(numbers) or 'none ended yet'}"
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


def _took(job: Mapping[str, Any]) -> str:
    from datetime import datetime

    from scrapeyard.cli.common.progress import span

    first, last = (datetime.fromisoformat(job[name]) for name in ("started_at", "finished_at"))
    return span((last - first).total_seconds())
