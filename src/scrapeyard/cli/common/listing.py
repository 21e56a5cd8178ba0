"""A server's listings: their pages, ids by prefix or `last`, and words for the shell to complete."""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

Kind = Literal["run", "job", "schedule"]
LAST = "last"
_PAGE = 200
_MAX_SEARCHED = 5000
"""Entries that a prefix is compared with."""
_MAX_NAMED = 10
_COMPLETED = 50
_COMPLETION_SECONDS = 1.0


class _Listing(NamedTuple):
    path: str
    name: str
    command: str
    pattern: str
    """Of an id or the beginning of one."""


_LISTINGS: Mapping[Kind, _Listing] = {
    "run": _Listing("/api/scrape", "runs", "runs", r"(run_)?[0-9a-f]{0,32}"),
    "job": _Listing("/api/jobs", "jobs", "jobs", r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
    "schedule": _Listing("/api/schedule", "schedules", "schedule", r"(schedule_)?[0-9a-f]{0,32}"),
}


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


def whole_id(server: "Server", kind: Kind, given: str) -> str:
    """The id that a whole id, the beginning of one or `last` means. Raises BadRequest if it means none or several."""
    from scrapeyard.errors import BadRequest

    listing = _LISTINGS[kind]
    if given == LAST:
        for newest in pages(server, listing.path, listing.name, 1):
            return str(newest["id"])
        raise BadRequest(f"there is no {kind} yet")
    if re.fullmatch(listing.pattern, given) is None:
        raise BadRequest(f"{given[:100]!r} is not a {kind}'s id; `scrapeyard {listing.command}` lists them")
    if re.fullmatch(rf"{kind}_[0-9a-f]{{32}}", given):
        return given
    return _by_prefix(server, kind, given)


def _by_prefix(server: "Server", kind: Kind, given: str) -> str:
    from scrapeyard.errors import BadRequest

    listing = _LISTINGS[kind]
    if kind == "job" and _is_there(server, f"{listing.path}/{given}"):
        return given  # jobs may have ids that their callers chose
    entries = list(pages(server, listing.path, listing.name, _MAX_SEARCHED))
    found = [entry for entry in entries if entry["id"].startswith((given, f"{kind}_{given}"))]
    if len(found) == 1 and len(entries) < _MAX_SEARCHED:
        return str(found[0]["id"])
    if not found:
        raise BadRequest(f"no {kind} begins with {given}; `scrapeyard {listing.command}` lists them")
    if len(found) == 1:
        raise BadRequest(f"{given}: there are more than {_MAX_SEARCHED:,} {listing.name}; write the whole id")
    named = [f"  {entry['id']}  {_about(entry)}" for entry in islice(found, _MAX_NAMED)]
    more = [f"  … and {len(found) - _MAX_NAMED:,} more"] if len(found) > _MAX_NAMED else []
    raise BadRequest("\n".join([f"{given} fits several {listing.name}; write more of the id:", *named, *more]))


def _is_there(server: "Server", path: str) -> bool:
    from scrapeyard.cli.common.client import RefusedCall

    try:
        server.get(path)
    except RefusedCall as refusal:
        if refusal.status == 404:
            return False
        raise
    return True


def input_words(given: Mapping[str, Any], most: int) -> str:
    """An input in a line: its URL if that is all, else `key=value` pairs, as commands take them."""
    import json

    from scrapeyard.cli.common.output import shortened

    if set(given) == {"url"}:
        return shortened(str(given["url"]), most)
    words = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return shortened(", ".join(f"{key}={value}" for key, value in words.items()), most)


def _about(entry: Mapping[str, Any]) -> str:
    from scrapeyard.cli.common.output import age, plain

    words = (entry.get("status"), entry.get("scraper"), entry.get("name"), f"{age(entry['created_at'])} ago")
    return plain(" ".join(str(word) for word in words if word))


def complete_ids(kind: Kind) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    """What completes an id in the shell: the newest that begin with what is typed."""

    def complete(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        def look() -> list[tuple[str, str]]:
            listing = _LISTINGS[kind]
            found = pages(_server(context), listing.path, listing.name, _COMPLETED)
            return [(entry["id"], _about(entry)) for entry in found if entry["id"].startswith(incomplete)]

        return _in_time(look)

    return complete


def complete_scrapers(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """What completes a scraper's id in the shell."""

    def look() -> list[tuple[str, str]]:
        from scrapeyard.cli.common.output import plain

        found = _server(context).get("/api/scrapers")["scrapers"]
        words = {each["id"]: plain(each["name"] or "") for each in found if each["id"].startswith(incomplete)}
        return list(words.items())

    return _in_time(look)


def _server(context: typer.Context) -> "Server":
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.server_address import DEFAULT_URL

    return Server(str(context.params.get(server_name(context)) or DEFAULT_URL))


def server_name(context: typer.Context) -> str:
    """The parameter of a command that takes `--server`; empty if it has none."""
    return next((str(param.name) for param in context.command.params if "--server" in param.opts), "")


def _in_time(look: Callable[[], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What `look` finds; nothing after a second, or if it fails: a shell that completes must not stand still."""
    found: list[tuple[str, str]] = []

    def work() -> None:
        with contextlib.suppress(Exception):  # there is nobody to tell
            found.extend(look())

    thread = threading.Thread(target=work, name="complete", daemon=True)
    thread.start()
    thread.join(_COMPLETION_SECONDS)
    return [] if thread.is_alive() else found
