"""`crawl`: a whole site into one file or folder, here or on a server."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, NO_LIMIT, AllowPrivate, AsJson, ServerUrl, Strict
from scrapeyard.cli.crawls.asked import FOLDER, Crawl, Ended

Include = Annotated[list[str] | None, typer.Option(help="Take only URLs that match, e.g. /p/**; may be repeated.")]
Exclude = Annotated[list[str] | None, typer.Option(help="Leave out URLs that match; may be repeated.")]
Scope = Annotated[
    Literal["host", "site", "path", "any"],
    typer.Option(
        help="Stay on the host (with or without www), on the site, below the path of the URL, or follow any link."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(crawl)


def crawl(
    url: Annotated[str, typer.Argument(help="Start URL.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this file (.csv, .xlsx, .jsonl, .json, .parquet), or markdown files to this folder/.",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=0, max=100, help="Maximum number of links between the start URL and a page.")
    ] = 3,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of pages.")] = 1000,
    include: Include = None,
    exclude: Exclude = None,
    scope: Scope = "host",
    query: Annotated[
        Literal["keep", "clean", "sort", "drop"],
        typer.Option(
            help="Query string of links: keep it, clean it of tracking parameters, clean and sort it, or drop it."
        ),
    ] = "keep",
    formats: Annotated[
        str, typer.Option(help="Forms to save of each page, separated by commas: markdown,text,product …")
    ] = "markdown",
    no_sitemap: Annotated[bool, typer.Option("--no-sitemap", help="Do not read the site's sitemaps.")] = False,
    ignore_robots: Annotated[bool, typer.Option("--ignore-robots", help="Do not obey robots.txt.")] = False,
    rate: Annotated[
        float | None,
        typer.Option(min=0, help="Maximum pages started per second; 0 for no limit. Default: a polite rate."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Maximum pages in progress.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted crawl.")] = False,
    allow_private: AllowPrivate = False,
    on_server: Annotated[
        bool, typer.Option("--on-server", help="Crawl on the server instead of in this process.")
    ] = False,
    strict: Strict = False,
    server: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Crawl a site: follow its links and read its sitemaps. Without -o a line of JSON for each page goes to stdout.
    Ctrl-C writes what is there; --resume goes on."""
    from scrapeyard.cli.common.inputs import complete
    from scrapeyard.cli.crawls import here, there

    url = complete(url)
    own_rate = rate if rate != 0 else NO_LIMIT
    table = {
        "url": url,
        "depth": depth,
        "limit": limit,
        "include": include or [],
        "exclude": exclude or [],
        "scope": scope,
        "query": query,
        "sitemap": not no_sitemap,
        "formats": [name.strip() for name in formats.split(",") if name.strip()],
        "robots": "ignore" if ignore_robots else "obey",
        **{name: value for name, value in (("rate", own_rate), ("concurrency", concurrency)) if value is not None},
    }
    asked = Crawl(table=table, output=output, form=_form_of(output), resume=resume)
    asked.check(as_json=as_json, on_server=on_server)
    ended = there.crawl(asked, server) if on_server else here.crawl(asked, allow_private=allow_private)
    _finish(ended, strict=strict, as_json=as_json)


def _form_of(output: Path | None) -> str:
    from scrapeyard.cli.jobs.calls import EXPORT_FORMATS
    from scrapeyard.cli.jobs.results import chosen_format
    from scrapeyard.errors import BadRequest

    if output is None:
        return "jsonl"
    named = output.suffix.lower().removeprefix(".")
    if output.is_dir() or (not named and not output.is_file()):
        return FOLDER
    if named not in EXPORT_FORMATS:
        raise BadRequest(f"{output}: pages can be written as .{', .'.join(EXPORT_FORMATS)}, or into a folder")
    return str(chosen_format(output, None))


def _finish(ended: Ended, *, strict: bool, as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import is_bad

    if as_json:
        show_json(ended.job)
    typer.echo(f"scrapeyard: {summary(ended)}", err=True)
    if ended.interrupted:
        raise typer.Exit(130)
    if is_bad(ended.job, strict=strict):
        raise typer.Exit(1)


def summary(ended: Ended) -> str:
    """Counts, what was left out, and why, in a line."""
    from scrapeyard.cli.common.output import plain
    from scrapeyard.cli.jobs.documents import spent

    job, counts = ended.job, ended.job["counts"]
    found = job["source"].get("found", {})
    why = f" ({job['error']['message']})" if job["error"] else ""
    words = "interrupted" if ended.interrupted else f"{job['status']}{why}"
    parts = [f"{words}: {counts['success']:,} of {counts['total']:,} pages{spent(job)}"]
    if found.get("sitemap_urls"):
        parts.append(f"{found['sitemap_urls']:,} from the sitemap")
    if found.get("beyond_depth"):
        depth, links = job["source"].get("depth", 1), found["beyond_depth"]
        parts.append(f"depth {depth} reached: {links:,} {'link' if links == 1 else 'links'} not followed")
    parts += dict.fromkeys([*ended.notes, *job["warnings"]])
    if ended.interrupted:
        parts.append("go on with --resume")
    return plain("; ".join(parts))
