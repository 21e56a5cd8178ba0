"""The tools: what each is called, what it takes, and which call of the API it makes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from scrapeyard.cli.mcp.calls import WAIT_SECONDS, Api, Credentials, scraper_path

FORMATS: Final = ("markdown", "text", "html", "links", "article", "metadata", "structured", "product", "tables")
_URL: Final = {"type": "string", "format": "uri", "maxLength": 8192}
_ENGINE: Final = {"enum": ["auto", "http", "browser"], "description": "How the page is had."}
_ID: Final = {"type": "string", "minLength": 1, "maxLength": 200}
_INPUT: Final = {"type": "object", "description": "The input, as the scraper's schema says."}
_SCRAPER: Final = {"type": "string", "maxLength": 200, "description": "site/task, as list_scrapers has it."}
_CURSOR: Final = {"type": "string", "maxLength": 500, "description": "next_cursor of the page before."}
_RUN_FIELDS: Final = ("status", "scraper", "result", "exit_reason", "error", "starts_at")
_JOB_FIELDS: Final = ("status", "name", "scraper", "counts", "progress", "eta_seconds", "pause_reason", "error")
_ITEM_FIELDS: Final = ("id", "status", "input", "result", "result_bytes", "exit_reason", "error")

_NULL_BYTES: Final = len("null")

Given = dict[str, Any]
Perform = Callable[[Api, Credentials, Given], Awaitable[Any]]


class ToolSpec(Struct, frozen=True):
    """One tool."""

    name: str
    title: str
    description: str
    input_schema: Given
    perform: Perform
    reads_only: bool = False
    """Whether it changes nothing on the server and asks nothing of the web."""


def _object(*required: str, **properties: Given) -> Given:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


async def run(api: Api, who: Credentials, scraper: str, given: Given) -> Given:
    """Run a scraper on an input. If it takes too long, the answer is a handle."""
    body = {"scraper": scraper, "input": given, "wait": WAIT_SECONDS}
    return _run_of(await api.call(who, "POST", "/api/scrape", body=body))


def _run_of(document: Given) -> Given:
    told = {"run_id": document["id"], **_known(document, _RUN_FIELDS)}
    if document["status"] == "succeeded":
        told.setdefault("result", None)
    if document["status"] in ("queued", "running"):
        told["next"] = f"it has not ended yet; call get_run with run_id {document['id']}"
    return told


async def _scrape(api: Api, who: Credentials, given: Given) -> Given:
    return await run(api, who, "builtin/page", {"formats": ["markdown"], **given})


async def _extract(api: Api, who: Credentials, given: Given) -> Given:
    return _run_of(await api.call(who, "POST", "/api/extract", body={**given, "wait": WAIT_SECONDS}))


async def _select(api: Api, who: Credentials, given: Given) -> Given:
    return await run(api, who, "builtin/select", given)


async def _map(api: Api, who: Credentials, given: Given) -> Given:
    return _run_of(await api.call(who, "POST", "/api/map", body={**given, "wait": WAIT_SECONDS}))


async def _crawl(api: Api, who: Credentials, given: Given) -> Given:
    return _job_of(await api.call(who, "POST", "/api/crawl", body={"formats": ["markdown"], **given}))


async def _run_scraper(api: Api, who: Credentials, given: Given) -> Given:
    return await run(api, who, given["scraper"], given.get("input", {}))


async def _create_job(api: Api, who: Credentials, given: Given) -> Given:
    return _job_of(await api.call(who, "POST", "/api/jobs", body=given))


async def _get_run(api: Api, who: Credentials, given: Given) -> Given:
    path = f"/api/scrape/{quote(given['run_id'], safe='')}"
    return _run_of(await api.call(who, "GET", path, query={"wait": given.get("wait", 0)}))


async def _job_status(api: Api, who: Credentials, given: Given) -> Given:
    return _job_of(await api.call(who, "GET", _job_path(given)))


async def _cancel_job(api: Api, who: Credentials, given: Given) -> Given:
    return _job_of(await api.call(who, "POST", f"{_job_path(given)}/cancel"))


async def _job_results(api: Api, who: Credentials, given: Given) -> Given:
    if "item_id" in given:
        path = f"{_job_path(given)}/items/{quote(given['item_id'], safe='')}/download"
        return {"result": await api.call(who, "GET", path, query={"artifact": "data.json"})}
    query = {name: given.get(name) for name in ("status", "cursor")} | {"limit": given.get("limit", 20)}
    page = await api.call(who, "GET", f"{_job_path(given)}/items", query=query)
    return {"items": [_item_of(each) for each in page["items"]], "next_cursor": page["next_cursor"]}


def _item_of(document: Given) -> Given:
    told = _known(document, _ITEM_FIELDS)
    if document["result"] is None and document["result_bytes"] > _NULL_BYTES:
        told["next"] = f"its result is large; call job_results with item_id {document['id']}"
    return told


def _job_of(document: Given) -> Given:
    return {"job_id": document["id"], **_known(document, _JOB_FIELDS)}


def _known(document: Given, names: Sequence[str]) -> Given:
    return {name: document[name] for name in names if document.get(name) not in (None, "")}


def _job_path(given: Given) -> str:
    return f"/api/jobs/{quote(given['job_id'], safe='')}"


async def _list_scrapers(api: Api, who: Credentials, _: Given) -> Given:
    found = (await api.call(who, "GET", "/api/scrapers"))["scrapers"]
    shown = ("id", "version", "name", "description", "problem")
    return {"scrapers": [{name: each[name] for name in shown if each[name]} for each in found]}


async def _describe_scraper(api: Api, who: Credentials, given: Given) -> Given:
    document = await api.call(who, "GET", scraper_path(given["scraper"]))
    shown = ("id", "version", "name", "description", "problem", "input_schema", "output_schema")
    return {name: document[name] for name in shown if document.get(name)}


TOOLS: Final = (
    ToolSpec(
        "scrape",
        "Read a page",
        "Fetch one web page and return what stands in it, as markdown unless `formats` says otherwise.",
        _object(
            "url",
            url={**_URL, "description": "The page."},
            formats={"type": "array", "items": {"enum": list(FORMATS)}, "description": "What to return of the page."},
            only_main={"type": "boolean", "description": "The main part alone, without menus and the like."},
            engine=_ENGINE,
        ),
        _scrape,
    ),
    ToolSpec(
        "extract",
        "Extract data of a page",
        "Fetch one web page and return the data that fields, schema or prompt ask for (one of them), "
        "without selectors. Tells how sure each value is, and how it was found.",
        _object(
            "url",
            url={**_URL, "description": "The page."},
            fields={"type": "string", "maxLength": 2000, "description": "As in: title, price: number, images: url[]"},
            schema={"type": "object", "description": "A JSON Schema that the data must fit."},
            prompt={"type": "string", "maxLength": 2000, "description": "What is wanted, as a sentence."},
            engine=_ENGINE,
        ),
        _extract,
    ),
    ToolSpec(
        "select",
        "Read fields of a page by selectors",
        "Fetch one web page and return fields by CSS selector or XPath. A field is a selector, or an "
        "object with css or xpath, attr, as (text, number, price, date, url, html, markdown), list, each with fields.",
        _object(
            "url",
            "fields",
            url={**_URL, "description": "The page."},
            fields={"type": "object", "minProperties": 1, "description": "Name of each field, and how it is found."},
            engine=_ENGINE,
        ),
        _select,
    ),
    ToolSpec(
        "map",
        "List the URLs of a site",
        "The URLs of a site, of its robots.txt, sitemaps and the links of one page.",
        _object(
            "url",
            url={**_URL, "description": "Where to begin."},
            limit={"type": "integer", "minimum": 1, "maximum": 10_000, "description": "Maximum URLs."},
            search={"type": "string", "maxLength": 200, "description": "Only URLs that contain this."},
        ),
        _map,
    ),
    ToolSpec(
        "crawl",
        "Crawl a site",
        "Follow the links of a site from one page. Returns a job at once: see job_status and job_results.",
        _object(
            "url",
            url={**_URL, "description": "Where to begin."},
            limit={"type": "integer", "minimum": 1, "description": "Maximum pages."},
            depth={"type": "integer", "minimum": 0, "description": "Links from the start to the farthest page."},
            scope={"enum": ["host", "site", "path"], "description": "Which links are followed."},
            formats={"type": "array", "items": {"enum": list(FORMATS)}, "description": "What to keep of each page."},
        ),
        _crawl,
    ),
    ToolSpec(
        "list_scrapers",
        "List scrapers",
        "The scrapers of this server: id, version and what each does.",
        _object(),
        _list_scrapers,
        reads_only=True,
    ),
    ToolSpec(
        "describe_scraper",
        "Describe a scraper",
        "What a scraper takes and returns, as JSON Schema.",
        _object("scraper", scraper=_SCRAPER),
        _describe_scraper,
        reads_only=True,
    ),
    ToolSpec(
        "run_scraper",
        "Run a scraper",
        "Run a scraper on one input and return its result. describe_scraper says what it takes.",
        _object("scraper", scraper=_SCRAPER, input=_INPUT),
        _run_scraper,
    ),
    ToolSpec(
        "get_run",
        "Look up a run",
        "Status and result of a run that had not ended when its tool answered.",
        _object(
            "run_id",
            run_id=_ID,
            wait={"type": "number", "minimum": 0, "maximum": WAIT_SECONDS, "description": "Seconds to wait."},
        ),
        _get_run,
        reads_only=True,
    ),
    ToolSpec(
        "create_job",
        "Run a scraper on many inputs",
        "Make a job of a list of inputs. Returns at once: see job_status and job_results.",
        _object(
            "scraper",
            "items",
            scraper=_SCRAPER,
            items={"type": "array", "minItems": 1, "maxItems": 10_000, "items": {"type": "object"}},
            name={"type": "string", "maxLength": 200, "description": "Name to show in lists."},
        ),
        _create_job,
    ),
    ToolSpec(
        "job_status",
        "Look up a job",
        "How far a job is: its status and how many of its items wait, run, succeeded and failed.",
        _object("job_id", job_id=_ID),
        _job_status,
        reads_only=True,
    ),
    ToolSpec(
        "job_results",
        "Results of a job",
        "Items of a job with their results, page by page; with item_id the whole result of one.",
        _object(
            "job_id",
            job_id=_ID,
            item_id=_ID,
            status={"enum": ["success", "error", "pending", "queued", "in_progress", "cancelled"]},
            limit={"type": "integer", "minimum": 1, "maximum": 200, "description": "Items of one page; default: 20."},
            cursor=_CURSOR,
        ),
        _job_results,
        reads_only=True,
    ),
    ToolSpec(
        "cancel_job",
        "Cancel a job",
        "Stop a job. What has ended stays.",
        _object("job_id", job_id=_ID),
        _cancel_job,
    ),
)
