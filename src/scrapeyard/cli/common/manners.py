"""How polite a job is, and how to change that, in a line on stderr."""

from collections.abc import Mapping
from typing import Any

import typer

from scrapeyard.cli.common.options import NO_LIMIT


def tell_manners(job: Mapping[str, Any], change: str, url: str | None = None) -> None:
    """Say what holds for a job, by its document; `change` names the options that change it. With the URL of a crawl,
    what holds for its host. Says nothing of a job whose server does not tell."""
    manners = job.get("manners")
    if manners is None:
        return
    hosts = manners["public" if url is None or _is_public(url) else "private"]
    own, limit = manners["items_per_second"], hosts["requests_per_second"]
    robots = f"{'Obeys' if hosts['robots'] == 'obey' else 'Ignores'} robots.txt"
    where = " of public hosts" if url is None and manners["private"] != manners["public"] else ""
    if own is not None and own < NO_LIMIT:
        rate = f"starts at most {own:g} pages a second"
    elif limit:
        rate = f"sends at most {limit:g} requests a second to a site"
    else:
        rate = "has no limit of its rate"
    typer.echo(f"scrapeyard: {robots}{where} and {rate}; {change}", err=True)


def _is_public(url: str) -> bool:
    from scrapeyard.engines.http.guard import is_public
    from scrapeyard.engines.http.url import parse_target

    return is_public(parse_target(url))
