"""`scrapers`: what a server can run, which versions there are, and where channels point; or what a folder holds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.listing import complete_scrapers
from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ScrapersFolder, ServerUrl, add_group

_REFRESH_SECONDS = 300.0
group = Commands(help="Scrapers: list, show, versions, refresh, channels, move, unmove, state, drift.")
_Id = Annotated[str, typer.Argument(metavar="ID", help="Scraper id: site/task.", autocompletion=complete_scrapers)]
_Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="Channel, e.g. stable or beta.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "scrapers", group, lambda url: list_scrapers(url=url))


@group.command("list")
def list_scrapers(
    scrapers: ScrapersFolder = None,
    site: Annotated[str | None, typer.Option(help="Only scrapers of this site.")] = None,
    q: Annotated[
        str | None, typer.Option("--search", help="Only scrapers with this text in their id, name or description.")
    ] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Every version of every scraper; an invalid one says why it cannot run. With --scrapers, that folder alone is
    looked at, and no server is asked."""
    import asyncio

    from scrapeyard.cli.common.client import Server

    if scrapers is None:
        _show(Server(url).get("/api/scrapers", site=site, q=q), as_json)
        return
    found = asyncio.run(_in_folder(scrapers, site, q))
    _show({"scrapers": found, "sources": []}, as_json)
    if not all(each["valid"] for each in found):
        raise typer.Exit(1)


@group.command()
def show(
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Scraper: site/task, or site/task@ with a version or range.",
            autocompletion=complete_scrapers,
        ),
    ],
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,  # noqa: ARG001  there is no other form, but every command takes it
) -> None:
    """How a scraper is called, as JSON: schemas, limits, hosts it may reach, versions, channels, source."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    scraper_id, _, version = wanted.partition("@")
    document = Server(url).get(path_of(scraper_id), version=version or None)
    show_json(document)
    _tell_stale([document["freshness"]] if document["freshness"] else [])


@group.command()
def versions(scraper_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Every version of a scraper, newest first, with the channels that point to it and where it comes from."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    document = Server(url).get(path_of(scraper_id))
    headers = ("VERSION", "CHANNELS", "SOURCE", "PLACE", "DIGEST", "PROBLEM")
    show_list(document["versions"], as_json, headers, _version_row, empty="no versions")
    _tell_stale([document["freshness"]] if document["freshness"] else [])


@group.command()
def refresh(url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Make the server and its workers look at their repositories now, and list what is there."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import spinner

    with spinner("looking at the repositories"):
        _, document = Server(url).call("POST", "/api/scrapers/refresh", patience=_REFRESH_SECONDS)
    _show(document, as_json)


@group.command()
def channels(scraper_id: _Id, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Where the channels of a scraper point, and the last moves."""
    from scrapeyard.cli.common.client import Server

    _show_channels(Server(url).get(f"{path_of(scraper_id)}/channels"), as_json)


@group.command()
def move(
    scraper_id: _Id,
    channel: _Channel,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="An exact version that exists.")],
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Point a channel to a version. Rolling back is moving `stable` to an older one."""
    from scrapeyard.cli.common.client import Server

    _, document = Server(url).call("PUT", _channel_path(scraper_id, channel), body={"version": version})
    _show_channels(document, as_json)


@group.command()
def unmove(scraper_id: _Id, channel: _Channel, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Take a move back: the repository decides again where the channel points."""
    from scrapeyard.cli.common.client import Server

    _, document = Server(url).call("DELETE", _channel_path(scraper_id, channel))
    _show_channels(document, as_json)


@group.command()
def state(
    scraper_id: _Id,
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="Show the value of this key.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove the key; without KEY, the whole state.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """What a scraper keeps between its runs with ctx.state: its keys, or one value."""
    from urllib.parse import quote

    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import age, show_json, show_list, size

    path = f"{path_of(scraper_id)}/state" + (f"/{quote(key, safe='')}" if key else "")
    document = Server(url).call("DELETE", path)[1] if delete else Server(url).get(path)
    if "value" in document:
        show_json(document if as_json else document["value"])
        return
    rows = ("KEY", "SIZE", "CHANGED")
    show_list(
        document["entries"],
        as_json,
        rows,
        lambda each: (each["key"], size(each["bytes"]), f"{age(each['changed_at'])} ago"),
        empty="no state",
    )


def path_of(scraper_id: str) -> str:
    """Where a server describes a scraper. Raises BadRequest when that is not an id."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.model import SCRAPER_ID

    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's id; write site/task, e.g. shop/product")
    return f"/api/scrapers/{scraper_id}"


def _channel_path(scraper_id: str, channel: str) -> str:
    from urllib.parse import quote

    return f"{path_of(scraper_id)}/channels/{quote(channel, safe='')}"


def _show(document: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_list

    show_list(document["scrapers"], as_json, ("ID", "VERSION", "CHANNELS", "ABOUT"), _row, empty="no scrapers")
    _tell_stale(document["sources"])


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    about = each["problem"] or each["description"] or each["name"]
    return each["id"], each["version"], ", ".join(each["channels"]), about


def _version_row(each: dict[str, Any]) -> tuple[str, ...]:
    digest = each["digest"][:12]
    problem = each["problem"] if each["offered"] else "no repository offers it any more; the copy here serves calls"
    return each["version"], ", ".join(each["channels"]), each["source"], each["place"], digest, problem


def _show_channels(document: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import age, show_json, show_table

    if as_json:
        show_json(document)
        return
    last = {move["channel"]: move for move in reversed(document["moves"])}
    rows = [
        (
            channel,
            version,
            f"moved {age(last[channel]['moved_at'])} ago, before: {last[channel]['before'] or 'not moved'}"
            if channel in document["moved"] and channel in last
            else "repository",
        )
        for channel, version in document["channels"].items()
    ]
    show_table(("CHANNEL", "VERSION", "SET BY"), rows, empty="no channel is set; calls take the newest release")


def _tell_stale(sources: list[dict[str, Any]]) -> None:
    from scrapeyard.cli.common.output import plain

    for source in sources:
        if source["stale"]:
            typer.echo(f"scrapeyard: {plain(source['name'])} may be out of date: {plain(source['stale'])}", err=True)
        if hidden := source.get("hidden"):
            names = ", ".join(map(plain, hidden[:10])) + (" …" if len(hidden) > 10 else "")
            typer.echo(f"scrapeyard: {plain(source['name'])}: hidden by repositories before it: {names}", err=True)


async def _in_folder(folder: Path, site: str | None, words: str | None) -> list[dict[str, Any]]:
    import tempfile

    from scrapeyard.cli.runs.local import catalogue_of
    from scrapeyard.repository.catalogue.listings import Listings
    from scrapeyard.settings import LogSettings, SourceSettings, load
    from scrapeyard.telemetry.events import configure

    configure(LogSettings(level="error"))
    settings = load()
    alone = {"scrapers": folder, "source": SourceSettings(), "more": (), "installed": False}
    settings = settings.model_copy(update={"repository": settings.repository.model_copy(update=alone)})
    with tempfile.TemporaryDirectory(prefix="scrapeyard-list-") as cache:
        catalogue = catalogue_of(settings, Path(cache))
        try:
            await catalogue.refresh()
            return Listings(catalogue).all(site, words)
        finally:
            await catalogue.stop()


@group.command()
def drift(
    scraper_id: _Id,
    accept: Annotated[bool, typer.Option("--accept", help="Accept the next results as the new normal.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """How often each field of a scraper's results is filled, and which have emptied or changed."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json, show_list

    path = f"{path_of(scraper_id)}/drift"
    document = Server(url).call("DELETE", path)[1] if accept else Server(url).get(path)
    if as_json:
        show_json(document)
        return
    fields = [{"site": site["site"], **each} for site in document["sites"] for each in site["fields"]]
    headers = ("SITE", "FIELD", "FILLED", "LAST 20", "DRIFT", "BEFORE", "NOW")
    show_list(fields, False, headers, _field_row, empty="no results were seen yet")


def _field_row(field: dict[str, Any]) -> tuple[str, ...]:
    rates = (f"{field['fill_rate']:.0%}", f"{field['recent_fill_rate']:.0%}")
    return field["site"], field["name"], *rates, field["drift"] or "", field["before"] or "", field["now"] or ""
