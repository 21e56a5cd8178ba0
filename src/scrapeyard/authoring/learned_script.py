"""A scraper made of a learned pattern: an ordinary folder whose script reads the fields by the pattern beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scrapeyard.authoring.template import check_new, write_new
from scrapeyard_sdk.extract.patterns import Pattern

PATTERN_FILE: Final = "pattern.json"
_SCRIPT: Final = '''"""{{name}}: reads the fields of pattern.json, which was learned from examples."""

from pathlib import Path
from typing import Any

from scrapeyard_sdk import Context, Fail, Retry
from scrapeyard_sdk.extract.patterns import Pattern

PATTERN = Pattern.from_json(Path(__file__).with_name("pattern.json").read_bytes())
LEAST_CONFIDENCE = 0.3
"""A value is left out if fewer of the rules, by weight, agree on it."""


async def run(ctx: Context, url: str) -> dict[str, Any]:
    page = await ctx.fetch(url)
    if page.status in (429, 503):
        raise Retry(f"the site is busy ({page.status})", after=10)
    if page.status != 200:
        raise Fail(f"{url} answered {page.status}")
    found = PATTERN.find(page.html, page.url)
    missing = [name for name, each in found.items() if each.value in (None, [])]
    if len(missing) == len(found):
        raise Fail(f"the pattern finds nothing on {url}; the site may have changed")
    if missing:
        ctx.log(f"not found: {', '.join(missing)}", level="warning")
    sure = {name: each.value for name, each in found.items() if each.confidence >= LEAST_CONFIDENCE}
    return {"url": page.url, **dict.fromkeys(found), **sure}
'''
_MANIFEST: Final = """schema = 1
id = "{{{{id}}}}"
version = "0.1.0"
name = "{{{{name}}}}"
description = "Fields by a learned pattern: {fields}."
entry = "scraper.py:run"

{hosts}# What a result must look like. A run whose result does not fit ends as bad_result.
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


def write_scraper(folder: Path, scraper_id: str, pattern: Pattern, hosts: list[str]) -> list[Path]:
    """Write script, pattern and manifest into `folder`. Returns the files. Raises BadRequest if one is there, and
    OSError."""
    sources = {
        PATTERN_FILE: pattern.to_json().encode(),
        "scraper.py": _SCRIPT.encode(),
        "scraper.toml": _manifest(pattern, hosts).encode(),
    }
    check_new(folder, scraper_id, sources)
    return write_new(folder, scraper_id, sources)


def _manifest(pattern: Pattern, hosts: list[str]) -> str:
    properties = {name: _schema(each.reading.kind == "number", each.many) for name, each in pattern.fields.items()}
    return _MANIFEST.format(
        fields=", ".join(name.replace('"', "'").replace("\\", "/") for name in pattern.fields)[:300],
        hosts=f"# Hosts that fetch may reach.\nallowed_hosts = {json.dumps(hosts)}\n\n" if hosts else "",
        required=json.dumps(["url", *pattern.fields], ensure_ascii=False),
        properties="".join(f"properties.{json.dumps(name)} = {_inline(each)}\n" for name, each in properties.items()),
    )


def _schema(is_number: bool, many: bool) -> dict[str, Any]:
    kind = "number" if is_number else "string"
    return {"type": ["array", "null"], "items": {"type": kind}} if many else {"type": [kind, "null"]}


def _inline(schema: Mapping[str, Any]) -> str:
    """A JSON Schema as an inline table of TOML."""
    parts = (
        f"{key} = {_inline(value) if isinstance(value, dict) else json.dumps(value)}" for key, value in schema.items()
    )
    return "{ " + ", ".join(parts) + " }"
