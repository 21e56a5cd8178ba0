"""The parts of the OpenAPI document that calls with uploads need: bodies of several kinds, parameters in the query."""

from typing import Any

from pydantic import BaseModel

from scrapeyard.gateway.http.openapi import Responses, parameter
from scrapeyard.gateway.jobs.calls import AppendOptions, JobOptions
from scrapeyard.gateway.jobs.uploads import FORMATS, OBJECTS, SHORT
from scrapeyard.gateway.runs.calls import KEY_PATTERN

_KEY = parameter(
    "Idempotency-Key", "header", "The same key and body are one.", {"type": "string", "pattern": KEY_PATTERN}
)
_TEXT = {"type": "string", "format": "binary", "description": "The list, streamed."}
_FORM = {"type": "object", "properties": {"file": _TEXT}, "required": ["file"], "additionalProperties": False}
CREATED: Responses = {
    201: {
        "description": "Made; it is durable.",
        "headers": {
            "Location": {"description": "Where to look the job up.", "schema": {"type": "string"}},
            "Idempotency-Replayed": {"description": "`true` on a replay.", "schema": {"type": "string"}},
        },
    }
}


def _request(json_schema: str, options: type[BaseModel]) -> dict[str, Any]:
    kinds: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{json_schema}"}}}
    for media in FORMATS:
        kinds[media] = {"schema": _FORM if media == "multipart/form-data" else _TEXT}
    return {"requestBody": {"required": True, "content": kinds}, "parameters": [_KEY, *_query(options)]}


def _query(options: type[BaseModel]) -> list[dict[str, Any]]:
    """Every field of the options as a parameter for uploads; objects and lists as JSON."""
    whole = options.model_json_schema()
    found = []
    for name, schema in whole["properties"].items():
        said = f"For an upload. {schema.get('description', '')}"
        if name in OBJECTS:
            short = " Or as `type:format`, parted by commas: `full:csv,seo:xlsx`." if name in SHORT else ""
            found.append(parameter(name, "query", f"{said} Written as JSON.{short}", {"type": "string"}))
        else:
            found.append(parameter(name, "query", said, _plain(schema, whole.get("$defs", {}))))
    return found


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema of one plain value: without null, which a query cannot say, and without references."""
    choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    kept = {key: value for key, value in choices[0].items() if key not in ("description", "title", "default", "$ref")}
    if reference := choices[0].get("$ref"):
        kept |= {key: value for key, value in definitions[reference.rpartition("/")[2]].items() if key != "description"}
    return kept


CREATE = _request("JobCall", JobOptions)
APPEND = _request("AppendCall", AppendOptions)
