"""What both doors share: scrapers by the names that Scrapy's tools have. A site is a project, a task is a spider."""

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
