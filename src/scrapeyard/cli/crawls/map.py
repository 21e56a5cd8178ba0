"""`map`: the URLs of a site, here or on a server."""

from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AllowPrivate, ServerUrl
from scrapeyard.cli.crawls.crawl import Exclude, Include, Scope


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("map")(map_site)


def map_site(
    url: Annotated[str, typer.Argument(help="URL of the site.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of URLs.")] = 5000,
    include: Include = None,
    exclude: Exclude = None,
    scope: Scope = "host",
    search: Annotated[str, typer.Option(metavar="WORD", help="List only URLs that contain this word.")] = "",
    no_sitemap: Annotated[bool, typer.Option("--no-sitemap", help="Do not read the site's sitemaps.")] = False,
    allow_private: AllowPrivate = False,
    on_server: Annotated[
        bool, typer.Option("--on-server", help="Map on the server instead of in this process.")
    ] = False,
    server: ServerUrl = DEFAULT_URL,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON with the place where each URL was found.")
    ] = False,
) -> None:
    """List the URLs of a site, one per line: links of the page, and URLs from robots.txt and the sitemaps."""
    from scrapeyard.cli.common.inputs import complete
    from scrapeyard.cli.common.output import plain, show_json, write

    url = complete(url)
    asked: dict[str, Any] = {
        "url": url,
        "limit": limit,
        "include": include or [],
        "exclude": exclude or [],
        "scope": scope,
        "search": search,
        "sitemap": not no_sitemap,
    }
    found = _there(server, asked) if on_server else _here(asked, allow_private=allow_private)
    if as_json:
        show_json(found)
    else:
        write("".join(f"{plain(each['url'])}\n" for each in found["urls"]).encode("utf-8", "backslashreplace"))
    more = [f"there are more; --limit {limit * 10} lists up to so many"] if found["has_more"] else []
    for words in [*found["warnings"], *more]:
        typer.echo(f"scrapeyard: {plain(words)}", err=True)


def _there(url: str, asked: dict[str, Any]) -> dict[str, Any]:
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import spinner

    with spinner(f"mapping {asked['url']}"):
        _, run = Server(url).call("POST", "/api/map", body={**asked, "wait": 120}, patience=150)
    return dict(run["result"])


def _here(asked: dict[str, Any], *, allow_private: bool) -> dict[str, Any]:
    import asyncio
    import json

    from scrapeyard.cli.common.output import spinner
    from scrapeyard.cli.runs.running import quiet, until_done
    from scrapeyard.cli.runs.summary import tell_local_end
    from scrapeyard.model import ExitReason, RunStatus
    from scrapeyard.settings import load

    settings = load({"http": {"allow_private": allow_private or None}})
    quiet(settings.log)
    with spinner(f"mapping {asked['url']}"):
        ended, result = asyncio.run(until_done(_run(asked, settings)))
    if ended.status is not RunStatus.SUCCEEDED:
        tell_local_end(ended.exit_reason or ExitReason.INTERNAL_ERROR, ended.error)
        raise typer.Exit(1)
    return dict(json.loads(result))


async def _run(asked: dict[str, Any], settings: Any) -> Any:
    from scrapeyard.builtin import MAP
    from scrapeyard.cli.runs.local import open_yard

    async with open_yard(settings, has_scripts=False) as yard:
        scraper = await yard.find(MAP)
        ended, outcome = await yard.run(scraper, yard.check(scraper, asked))
        return ended, await yard.result(outcome)
