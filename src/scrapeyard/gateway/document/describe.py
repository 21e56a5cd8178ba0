"""The OpenAPI document: what the routes say, completed."""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from fastapi.openapi.utils import get_openapi
from msgspec import Struct
from pydantic import BaseModel
from starlette.routing import BaseRoute

from scrapeyard import __version__
from scrapeyard.gateway.auth.permissions import Permission, asked_for
from scrapeyard.gateway.document.properties import complete, example_of, texts
from scrapeyard.gateway.http.answers import JSON, AnswerRoute, schemas
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.model import Scraper
from scrapeyard.settings import GatewaySettings

DESCRIPTION: Final = (
    "Runs scrapers and answers in the same response. Errors are `application/problem+json` with a stable `code`, "
    "`retryable` and a `remedy`. A path may end in a slash, and HEAD is answered wherever GET is. `/api/runs` "
    "stands for `/api/scrape`, `/api/schedules` for `/api/schedule`, and `/jobs` for `/api/jobs`. "
    "`Prefer: dialect=site` or `tasks` asks for other words of `status` and for bare lists."
)
TAGS: Final = {
    "scrape": "Run a scraper, or read one page.",
    "crawl": "Crawl a site, or list its URLs.",
    "extract": "Extract data to a schema, and see what was learned of sites.",
    "runs": "Look runs up, follow and cancel them.",
    "jobs": "Run a scraper on a list, a sitemap or the links of pages; results and exports.",
    "exports": "Files made of the results of a job.",
    "sinks": "Where the results of jobs are delivered.",
    "schedules": "Start jobs and runs by the clock.",
    "usage": "What clients, scrapers and sites used.",
    "webhooks": "Messages to receivers.",
    "scrapers": "Which scrapers there are, and which version runs.",
    "projects": "Scrapy projects that were uploaded.",
    "sites": "How sites are treated, and how they are doing.",
    "proxies": "Pools of proxies.",
    "audit": "Changes and refused calls.",
    "cache": "Cached pages.",
    "secrets": "Secrets of scrapers: written, granted, never read.",
    "keys": "Who may call, and what they may do.",
    "graphql": "Read several things with one query.",
    "operations": "How the platform is doing.",
}
SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer sy_…`"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The key alone."},
    "basic": {"type": "http", "scheme": "basic", "description": "Any user, and the key as password."},
}
_SERVER: Final = {"url": "/", "description": "The gateway that serves this document."}
_OTHER: Final = {"description": "What a scraper of your own returned: any JSON value."}


def describe(
    routes: Sequence[BaseRoute],
    settings: GatewaySettings,
    calls: Iterable[type[BaseModel]],
    told: Iterable[type[Struct]],
    builtins: Iterable[Scraper],
) -> dict[str, Any]:
    """The whole document, with this gateway's own limits filled in. `calls` and `told` are bodies and answers that no
    route names; `builtins` are the scrapers whose results are described."""
    document = get_openapi(
        title="Scrapeyard",
        version=__version__,
        description=DESCRIPTION,
        routes=routes,
        servers=[_SERVER],
        contact={"name": "Scrapeyard"},
        license_info={"name": "Apache 2.0", "identifier": "Apache-2.0"},
    )
    used = {tag for operation in _operations(document) for tag in operation["tags"]}
    document["tags"] = [{"name": name, "description": meaning} for name, meaning in TAGS.items() if name in used]
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for model in calls:
        whole = model.model_json_schema(ref_template="#/components/schemas/{model}")
        components.update(whole.pop("$defs", {}))
        components[model.__name__] = whole
    shown = {answer for route in routes if isinstance(route, AnswerRoute) for answer in route.answers}
    for name, schema in schemas({*shown, *told}).items():
        components.setdefault(name, schema)
    for name, schema in components.items():
        complete(name, schema)
    _type_results(components, builtins)
    for operation in _operations(document):
        _show_examples(operation, components)
    _secure(document)
    call = components["ScrapeCall"]["properties"]
    _bound(call["wait"], "number", "maximum", settings.max_wait_seconds)
    _bound(call["urls"], "array", "maxItems", settings.max_urls)
    return document


def _type_results(components: dict[str, Any], builtins: Iterable[Scraper]) -> None:
    """Describe the results of built-in scrapers, wherever a result is shown."""
    results = {
        f"{scraper.name}Result": {"description": scraper.description, **deepcopy(scraper.output_schema)}
        for scraper in builtins
        if scraper.output_schema and scraper.output_schema.get("properties")
    }
    if not results:
        return
    kinds = [{"$ref": f"#/components/schemas/{name}"} for name in results]
    for schema in components.values():
        field = schema.get("properties", {}).get("result")
        if field is not None and not field.get("type"):
            field["anyOf"] = [*kinds, _OTHER]
    components.update(results)
    for name, schema in results.items():
        complete(name, schema)


def _secure(document: dict[str, Any]) -> None:
    """How callers authenticate, and what they are answered if they do not."""
    document["components"]["securitySchemes"] = SCHEMES
    document["security"] = [{name: []} for name in SCHEMES]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if asked_for()[f"{method.upper()} {path}"] is Permission.OPEN:
                operation["security"] = []
                continue
            for status, answer in refusals(401, 403).items():
                operation["responses"].setdefault(str(status), answer)


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in document["paths"].values():
        yield from operations.values()


def _show_examples(operation: dict[str, Any], components: dict[str, Any]) -> None:
    """An example of each parameter that a path needs, of the body and of each good answer."""
    name = operation["operationId"]
    for parameter in operation.get("parameters", ()):
        example = texts().example(name, parameter["name"])
        if parameter["required"] and example is not None and "examples" not in parameter["schema"]:
            parameter["example"] = example
    body = operation.get("requestBody", {})
    good = [answer for status, answer in operation["responses"].items() if status < "300"]
    for part in (body, *good):
        for media, content in part.get("content", {}).items():
            schema = content.get("schema", {})
            if media == JSON and ("$ref" in schema or "anyOf" in schema):
                content["example"] = example_of(schema, components)
            elif name in texts().examples and media.startswith("text/"):
                content["example"] = texts().examples[name]


def _bound(schema: dict[str, Any], kind: str, keyword: str, value: float) -> None:
    for part in schema["anyOf"]:
        if part["type"] == kind:
            part[keyword] = value
