"""The scrapyrt door: `/crawl.json` runs a spider and answers with its items."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.gateway.doors.scrapy.spiders import Spider, find, report, respond, spiders, start
from scrapeyard.settings import Settings

_PATH: Final = "/crawl.json"
_OF_A_CRAWL: Final = ("spider_name", "start_requests", "spider_start", "max_requests", "crawl_args")
_MARGIN_SECONDS: Final = 1.0
_YES: Final = ("true", "1", "yes", "on", True, 1)


class ScrapyrtDoor:
    """Answers `GET` and `POST /crawl.json`."""

    def __init__(self, settings: Settings) -> None:
        self._wait = max(_MARGIN_SECONDS, settings.gateway.max_wait_seconds - _MARGIN_SECONDS)

    def takes(self, method: str, path: str) -> bool:
        """That one path."""
        del method
        return path == _PATH

    async def answer(self, call: DoorCall) -> Response:
        """Run the spider and wait. Raises ApiRefused, NotFound or BadRequest."""
        if call.method not in ("GET", "POST"):
            raise ApiRefused(405, {"code": "method_not_allowed", "detail": "use GET or POST"})
        asked = _of_query(call.query) if call.method == "GET" else await _of_body(call)
        name = asked.get("spider_name")
        if not isinstance(name, str) or not name:
            raise BadRequest("Missing required parameter: 'spider_name'")
        given = _input(asked)
        spider = find(await spiders(call), name)
        run = await self._run(call, spider, given)
        return await _answer(call, name, run)

    async def _run(self, call: DoorCall, spider: Spider, given: dict[str, Any]) -> dict[str, Any]:
        """The run at its end, also a bad one."""
        try:
            run = await start(call, spider, given, wait=self._wait)
        except ApiRefused as refused:
            if not refused.problem.get("id"):
                raise
            run = (await call.api("GET", f"/api/scrape/{refused.problem['id']}")).json()
        if "result" not in run:
            words = f"the crawl still runs; look it up at /api/scrape/{run['id']}"
            raise ApiRefused(504, {"code": "wait_timeout", "detail": words})
        return run

    def refuse(self, refused: ApiRefused) -> Response:
        """In scrapyrt's shape."""
        told = {"status": "error", "code": refused.status, "message": refused.words}
        return respond(told, refused.status, refused.headers)


async def _answer(call: DoorCall, name: str, run: dict[str, Any]) -> Response:
    """A crawl that came to its end is answered, with its errors. One that did not is an error."""
    told = await report(call, run["id"])
    error = run["error"]
    if error and not told:
        status = 400 if run["exit_reason"] == "bad_input" else 500
        raise ApiRefused(status, {"code": run["exit_reason"], "detail": error["message"]})
    errors = told.get("errors") or ([error["message"]] if error else [])
    items = run["result"] if isinstance(run["result"], list) else [run["result"]] * (run["result"] is not None)
    return respond(
        {
            "status": "ok",
            "items": items,
            "items_dropped": told.get("items_dropped", []),
            "stats": told.get("stats", {}),
            "spider_name": name,
            "errors": errors,
        }
    )


def _of_query(query: Mapping[str, str]) -> dict[str, Any]:
    asked: dict[str, Any] = {name: query[name] for name in _OF_A_CRAWL if name in query}
    request = {name: value for name, value in query.items() if name not in _OF_A_CRAWL}
    return {**asked, "request": request}


async def _of_body(call: DoorCall) -> dict[str, Any]:
    asked = await call.json()
    if not isinstance(asked, dict):
        raise BadRequest("the body must be a JSON object")
    return asked


def _input(asked: dict[str, Any]) -> dict[str, Any]:
    """The input of the scraper: the spider's arguments, and what Scrapy itself is asked for. Raises BadRequest."""
    starts = asked.get("start_requests", asked.get("spider_start")) in _YES
    request = asked.get("request") or {}
    if not isinstance(request, dict):
        raise BadRequest("request must be an object")
    if not request.get("url") and not starts:
        raise BadRequest("'url' is required if start_requests are disabled")
    steering: dict[str, Any] = {"start_requests": starts, "max_requests": _number(asked.get("max_requests"))}
    if request.get("url"):
        steering["request"] = request
    return {**_arguments(asked.get("crawl_args")), "scrapy": steering}


def _number(value: Any) -> int:
    try:
        return max(0, int(value or 0))
    except (TypeError, ValueError):
        raise BadRequest("max_requests must be a number") from None


def _arguments(given: Any) -> dict[str, Any]:
    """crawl_args, as an object or as text with JSON."""
    try:
        found = msgspec.json.decode(given) if isinstance(given, str) and given else given or {}
    except msgspec.DecodeError as error:
        raise BadRequest(f"crawl_args must be valid url encoded JSON: {error}") from None
    if not isinstance(found, dict) or "scrapy" in found:
        raise BadRequest("crawl_args must be an object, without the name scrapy")
    return found
