"""Results of `builtin/document` as Firecrawl's documents."""

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from scrapeyard.gateway.doors.door import DoorCall
from scrapeyard.gateway.doors.firecrawl.actions import results_of
from scrapeyard.model.webhook import Webhook
from scrapeyard.results.sinks.port import SinkRecord

MAX_FILE: Final = 20 * 2**20
"""Maximum bytes of a picture or PDF that stands in a document."""
_DATA_IMAGE: Final = re.compile(r"(!\[[^\]]*\])\(data:image/[^;)]{1,40};base64,[^)]*\)")
_GRAPH: Final = {
    "og:title": "ogTitle",
    "og:description": "ogDescription",
    "og:url": "ogUrl",
    "og:image": "ogImage",
    "og:audio": "ogAudio",
    "og:determiner": "ogDeterminer",
    "og:locale": "ogLocale",
    "og:locale:alternate": "ogLocaleAlternate",
    "og:site_name": "ogSiteName",
    "og:video": "ogVideo",
}
_PLAIN: Final = {"markdown": "markdown", "content": "markdown", "html": "html", "rawHtml": "raw_html", "links": "links"}


def document(
    result: Mapping[str, Any], note: Mapping[str, Any], files: Mapping[str, str], run_id: str
) -> dict[str, Any]:
    """A document, with the formats that `note` names. `files` are the artifacts as data URIs."""
    formats: Sequence[str] = note.get("formats", ["markdown"])
    shown: dict[str, Any] = {name: result.get(ours) for name, ours in _PLAIN.items() if name in formats}
    if note.get("bare", True) and shown.get("markdown"):
        shown["markdown"] = _DATA_IMAGE.sub(r"\1(<Base64-Image-Removed>)", shown["markdown"])
    if "images" in formats:
        shown["images"] = [image["url"] for image in result.get("images") or ()]
    for name in ("json", "extract"):
        if name in formats:
            shown[name] = result.get("json")
    for name in ("summary", "attributes"):
        if name in formats:
            shown[name] = result.get(name)
    if "screenshot" in formats:
        shown["screenshot"] = files.get("screenshot.png")
    if "product" in formats:
        shown["product"] = _product(result)
    if (left := results_of(result.get("found") or {}, files)) is not None:
        shown["actions"] = left
    warnings = [*note.get("warnings", ()), *(result.get("warnings") or ())]
    shown |= {"warning": "; ".join(warnings)} if warnings else {}
    return {**shown, "metadata": metadata(result, run_id)}


def metadata(result: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """The head of a page, and how it was had."""
    graph = result.get("opengraph") or {}
    found: dict[str, Any] = {**(result.get("meta") or {})}
    found |= {name: graph[key] for key, name in _GRAPH.items() if key in graph}
    found |= {f"og:{key.removeprefix('og:')}": value for key, value in graph.items()}
    found |= {name: result[name] for name in ("title", "description", "language", "keywords") if result.get(name)}
    robots = (result.get("robots") or {}).get("meta")
    age, status = result.get("age_seconds"), result.get("status", 0)
    return {
        **found,
        **({"robots": robots} if robots else {}),
        **({"publishedTime": result["published"]} if result.get("published") else {}),
        **({"modifiedTime": result["modified"]} if result.get("modified") else {}),
        "sourceURL": result.get("url"),
        "url": result.get("final_url"),
        "statusCode": status,
        **({"error": _phrase(status)} if status >= 400 else {}),
        "contentType": result.get("content_type"),
        "proxyUsed": "stealth" if result.get("proxy_class") in ("residential", "unlocker") else "basic",
        "cacheState": "miss" if age is None else "hit",
        **({"cachedAt": (datetime.now(UTC) - timedelta(seconds=age)).isoformat()} if age is not None else {}),
        "creditsUsed": 1,
        "scrapeId": run_id,
    }


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status {status}"


def _product(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Our product as one with a single variant."""
    found = result.get("product")
    if not found or not found.get("name"):
        return None
    variant: dict[str, Any] = {"availability": {"inStock": found["availability"] == "InStock"}}
    if found["price"] is not None:
        variant["price"] = {"amount": found["price"], "currency": found["currency"]}
    variant |= {"sku": found["sku"]} if found["sku"] else {}
    variant["images"] = [{"url": url} for url in found["images"]]
    named = {name: found[name] for name in ("brand", "category", "description")}
    return {"title": found["name"], "url": result.get("final_url"), **named, "variants": [variant]}


def page_message(webhook: Webhook, record: SinkRecord) -> dict[str, Any]:
    """What a receiver is told of a page of a crawl or batch. Files and changes are in the status of the job alone."""
    given = msgspec.json.decode(record.input)
    result = msgspec.json.decode(record.data)
    told: dict[str, Any] = {
        "success": record.status == "success",
        "type": f"{webhook.form.removeprefix('firecrawl.')}.page",
        "id": record.job_id,
        "data": [document(result, given.get("note", {}), {}, record.item_key)] if isinstance(result, dict) else [],
        "metadata": webhook.metadata,
    }
    if record.status != "success":
        told |= {"error": record.error or record.exit_reason, "data": [{"metadata": {"sourceURL": given.get("url")}}]}
    return told


async def files_of(call: DoorCall, artifacts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Pictures and PDFs that steps left, by name, as data URIs. One that is too large is left out."""
    found: dict[str, str] = {}
    for each in artifacts:
        name = str(each["name"])
        if (name == "screenshot.png" or name.startswith("action-")) and each["size"] <= MAX_FILE:
            path, _, query = str(each["href"]).partition("?")
            data = (await call.api("GET", unquote(path), query=parse_qsl(query))).body
            found[name] = f"data:{each['content_type']};base64,{base64.b64encode(data).decode()}"
    return found
