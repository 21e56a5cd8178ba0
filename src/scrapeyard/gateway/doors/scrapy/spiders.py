"""What both doors share: scrapers by the names that Scrapy's tools have. A site is a project, a task is a spider."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.responses import Response

from scrapeyard.errors import BadRequest, NotFound
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.repository.manifest.semver import precedence
from scrapeyard.repository.scrapy.scrapers import slug

REPORT: Final = "scrapy.json"
"""The artifact in which a crawl tells of itself."""


class Spider(Struct, frozen=True, kw_only=True):
    """One version of a scraper, as Scrapy's tools see it."""

    id: str
    name: str
    version: str

    @property
    def project(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def label(self) -> str:
        """The version as it was uploaded: what follows the plus, or all of it."""
        return self.version.partition("+")[2] or self.version


async def spiders(call: DoorCall, project: str = "") -> list[Spider]:
    """Scrapers that can run and that the caller may call, oldest version first, without the built-in ones."""
    query = {"site": slug(project)} if project else {}
    listed = (await call.api("GET", "/api/scrapers", query=query)).json()["scrapers"]
    found = [
        Spider(id=each["id"], name=each["name"] or each["id"].partition("/")[2], version=each["version"])
        for each in listed
        if each["valid"] and not each["builtin"]
    ]
    return sorted(found, key=lambda each: (each.id, precedence(each.version)))


def find(known: Iterable[Spider], name: str, version: str = "") -> Spider:
    """The newest one of this name, or id. Raises NotFound, and BadRequest if several projects have one."""
    task = name.partition("/")[2] or name
    found = [each for each in known if name in (each.id, each.name) or each.id.endswith(f"/{_slug(task)}")]
    if "/" in name:
        found = [each for each in found if name in (each.id, each.name)]
    if version:
        found = [each for each in found if version in (each.version, each.label)]
    if not found:
        raise NotFound(f"Spider not found: {name}" + (f", version {version}" if version else ""))
    if len(ids := sorted({each.id for each in found})) > 1:
        raise BadRequest(f"several projects have a spider {name}; write one of {', '.join(ids[:20])}")
    return found[-1]


def names_of(known: Iterable[Spider]) -> dict[str, str]:
    """By id: the name by which `find` finds it among those of its project. That is its own, unless it shares that with
    another; then it is what follows the slash of its id, or the id."""
    newest, named = {}, defaultdict[tuple[str, str], set[str]](set)
    for each in known:
        newest[each.id] = each
        named[each.project, each.name].add(each.id)

    def is_found(spider: Spider, name: str) -> bool:
        found = set(named.get((spider.project, name), ()))
        if "/" not in name and (other := f"{spider.project}/{_slug(name)}") in newest:
            found.add(other)
        return found == {spider.id}

    return {
        each.id: next((name for name in (each.name, each.id.partition("/")[2]) if is_found(each, name)), each.id)
        for each in newest.values()
    }


async def start(call: DoorCall, spider: Spider, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Start a run; it is as the API answers it. Raises ApiRefused, and BadRequest if there is something for Scrapy in
    the input of a scraper that is not a Scrapy spider."""
    body = {"scraper": f"{spider.id}@{spider.version}", "input": given, **more}
    try:
        run: dict[str, Any] = (await call.api("POST", "/api/scrape", body)).json()
    except ApiRefused as refused:
        if refused.code == "bad_input" and "scrapy" in given and not await _takes_scrapy(call, spider):
            words = f"{spider.id} is not a Scrapy spider, so Scrapy's settings and requests do not reach it"
            raise BadRequest(f"{words}; call it by POST /api/scrape, or by /schedule.json without setting") from None
        raise
    return run


async def _takes_scrapy(call: DoorCall, spider: Spider) -> bool:
    """Whether its input may have what is for Scrapy itself."""
    told = (await call.api("GET", f"/api/scrapers/{spider.id}", query={"version": spider.version})).json()
    schema = told["input_schema"] or {}
    return "scrapy" in schema.get("properties", {}) or schema.get("additionalProperties") is not False


def _slug(name: str) -> str:
    try:
        return slug(name)
    except BadRequest:
        return ""


async def report(call: DoorCall, run_id: str) -> dict[str, Any]:
    """What a crawl told of itself; empty if it did not get that far."""
    try:
        told = (await call.api("GET", f"/api/scrape/{run_id}/artifacts/{REPORT}")).json()
    except (ApiRefused, msgspec.DecodeError):
        return {}
    return told if isinstance(told, dict) else {}


def respond(told: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(told), status, headers, media_type="application/json")
