"""A first script for a page: it returns the fields that are found there."""

import json
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from scrapeyard.authoring.template import check_new, write_new
from scrapeyard_sdk import Page

_PRODUCT: Final = ("price", "currency", "availability", "sku", "brand", "category", "description")
"""Parts of a product that become fields of their own, where the page has them."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
"""Names of JSON that stand in a script and a manifest as they are."""
_MOST = 20
"""Maximum fields taken from a JSON object."""

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
    """What the page has of a title, a product and a description; of JSON, its own fields."""
    if "json" in page.headers.get("content-type", "").lower():
        return _json_fields(page)
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


def _json_fields(page: Page) -> list[DraftField]:
    try:
        data = page.json()
    except ValueError:
        return []
    if isinstance(data, list):
        return [DraftField("items", "data", "array")]
    named = data.items() if isinstance(data, dict) else ()
    usable = [(name, value) for name, value in named if _NAME.fullmatch(name) and name != "url" and value is not None]
    return [DraftField(name, f'data.get("{name}")', _kind(value)) for name, value in usable[:_MOST]]


def _kind(value: Any) -> str:
    """The JSON type of a value."""
    kinds = ((bool, "boolean"), (int | float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _lines(fields: list[DraftField]) -> str:
    """What the script reads before its result."""
    used = " ".join(each.expression for each in fields)
    if "product." in used:
        return "    product = page.product() or {}\n"
    return "    data = page.json()\n" if re.search(r"\bdata\b", used) else ""


def create_for_page(folder: Path, scraper_id: str, page: Page, url: str) -> list[Path]:
    """Write a scraper for such pages into `folder`, without a case. Returns the files written. Raises BadRequest as
    `create` does."""
    fields = found_fields(page)
    hosts = list(dict.fromkeys(host for each in (url, page.url) if (host := urlsplit(each).hostname)))
    script = _SCRIPT.format(
        words="one page, one result",
        lines=_lines(fields),
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
