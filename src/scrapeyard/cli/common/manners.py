"""How polite a job is that this command runs, and how to change that, in a line on stderr."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from scrapeyard.settings import SiteSettings


def tell_manners(sites: "SiteSettings", policy: Mapping[str, Any], change: str, url: str | None = None) -> None:
    """Say what holds for a job with this policy; `change` names the options that change it. With the URL of a crawl,
    what holds for its host."""
    from scrapeyard.engines.http.guard import is_public
    from scrapeyard.engines.http.url import parse_target

    public = url is None or is_public(parse_target(url))
    usual = sites.job_robots if sites.robots == "ignore" and public else sites.robots
    robots = policy.get("robots") or usual
    given = policy.get("rate")
    limit = sites.rate or (sites.job_rate if public else 0)
    words = [f"{'Obeys' if robots == 'obey' else 'Ignores'} robots.txt"]
    if given is not None:
        words.append(f"starts at most {given:g} pages a second")
    elif limit:
        words.append(f"sends at most {limit:g} requests a second to a site")
    else:
        words.append("has no limit of its rate")
    where = " of public hosts" if url is None else ""
    typer.echo(f"scrapeyard: {words[0]}{where} and {words[1]}; {change}", err=True)
