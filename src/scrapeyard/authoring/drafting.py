"""A first script for a page: it returns the fields that are found there."""

import json
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from scrapeyard.authoring.template import check_new, write_new
from scrapeyard_sdk import Page

_PRODUCT: Final = ("price", "currency", "availability", "sku", "brand", "category", "description")
"""Parts of a product that become fields of their own, where the page has them."""

_SCRIPT = '''"""{{{{name}}}}: {words}."""

from typing import Any

from scrapeyard_sdk import Context, Fail, Retry


async def run(ctx: Context, url: str) -> dict[str, Any]:
    page = await ctx.fetch(url)
    if page.status in (429, 503):
        raise Retry(f"the site is busy ({{page.status}})", after=10)
    if page.status != 200:
        raise Fail(f"{{url}} answered {{page.status}}")
{lines}    return {{
        "url": page.url,
{fields}    }}
'''
_MANIFEST = """schema = 1
id = "{{{{id}}}}"
version = "0.1.0"
name = "{{{{name}}}}"
description = "What it gets, in one sentence."
entry = "scraper.py:run"

# Hosts that fetch may reach, e.g. "shop.example", "*.shop.example".
allowed_hosts = {hosts}

# What a result must look like. A run whose result does not fit ends as bad_result.
[output]
type = "object"
required = {required}
properties.url = {{ type = "string", format = "uri" }}
{properties}
[limits]
wall_seconds = 30
cpu_seconds = 10
memory_mb = 256
"""


class DraftField(Struct, frozen=True):
    """A field of the result."""

    name: str
    expression: str
    """How the script gets it."""
    kind: str
    """Its JSON type."""


def found_fields(page: Page) -> list[DraftField]:
    """What the page has of a title, a product and a description."""
    meta, product = page.meta(), page.product() or {}
    found = []
    if page.text("h1"):
        found.append(DraftField("title", 'page.text("h1")', "string"))
    elif meta.get("title"):
        found.append(DraftField("title", 'page.meta()["title"]', "string"))
    for name in _PRODUCT:
        value = product.get(name)
        if isinstance(value, str | int | float):
            kind = "string" if isinstance(value, str) else "number"
            found.append(DraftField(name, f'product.get("{name}")', kind))
    if not product and meta.get("description"):
        found.append(DraftField("description", 'page.meta()["description"]', "string"))
    return found


def create_for_page(folder: Path, scraper_id: str, page: Page, url: str) -> list[Path]:
    """Write a scraper for such pages into `folder`, without a case. Returns the files written. Raises BadRequest as
    `create` does."""
    fields = found_fields(page)
    hosts = list(dict.fromkeys(host for each in (url, page.url) if (host := urlsplit(each).hostname)))
    script = _SCRIPT.format(
        words="one page, one result",
        lines="    product = page.product() or {}\n" if any("product." in each.expression for each in fields) else "",
        fields="".join(f'        "{each.name}": {each.expression},\n' for each in fields),
    )
    manifest = _MANIFEST.format(
        hosts=json.dumps(hosts),
        required=json.dumps(["url", *(each.name for each in fields)]),
        properties="".join(f'properties.{each.name} = {{ type = ["{each.kind}", "null"] }}\n' for each in fields),
    )
    files = {"scraper.py": script.encode(), "scraper.toml": manifest.encode()}
    check_new(folder, scraper_id, files)
    return write_new(folder, scraper_id, files)
