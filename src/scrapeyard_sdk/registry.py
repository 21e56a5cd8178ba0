"""Scrapers in Python packages: a decorator beside the function, and an entry point that announces the module.

    from scrapeyard_sdk import Context, scraper

    @scraper("shop/product", version="1.4.2", allowed_hosts=["shop.example"])
    async def product(ctx: Context, url: str) -> dict: ...

    # pyproject.toml
    [project.entry-points."scrapeyard.scrapers"]
    shop = "shop_scrapers.products"             every decorated function of the module, or
    list = "shop_scrapers.lists:listing"        this one

A class with a method `scrape` can be decorated, too; `registry.register` also takes ids without a task. The function
stays what it was: it can be called and tested as before. Nothing is registered anywhere; the
decorator stores its arguments on the function, and they are checked like a manifest.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

GROUP = "scrapeyard.scrapers"
"""The group of entry points."""
ATTRIBUTE = "__scrapeyard__"

TASK = "scrape"
"""The task of an id that `register` gets without one."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def scraper(
    id: str,  # noqa: A002 - the manifest's own word
    *,
    version: str,
    name: str = "",
    description: str = "",
    input: Mapping[str, Any] | None = None,  # noqa: A002
    output: Mapping[str, Any] | None = None,
    capabilities: Sequence[str] = (),
    allowed_hosts: Sequence[str] = (),
    network: str = "engines",
    lane: str = "default",
    isolation: str = "run",
    config: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Make a function of a package a scraper. Every argument means the same as in `scraper.toml`.

    `input` and `output` are JSON Schemas; without `input`, the function's hints decide. Without `description`, the
    first paragraph of the docstring serves. There are no `requirements`: the package has its own.
    """
    tables = {"input": input, "output": output, "config": config, "policy": policy, "limits": limits}
    told = {
        "id": id,
        "version": version,
        "name": name,
        "description": description,
        "capabilities": list(capabilities),
        "allowed_hosts": list(allowed_hosts),
        "network": network,
        "lane": lane,
        "isolation": isolation,
        **{key: dict(table) for key, table in tables.items() if table is not None},
    }

    def keep(function: _Function) -> _Function:
        about = description or (function.__doc__ or "").strip().partition("\n\n")[0]
        setattr(function, ATTRIBUTE, {**told, "description": " ".join(about.split())})
        return function

    return keep


def register(
    id: str,  # noqa: A002 - as in `scraper`
    *,
    version: str,
    task: str = TASK,
    **told: Any,
) -> Callable[[_Function], _Function]:
    """Make a class or a function of a package a scraper: `@registry.register("county-az", version="1.0.0")`.

    An id without a slash gets the task, so the scraper is called `county-az/scrape`. Everything else as in `scraper`.
    In a folder with a manifest the decorator changes nothing: the manifest says id, version and the rest.
    """
    return scraper(id if "/" in id else f"{id}/{task}", version=version, **told)
