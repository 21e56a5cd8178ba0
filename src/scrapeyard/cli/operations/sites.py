"""`sites`: how a server treats each site and how they are doing. `workers`: who takes work there."""

import math
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ServerUrl, add_group

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

_PAGE = 200
_HEADERS = ("SITE", "RATE", "IN FORCE", "WAITING", "BREAKER", "SUCCESS", "LATENCY", "ROBOTS", "NOTE")
group = Commands(help="Sites: list, show, set, unset, reset.")
_Site = Annotated[str, typer.Argument(metavar="SITE", help="A registrable domain, such as shop.example.")]


def register_sites(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "sites", group, lambda url: list_sites(url=url))


@group.command("list")
def list_sites(
    most: Annotated[int, typer.Option("--limit", min=1, help="Maximum number to list.")] = 200,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List sites that have their own rules or had a request within a day."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    server, cursor = Server(url), None
    found: list[dict[str, Any]] = []
    while len(found) < most:
        page = server.get("/api/sites", cursor=cursor, limit=min(_PAGE, most - len(found)))
        found += page["sites"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    show_list(found, as_json, _HEADERS, _row, empty="no sites")


@group.command()
def show(
    site: _Site,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,  # noqa: ARG001  there is no other form, but every command takes it
) -> None:
    """Show the rules and the state of a site as JSON."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    show_json(Server(url).get(_path(site)))


@group.command("set")
def set_rules(
    site: _Site,
    *,
    rate: Annotated[
        float | None, typer.Option(help="Maximum requests per second, all workers together; 0 for no limit.")
    ] = None,
    burst: Annotated[int | None, typer.Option(help="Requests allowed at once after an idle time.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Maximum requests in flight; 0 for no limit.")] = None,
    min_rate: Annotated[
        float | None, typer.Option(help="Lowest rate that slowing down may reach, in requests per second.")
    ] = None,
    adapt: Annotated[
        bool | None, typer.Option("--adapt/--no-adapt", help="Slow down on 429, 503 and rising latency.")
    ] = None,
    breaker_failures: Annotated[
        int | None, typer.Option(help="Failures in a row that open the circuit breaker.")
    ] = None,
    breaker_ratio: Annotated[
        float | None, typer.Option(help="Share of failed requests (0 to 1) that opens the circuit breaker.")
    ] = None,
    breaker_seconds: Annotated[float | None, typer.Option(help="Seconds that the circuit breaker stays open.")] = None,
    robots: Annotated[Literal["ignore", "obey"] | None, typer.Option(help="Obey or ignore its robots.txt.")] = None,
    note: Annotated[str | None, typer.Option(help="Note for other operators.")] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change the rules of a site. Options that are not given stay as they are. Workers apply it within a second."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.errors import BadRequest

    given = {
        "rate": rate,
        "burst": burst,
        "concurrency": concurrency,
        "min_rate": min_rate,
        "adapt": adapt,
        "breaker_failures": breaker_failures,
        "breaker_ratio": breaker_ratio,
        "breaker_seconds": breaker_seconds,
        "robots": robots,
        "note": note,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise BadRequest("say what to change, e.g. --rate 2; `scrapeyard sites set --help` lists it all")
    server = Server(url)
    rules = server.get(_path(site))["rules"] or {}
    rules.pop("updated_at", None)
    _show(server.call("PUT", _path(site), body={**rules, **changes})[1], as_json)


@group.command()
def unset(site: _Site, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a site's rules: the settings decide again."""
    from scrapeyard.cli.common.client import Server

    _show(Server(url).call("DELETE", _path(site))[1], as_json)


@group.command()
def reset(site: _Site, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Close a site's breaker and forget what slowed it down; its rules stay."""
    from scrapeyard.cli.common.client import Server

    _show(Server(url).call("POST", f"{_path(site)}/reset")[1], as_json)


def _path(site: str) -> str:
    return f"/api/sites/{quote(site, safe=':')}"


def _show(document: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json, show_table

    if as_json:
        show_json(document)
        return
    show_table(_HEADERS, [_row(document)], empty="no site")


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    limits, state, rules = each["limits"], each["state"] or {}, each["rules"] or {}
    return (
        each["site"],
        _rate(limits["rate"]),
        _rate(state.get("rate")) + (" (slowed)" if state.get("slowed") else ""),
        str(state.get("waiting", 0)),
        _breaker(state),
        "" if state.get("success_share") is None else f"{state['success_share']:.0%}",
        "" if state.get("latency_ms") is None else f"{state['latency_ms']:.0f} ms",
        limits["robots"],
        rules.get("note", ""),
    )


def _rate(rate: float | None) -> str:
    return f"{rate:g}/s" if rate else "any"


def _breaker(state: dict[str, Any]) -> str:
    breaker = str(state.get("breaker", "closed"))
    return f"{breaker}, {state['breaker_seconds']:.0f} s" if state.get("breaker_seconds") else breaker


workers = Commands(help="Workers: list, drain, undrain.")
_Worker = Annotated[str, typer.Argument(metavar="ID", help="Worker id, as `workers list` shows it.")]
_POLL_SECONDS = 1.0


def register_workers(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(workers, name="workers")


@workers.callback(invoke_without_command=True)
def _bare(context: typer.Context, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_workers(url, as_json)


@workers.command("list")
def list_workers(url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Workers whose heartbeat is fresh, with their load and lanes."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    found = Server(url).get("/api/workers")["workers"]
    headers = ("ID", "HOST", "BUSY", "LANES", "LOAD", "MEMORY", "DONE", "SEEN")
    show_list(found, as_json, headers, _worker_row, empty="no workers")


@workers.command()
def drain(
    worker: _Worker,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has finished its work.")] = False,
    end: Annotated[bool, typer.Option("--exit", help="Stop its process afterwards.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Maximum seconds to wait; 0 for no limit.")] = 0.0,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Take no new work, and finish what it has. Exits with 1 if --timeout was too short."""
    from scrapeyard.cli.common.client import Server

    server = Server(url)
    found = server.call("POST", _drain_path(worker) + ("?exit=true" if end else ""))[1]
    if wait:
        found = _until_empty(server, worker, timeout)
    _show_worker(found, as_json)
    if wait and found is not None and not _is_empty(found):
        raise typer.Exit(1)


@workers.command()
def undrain(worker: _Worker, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let it take work again."""
    from scrapeyard.cli.common.client import Server

    _show_worker(Server(url).call("DELETE", _drain_path(worker))[1], as_json)


def _drain_path(worker: str) -> str:
    return f"/api/workers/{quote(worker, safe='')}/drain"


def _until_empty(server: "Server", worker: str, timeout: float) -> dict[str, Any] | None:
    """The worker when it has nothing left to do, or when the time is over; None if it has ended."""
    ends = time.monotonic() + timeout if timeout else math.inf
    while True:
        found = {each["id"]: each for each in server.get("/api/workers")["workers"]}.get(worker)
        if found is None or _is_empty(found) or time.monotonic() >= ends:
            return found
        time.sleep(_POLL_SECONDS)


def _is_empty(worker: dict[str, Any]) -> bool:
    """Whether it takes nothing and has nothing. While `exit` was asked of it, it is about to end, and will be gone."""
    return bool(worker["draining"] and not worker["running"] and worker["drain"] != "exit")


def _show_worker(worker: dict[str, Any] | None, as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json

    if as_json:
        show_json(worker)
    elif worker is None:
        typer.echo("the worker has ended", err=True)
    elif worker["drain"]:
        takes = "takes nothing" if worker["draining"] else "is told to drain at its next heartbeat"
        typer.echo(f"{worker['id']} {takes}; it has {worker['running']} runs and batches", err=True)
    else:
        typer.echo(f"{worker['id']} takes work", err=True)


def _worker_row(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        each["id"],
        f"{each['host']}:{each['pid']}",
        f"draining, {each['running']} left" if each["draining"] else f"{each['busy']}/{each['slots']}",
        ",".join(each["lanes"]),
        f"{each['load']:.2f}",
        f"{each['memory_mb']:.0f} MB",
        str(each["runs_done"]),
        f"{each['age_seconds']:.0f} s",
    )
