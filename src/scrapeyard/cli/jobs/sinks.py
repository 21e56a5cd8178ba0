"""`jobs sinks` and `jobs deliver`: where results are delivered, and how that stands."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.listing import complete_ids
from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, JobId, ServerUrl

SINK_HEADERS = ("SINK", "KIND", "DEFAULT", "ACTIVE", "FAILED")
DELIVERY_HEADERS = ("SINK", "STATE", "DELIVERED", "FAILED", "BEHIND", "LAST ERROR")


def add_to(group: typer.Typer) -> None:
    """Add the commands."""
    group.command()(sinks)
    group.command()(deliver)


def sinks(
    job_id: Annotated[
        str | None,
        typer.Argument(metavar="[JOB]", help="A job: how its sinks stand.", autocompletion=complete_ids("job")),
    ] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the sinks that jobs may name with --sink; with a job, how the delivery to each of its sinks stands."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.cli.jobs.documents import path_of

    server = Server(url)
    if job_id is None:
        found = server.call("GET", "/api/sinks")[1]["sinks"]
        show_list(found, as_json, SINK_HEADERS, _sink_row, empty="no sinks: the operator names them in the settings")
        return
    found = server.call("GET", path_of(server, job_id))[1]["sink_deliveries"]
    show_list(found, as_json, DELIVERY_HEADERS, _delivery_row, empty="the job has no sinks")


def deliver(
    job_id: JobId,
    sink: Annotated[str, typer.Argument(metavar="SINK", help="Name of the sink.")],
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Deliver all records again, also those that the sink has.")
    ] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add a sink to a job, or resume a delivery that was given up."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import path_of

    server = Server(url)
    place = f"{path_of(server, job_id)}/sinks/{sink}"
    _, found = server.call("POST", place, from_start="true" if from_start else "false")
    if as_json:
        show_json(found)
    else:
        typer.echo(f"{found['sink']}: {found['state']}, {found['delivered']:,} delivered, {found['behind']:,} behind")


def _sink_row(sink: Mapping[str, Any]) -> tuple[str, ...]:
    default = "yes" if sink["default"] else ""
    return sink["name"], sink["kind"], default, f"{sink['active']:,}", f"{sink['failed']:,}"


def _delivery_row(found: Mapping[str, Any]) -> tuple[str, ...]:
    numbers = (f"{found[name]:,}" for name in ("delivered", "failed", "behind"))
    return found["sink"], found["state"], *numbers, found["last_error"] or ""
