"""`schedule`: jobs and runs that a server starts by the clock."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scrapeyard.cli.common.listing import complete_ids
from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ServerUrl, add_group

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_HEADERS = ("ID", "NAME", "WHEN", "STARTS", "NEXT", "LAST")
group = Commands(help="Schedules: create, list, show, pause, resume, run, history, delete.")
_Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Schedule id, the beginning of one, or `last`.",
        autocompletion=complete_ids("schedule"),
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "schedule", group, lambda url: list_schedules(url=url))


@group.command()
def create(
    *,
    job: Annotated[
        str | None,
        typer.Option(help="Job to start: JSON, @file or @- (stdin), as `jobs create … --print` prints it."),
    ] = None,
    scrape: Annotated[
        str | None, typer.Option(help='Run to start: a URL, JSON, @file or @- (stdin): {"scraper": …, "input": …}.')
    ] = None,
    cron: Annotated[str | None, typer.Option(help='Cron expression, e.g. "30 3 * * *" or @daily.')] = None,
    every: Annotated[str | None, typer.Option(help="Interval instead of --cron: 90s, 10m, 6h, 1d.")] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of --cron, e.g. Europe/Berlin. Default: UTC.")
    ] = None,
    jitter: Annotated[
        str | None, typer.Option(help="Delay each start by a random time of at most this: 30s, 5m.")
    ] = None,
    overlap: Annotated[
        Literal["skip", "queue", "cancel_previous"] | None,
        typer.Option(help="What to do if the previous one still runs. Default: skip."),
    ] = None,
    missed: Annotated[
        Literal["skip", "run_once", "run_all"] | None,
        typer.Option(help="What to do about starts missed while no dispatcher ran. Default: run_once."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name to show in lists.")] = "",
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused. `schedule resume` starts it.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Create a schedule that starts a job or a run. Prints its id."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    body = {
        **_target(job, scrape),
        "name": name or None,
        "cron": cron,
        "every_seconds": None if every is None else seconds(every, "--every"),
        "time_zone": time_zone,
        "jitter_seconds": None if jitter is None else seconds(jitter, "--jitter"),
        "overlap": overlap,
        "missed": missed,
        "paused": paused or None,
    }
    _check_when(cron, every)
    given = {key: value for key, value in body.items() if value is not None}
    _, made = Server(url).call("POST", "/api/schedule", body=given)
    if as_json:
        show_json(made)
    else:
        typer.echo(made["id"])


@group.command("list")
def list_schedules(
    limit: Annotated[int, typer.Option(help="Maximum number to list.", min=1, max=100_000)] = 200,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List schedules, newest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages
    from scrapeyard.cli.common.output import show_list

    found = list(pages(Server(url), "/api/schedule", "schedules", limit))
    show_list(found, as_json, _HEADERS, _row, empty="no schedules")


@group.command()
def show(
    schedule_id: _Id,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,  # noqa: ARG001  there is no other form, but every command takes it
) -> None:
    """A schedule with its next five times, as JSON."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    server = Server(url)
    show_json(server.get(_path(server, schedule_id)))


@group.command()
def pause(schedule_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Start nothing until `schedule resume`."""
    _report(_asked(url, schedule_id, "pause"), as_json)


@group.command()
def resume(schedule_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Go on from its next time."""
    _report(_asked(url, schedule_id, "resume"), as_json)


@group.command()
def run(schedule_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Start it now. Prints the id of the job or run."""
    from scrapeyard.cli.common.output import show_json

    firing = _asked(url, schedule_id, "run")
    if as_json:
        show_json(firing)
    else:
        typer.echo(firing["id"] or f"{firing['state']}: {firing['reason']}")


@group.command()
def history(schedule_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """What became of its times, the newest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    def row(firing: dict[str, Any]) -> tuple[str, ...]:
        return firing["due_at"], firing["kind"], firing["state"], firing["id"] or "", firing["reason"] or ""

    server = Server(url)
    found = server.get(f"{_path(server, schedule_id)}/history")["firings"]
    show_list(found, as_json, ("DUE", "KIND", "STATE", "STARTED", "REASON"), row, empty="no time of it has come yet")


@group.command()
def delete(schedule_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a schedule with its history; what it started goes on."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    server = Server(url)
    path = _path(server, schedule_id)
    server.call("DELETE", path)
    whole = path.rpartition("/")[2]
    if as_json:
        show_json({"id": whole, "deleted": True})
    else:
        typer.echo(f"{whole}: deleted")


def seconds(text: str, option: str) -> float:
    """A length of time: `90`, `90s`, `1.5h`. Raises BadRequest that names the option."""
    from scrapeyard.errors import BadRequest

    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhd]?)", text.strip())
    if found is None:
        raise BadRequest(f"{option}: {text[:50]!r} is no length of time; write 90s, 10m, 6h or 1d")
    return float(found[1]) * _UNITS[found[2]]


def _check_when(cron: str | None, every: str | None) -> None:
    from scrapeyard.errors import BadRequest

    if (cron is None) == (every is None):
        raise BadRequest('say when: --cron "30 3 * * *" or --every 6h')


def _target(job: str | None, scrape: str | None) -> dict[str, Any]:
    from scrapeyard.cli.common.inputs import is_url, read_object
    from scrapeyard.errors import BadRequest

    if (job is None) == (scrape is None):
        raise BadRequest("say what to start: --job or --scrape; `scrapeyard jobs create … --print` prints a job")
    if job is not None:
        return {"job": read_object(job, "--job")}
    given = str(scrape)
    return {"scrape": {"url": given} if is_url(given) else read_object(given, "--scrape")}


def _path(server: "Server", schedule_id: str) -> str:
    from scrapeyard.cli.common.listing import whole_id

    return f"/api/schedule/{whole_id(server, 'schedule', schedule_id)}"


def _asked(url: str, schedule_id: str, what: str) -> dict[str, Any]:
    from scrapeyard.cli.common.client import Server

    server = Server(url)
    return dict(server.call("POST", f"{_path(server, schedule_id)}/{what}")[1])


def _report(schedule: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json

    if as_json:
        show_json(schedule)
    else:
        typer.echo(f"{schedule['id']}: {_next(schedule)}")


def _row(schedule: dict[str, Any]) -> tuple[str, ...]:
    zone = "" if schedule["time_zone"] == "UTC" else f" {schedule['time_zone']}"
    when = f"{schedule['cron']}{zone}" if schedule["cron"] else f"every {schedule['every_seconds']:g} s"
    return schedule["id"], schedule["name"], when, _starts(schedule), _next(schedule), schedule["last_id"] or ""


def _starts(schedule: dict[str, Any]) -> str:
    what = schedule[schedule["target"]] or {}
    return f"{schedule['target']} {what.get('scraper') or 'builtin/page'}"


def _next(schedule: dict[str, Any]) -> str:
    return "paused" if schedule["paused"] else schedule["next_run_at"] or "never again"
