"""`alerts`: what is wrong now and what was; and a message to try the receivers with."""

import time
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ServerUrl, add_group

group = Commands(help="Alerts: list, test.")
_HEADERS = ("STATE", "RULE", "SUBJECT", "SINCE", "UNTIL", "WHAT")
_POLL_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "alerts", group, lambda url: list_alerts(url=url))


@group.command("list")
def list_alerts(
    *,
    firing: Annotated[bool, typer.Option("--firing", help="Only alerts that are firing.")] = False,
    most: Annotated[int, typer.Option("--limit", min=1, max=200, help="Maximum number to list.")] = 50,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List alerts, newest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    found = Server(url).get("/api/alerts", limit=most, state="firing" if firing else None)["alerts"]
    show_list(found, as_json, _HEADERS, _row, empty="no alerts")


@group.command("test")
def try_receivers(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for each receiver.")] = 30.0,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Send a test message to every receiver and show the results. Exits with 1 if one failed."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    server = Server(url)
    sent = server.call("POST", "/api/alerts/test")[1]["deliveries"]
    ends = time.monotonic() + timeout
    told = [{"receiver": name, **_outcome(server, delivery, ends)} for name, delivery in sent.items()]
    show_list(told, as_json, ("RECEIVER", "STATE", "ERROR"), _told_row, empty="no receivers")
    if any(each["state"] != "delivered" for each in told):
        raise typer.Exit(1)


def _outcome(server: Any, delivery_id: str, ends: float) -> dict[str, Any]:
    """How a delivery stands after its first attempt, or when the time is over."""
    while True:
        found = server.get(f"/api/webhooks/deliveries/{delivery_id}")
        if found["log"] or time.monotonic() >= ends:
            return {"state": found["state"], "error": found["error"], "delivery": delivery_id}
        time.sleep(_POLL_SECONDS)


def _told_row(each: dict[str, Any]) -> tuple[str, ...]:
    return each["receiver"], each["state"], each["error"] or ""


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        *(each["state"], each["rule"], each["subject"]),
        *(each["started_at"], each["resolved_at"] or "", each["words"]),
    )
