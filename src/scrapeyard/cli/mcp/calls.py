"""Calls of the API on behalf of whoever calls a tool, with that caller's own credentials."""

import asyncio
import hashlib
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct

from scrapeyard.errors import ScrapeyardError

WAIT_SECONDS: Final = 50.0
"""How long a tool waits for a run; then the caller looks it up later."""
MAX_ANSWER: Final = 20 * 2**20
MAX_SCRAPERS: Final = 50
"""Scrapers that are tools of their own. All others are called by `run_scraper`."""
_FRESH_SECONDS: Final = 5.0
_CALLERS: Final = 1000
_READS: Final = 8
_ROOM: Final = 10.0
"""Seconds that an answer may take beyond the wait."""
_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_MAX_NAME: Final = 64
OWN_TOOLS: Final = ("builtin/product",)
"""Built-ins that are tools like the scrapers of a repository."""

Credentials = Mapping[str, str]
"""Headers that say who calls."""


class CallRefused(ScrapeyardError):
    """The server answered that it cannot, or did not answer. The message says why and what to do."""

    code = "refused"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ScraperTool(Struct, frozen=True, kw_only=True):
    """A scraper that is a tool of its own."""

    name: str
    scraper: str
    title: str
    description: str
    input_schema: dict[str, Any]


class Api:
    """The API of one server."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.url = url
        self._clock = clock
        self._http = httpx.AsyncClient(
            base_url=url, verify=ssl.create_default_context(), trust_env=False, timeout=WAIT_SECONDS + _ROOM
        )
        self._identities: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._scrapers: OrderedDict[str, tuple[float, list[ScraperTool]]] = OrderedDict()

    async def close(self) -> None:
        """Close connections. May be called twice."""
        await self._http.aclose()

    async def call(
        self,
        who: Credentials,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """The document that the server answers; None if there is none. Raises CallRefused."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        content = None if body is None else msgspec.json.encode(body)
        headers = {**who, "accept": "application/json"} | ({"content-type": "application/json"} if content else {})
        request = self._http.build_request(method, path, params=given, content=content, headers=headers)
        try:
            response = await self._http.send(request, stream=True)
            try:
                data = await _whole(response)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            words = f"{self.url} does not answer ({type(error).__name__}); start the server, or name another: --server"
            raise CallRefused(words, 503) from None
        if response.status_code >= 400:
            raise CallRefused(_words(response.status_code, data), response.status_code)
        try:
            return msgspec.json.decode(data) if data else None
        except msgspec.DecodeError:
            raise CallRefused(f"{self.url} is no Scrapeyard server: it answers no JSON", 502) from None

    async def identity(self, who: Credentials) -> dict[str, Any]:
        """Who calls, as known a few seconds ago at most. Raises CallRefused: the caller is not known."""
        key = _digest(who)
        known = self._identities.get(key)
        if known is None or self._clock() - known[0] >= _FRESH_SECONDS:
            known = (self._clock(), await self.call(who, "GET", "/api/identity"))
            _remember(self._identities, key, known)
        return known[1]

    async def scraper_tools(self, who: Credentials) -> list[ScraperTool]:
        """The scrapers that the caller may call, with their schemas. Raises CallRefused."""
        key = _digest(who)
        known = self._scrapers.get(key)
        if known is None or self._clock() - known[0] >= _FRESH_SECONDS:
            known = (self._clock(), await self._read_tools(who))
            _remember(self._scrapers, key, known)
        return known[1]

    async def _read_tools(self, who: Credentials) -> list[ScraperTool]:
        patterns = (await self.identity(who))["scrapers"]
        found = (await self.call(who, "GET", "/api/scrapers"))["scrapers"]
        ids = dict.fromkeys(
            each["id"]
            for each in found
            if each["valid"]
            and (not each["builtin"] or each["id"] in OWN_TOOLS)
            and (not patterns or any(fnmatchcase(each["id"], pattern) for pattern in patterns))
        )
        room = asyncio.Semaphore(_READS)

        async def read(scraper: str) -> dict[str, Any] | None:
            async with room:
                try:
                    return dict(await self.call(who, "GET", scraper_path(scraper)))
                except CallRefused as error:
                    if error.status in (401, 403, 503):
                        raise
                    return None  # it is gone, or became invalid

        documents = await asyncio.gather(*(read(scraper) for scraper in list(ids)[:MAX_SCRAPERS]))
        return _named([each for each in documents if each is not None])


def scraper_path(scraper: str) -> str:
    """Where a scraper is described. Raises CallRefused if it cannot be one."""
    site, slash, task = scraper.partition("@")[0].partition("/")
    if not slash or not site or not task or "/" in task:
        raise CallRefused(f"{scraper[:100]!r} is no scraper; write site/task, as list_scrapers has it", 422)
    return f"/api/scrapers/{quote(site, safe='')}/{quote(task, safe='')}"


def _named(documents: list[dict[str, Any]]) -> list[ScraperTool]:
    tools: dict[str, ScraperTool] = {}
    for each in documents:
        name = ("run_" + _NAME.sub("_", each["id"]))[:_MAX_NAME]
        if name in tools:
            name = f"{name[: _MAX_NAME - 9]}_{hashlib.sha256(each['id'].encode()).hexdigest()[:8]}"
        schema = each["input_schema"] or {}
        tools[name] = ScraperTool(
            name=name,
            scraper=each["id"],
            title=each["name"] or each["id"],
            description=f"{each['description'] or each['name'] or each['id']} (scraper {each['id']} {each['version']})",
            input_schema={"type": "object", **schema} if schema.get("type", "object") == "object" else _ANY,
        )
    return list(tools.values())


_ANY: Final[dict[str, Any]] = {"type": "object"}


async def _whole(response: httpx.Response) -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > MAX_ANSWER:
            words = f"the answer is larger than {MAX_ANSWER // 2**20} MB; ask for less, or download an export"
            raise CallRefused(words, 413)
    return bytes(data)


def _words(status: int, data: bytes) -> str:
    """A problem document in words: what is wrong, and what to do."""
    try:
        problem = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        return f"the server answered {status}"
    parts = [f"{problem.get('title', 'The call was refused')} ({problem.get('code', status)})", problem.get("detail")]
    more = [f"run: {problem['id']}"] if isinstance(problem.get("id"), str) else []
    return "; ".join(str(part) for part in [*parts, problem.get("remedy"), *more] if part)


def _digest(who: Credentials) -> str:
    return hashlib.sha256(repr(sorted(who.items())).encode()).hexdigest()


def _remember(known: "OrderedDict[str, Any]", key: str, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _CALLERS:
        known.popitem(last=False)
