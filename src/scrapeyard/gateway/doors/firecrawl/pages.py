"""Firecrawl's calls that are answered with pages: scrape and map."""

from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field
from starlette.responses import Response

from scrapeyard.builtin import DOCUMENT
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import DoorCall
from scrapeyard.gateway.doors.firecrawl.documents import document, files_of
from scrapeyard.gateway.doors.firecrawl.errors import respond
from scrapeyard.gateway.doors.firecrawl.options import (
    DocumentWish,
    FirecrawlBody,
    FirecrawlOptions,
    PageUrl,
    VisitorPlace,
    wanted,
)
from scrapeyard.gateway.doors.firecrawl.tracking import TrackedPages, Tracking

WAIT: Final = {"v1": 30.0, "v2": 60.0}
"""Seconds that a scrape is waited for, unless the call says."""


class ScrapeBody(FirecrawlBody, FirecrawlOptions):
    """`/scrape`."""

    url: PageUrl


class MapBody(FirecrawlBody):
    """`/map`."""

    url: PageUrl
    search: str | None = Field(None, max_length=200)
    limit: int = Field(5000, ge=1, le=100_000)
    sitemap: str | None = Field(None, pattern="^(skip|include|only)$")
    ignore_sitemap: bool = False
    sitemap_only: bool = False
    include_subdomains: bool = True
    ignore_query_parameters: bool = True
    timeout: int | None = Field(None, ge=1, le=300_000)
    location: VisitorPlace | None = None
    use_index: bool | None = None
    """There is no index of pages: the site is always read."""
    ignore_cache: bool | None = None


def note_of(wish: DocumentWish, options: FirecrawlOptions, track: Tracking | None) -> dict[str, Any]:
    """What a later reader of a run must know to write its document."""
    note: dict[str, Any] = {"formats": list(dict.fromkeys(wish.formats))}
    if track is not None:
        note["track"] = track.note()
    if not options.remove_base64_images:
        note["bare"] = False
    if wish.warnings:
        note["warnings"] = list(wish.warnings)
    return note


async def tracked(call: DoorCall, wish: DocumentWish) -> Tracking | None:
    """The tracking that a call asks for. A client's scrapes are compared with its own alone."""
    if wish.track is None:
        return None
    client = str((await call.api("GET", "/api/identity")).json()["client"])
    return Tracking(tag=wish.track.tag or "", client=client, modes=tuple(wish.track.modes))


async def scraped(
    call: DoorCall,
    url: str,
    options: FirecrawlOptions,
    wish: DocumentWish,
    *,
    seconds: float,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The document of one page, within so many seconds. Raises ApiRefused or BadRequest."""
    track = await tracked(call, wish)
    changes = None if track is None else TrackedPages(call, track)
    if changes is not None:
        await changes.find([url])  # before this scrape is one of them
    given = {"url": url, **wish.input, "note": note_of(wish, options, track)}
    run = await finished(call, DOCUMENT, given, seconds=seconds, policy=wish.policy, headers=headers)
    shown = document(run["result"], run["input"]["note"], await files_of(call, run["artifacts"]), run["id"])
    if changes is not None:
        shown["changeTracking"] = await changes.change(url, run["result"])
    return shown


async def finished(
    call: DoorCall,
    scraper: str,
    given: dict[str, Any],
    *,
    seconds: float,
    policy: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A run that succeeded within so many seconds. Raises ApiRefused or BadRequest."""
    asked = {
        "scraper": scraper,
        "input": given,
        "wait": seconds,
        "on_timeout": "cancel",
        "on_disconnect": "cancel",
        "policy": {"timeout_seconds": seconds, **(policy or {})},
    }
    run: dict[str, Any] = (await call.api("POST", "/api/scrape", asked, headers=headers)).json()
    if run["status"] != "succeeded":  # it goes on, or was cancelled: the gateway stops
        raise BadRequest(f"the scrape has not ended: it is {run['status']}; call again")
    return run


class Pages:
    """Scrapes and maps by `/api/scrape` and `/api/map`."""

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait

    async def scrape(self, call: DoorCall, version: str) -> Response:
        """`POST /scrape`."""
        given = await call.json()
        if isinstance(given, dict) and "alexandria" in given:
            raise BadRequest("alexandria is not available here: there are no tools of other providers")
        body = ScrapeBody.model_validate(given)
        wish = wanted(body)
        seconds = min(wish.seconds or WAIT[version], self._max_wait)
        shown = await scraped(call, body.url, body, wish, seconds=seconds, headers=key_of(call))
        return respond({"success": True, "data": shown})

    async def map(self, call: DoorCall, version: str) -> Response:
        """`POST /map`."""
        body = MapBody.model_validate(await call.json())
        if body.location is not None and body.location.country:
            raise BadRequest("location is not available for map; scrape the page with it")
        only = body.sitemap == "only" or body.sitemap_only
        asked: dict[str, Any] = {
            "url": body.url,
            "limit": body.limit if not only and not body.ignore_query_parameters else 100_000,
            "scope": "site" if body.include_subdomains else "host",
            "sitemap": body.sitemap != "skip" and not body.ignore_sitemap,
            "wait": min((body.timeout or 60_000) / 1000, self._max_wait),
        }
        asked |= {"search": body.search} if body.search else {}
        run = (await call.api("POST", "/api/map", asked, headers=key_of(call))).json()
        if run["status"] != "succeeded":
            await call.api("DELETE", f"/api/scrape/{run['id']}")
            return respond(
                {"success": False, "code": "MAP_TIMEOUT", "error": "the map took longer than its timeout"}, 408
            )
        found = [each["url"] for each in run["result"]["urls"] if not only or each["source"] == "sitemap"]
        if body.ignore_query_parameters:
            found = list(dict.fromkeys(map(_without_query, found)))
        links = found[: body.limit]
        told: dict[str, Any] = {
            "success": True,
            "links": links if version == "v1" else [{"url": each} for each in links],
        }
        if run["result"]["warnings"]:
            told["warning"] = "; ".join(run["result"]["warnings"])
        return respond(told)


def _without_query(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(query=""))


def key_of(call: DoorCall) -> dict[str, str]:
    """The caller's idempotency key, as ours."""
    key = call.request.headers.get("x-idempotency-key")
    return {"idempotency-key": key} if key else {}
