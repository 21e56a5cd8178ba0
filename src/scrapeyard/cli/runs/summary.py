"""Prints how a run ended, for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from scrapeyard.cli.common.output import duration, indented, plain, size

if TYPE_CHECKING:
    from scrapeyard.model import ExitReason, RunError


def tell_bad_end(reason: str, error: Mapping[str, Any] | None, remedy: str) -> None:
    """Reason, message, the script's traceback and what to do, on stderr."""
    error = error or {}
    typer.echo(f"scrapeyard: the run ended badly: {plain(reason)}", err=True)
    if message := str(error.get("message") or ""):
        kind = str(error.get("type") or "")
        typer.echo(indented(f"{kind}: {message}" if kind and kind not in message else message), err=True)
    if error.get("site_status") is not None:
        typer.echo(f"  the site answered {error['site_status']}", err=True)
    if traceback := str(error.get("traceback") or ""):
        typer.echo(indented(traceback), err=True)
    if remedy:
        typer.echo(f"  {plain(remedy)}", err=True)


def tell_local_end(reason: "ExitReason", error: "RunError | None") -> None:
    """As `tell_bad_end`, for a run on this machine, where the author must do what an operator would do."""
    from msgspec.structs import asdict

    from scrapeyard.gateway.http.problems import EXITS
    from scrapeyard.model import ExitReason

    own = {ExitReason.FETCH_PRIVATE_ADDRESS: "Give --allow-private to let it fetch private and loopback addresses."}
    tell_bad_end(reason.value, asdict(error) if error else None, own.get(reason, EXITS[reason]))


def explanation(document: Mapping[str, Any]) -> str:
    """An explanation as lines of text: what to do, phases, fetches, limits."""
    version = f"@{document['version']}" if document.get("version") else ""
    attempt = f"attempt {document['attempt']} of {document['max_attempts']}"
    head = [f"{document['id']}  {document['scraper']}{version}  {document['status']}, {attempt}"]
    parts = [head, [f"  {line}" for line in document["summary"]], _phases(document), _fetches(document)]
    return "\n".join(plain(line) for part in (*parts, _limits(document)) for line in part)


def _phases(document: Mapping[str, Any]) -> list[str]:
    lines = [
        f"  {phase['name']:<12}{duration(phase['ms']):>10}{phase['percent']:>8g} %" for phase in document["phases"]
    ]
    return ["", f"time {duration(document['total_ms'])}", *lines]


def _fetches(document: Mapping[str, Any]) -> list[str]:
    lines = [line for fetch in document["fetches"] for line in (_fetch(fetch), *_tried(fetch))]
    return ["", "fetches", *lines] if lines else []


def _fetch(fetch: Mapping[str, Any]) -> str:
    facts = f"{fetch['status'] or '-':>5}{duration(fetch['ms']):>10}{size(fetch['bytes']):>10}"
    onward = f" → {fetch['final_url']}" if fetch["final_url"] else ""
    failed = f"  {fetch['error']}" if fetch["error"] else ""
    return f"  {facts}  {fetch['method']} {fetch['url']}{onward}{_way(fetch)}{failed}"


def _way(fetch: Mapping[str, Any]) -> str:
    if not fetch["way"]:
        return ""
    old = f", {fetch['age_seconds']:g} s old" if fetch["age_seconds"] is not None else ""
    return f"  ({fetch['way']}{old})"


def _tried(fetch: Mapping[str, Any]) -> list[str]:
    """Each failed attempt of a fetch, on a line below it."""
    return [
        f"{'':>27}  not by {each['way']}: {each.get('status', '')} {each.get('message') or each.get('reason', '')}"
        for each in fetch["tried"]
    ]


def _limits(document: Mapping[str, Any]) -> list[str]:
    lines = [
        f"  {limit['name']:<14}{limit['used']:>10g} of {limit['allowed']:g} ({limit['percent']:g} %)"
        for limit in document["limits"]
    ]
    return ["", "limits", *lines]
