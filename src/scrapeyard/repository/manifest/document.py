"""The manifest's format as a JSON Schema, for editors that complete and check while a manifest is written.

It accepts everything that `read_manifest` accepts, and some of what that refuses: it cannot check a nested schema or
whether a file exists.
"""

from typing import Any

from scrapeyard.model import SCRAPER_ID, Limits
from scrapeyard.repository.manifest.manifest import CAPABILITIES, FORMAT, MAX_LIST, Manifest
from scrapeyard.repository.manifest.policy import policy_schema
from scrapeyard.repository.manifest.values import WORD

_WORD = f"^{WORD.pattern}$"
_TABLE = {"type": "object"}
_SCHEMA = {"type": ["object", "string"]}


def manifest_json_schema() -> dict[str, Any]:
    """A new copy of the document, JSON Schema draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "scraper.toml",
        "description": "A scraper of Scrapeyard: who it is, how it is called and what it may use.",
        "type": "object",
        "required": ["id", "version"],
        "additionalProperties": False,
        "properties": _properties(Manifest(id="site/task", version="1.0.0")),
    }


def _properties(default: Manifest) -> dict[str, Any]:
    return {
        "schema": {"const": FORMAT, "description": "The version of this format."},
        "id": {"type": "string", "pattern": SCRAPER_ID.pattern, "description": "site/task, in lower case."},
        "version": {
            "type": "string",
            "pattern": r"^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$",
            "maxLength": 64,
            "description": "A semantic version.",
        },
        "name": {"type": "string", "maxLength": 200, "description": "Name to show in lists."},
        "description": {"type": "string", "maxLength": 5000, "description": "What it gets, in a sentence."},
        "entry": {
            "type": "string",
            "pattern": r"^[^/\\:][^\\:]*\.py:[^:]+$",
            "maxLength": 500,
            "default": default.entry,
            "description": "file.py:function, inside the folder.",
        },
        "requirements": _strings("Packages by name, with versions and markers as PEP 508 writes them."),
        "capabilities": _strings("What it needs of a worker.", enum=list(CAPABILITIES)),
        "allowed_hosts": _strings("Hosts that fetch may reach; without it, any.", pattern=r"^[^/\s]+$"),
        "network": {"enum": ["engines", "direct"], "default": default.network, "description": "direct needs a grant."},
        "lane": {"type": "string", "pattern": _WORD, "default": default.lane, "description": "Which workers take it."},
        "nan": {
            "enum": ["error", "null"],
            "default": default.nan,
            "description": "What NaN and infinity in a result become: an error, or null.",
        },
        "isolation": {
            "enum": ["run", "warm"],
            "default": default.isolation,
            "description": "run: each call has a child of its own; warm: a child serves many, one after another.",
        },
        "input": {**_SCHEMA, "description": 'A JSON Schema of an object, or schema = "input.json".'},
        "output": {**_SCHEMA, "description": 'A JSON Schema, or schema = "output.json".'},
        "config": {**_TABLE, "description": 'What the script finds in ctx.config; { secret = "name" } for a secret.'},
        "policy": policy_schema(),
        "limits": _limits(default.limits),
    }


def _strings(description: str, **each: Any) -> dict[str, Any]:
    items = {"type": "string", "minLength": 1, "maxLength": 500, **each}
    return {"type": "array", "maxItems": MAX_LIST, "items": items, "description": description}


def _limits(default: Limits) -> dict[str, Any]:
    fields = {name: getattr(default, name) for name in Limits.__struct_fields__}
    return {
        "type": "object",
        "additionalProperties": False,
        "description": "What one run may use; cut to the operator's ceiling.",
        "properties": {
            name: {
                "type": "integer" if isinstance(value, int) else "number",
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 2**53,
                "default": value,
            }
            for name, value in fields.items()
        },
    }
