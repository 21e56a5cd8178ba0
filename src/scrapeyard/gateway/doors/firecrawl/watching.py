"""Watching a job of the Firecrawl door by a WebSocket: its documents as they come, then its end.

It is the API's own WebSocket of the job, whose events become Firecrawl's messages on their way out. So the API asks who
watches, and counts the watchers. It tells of at most a hundred items at a time; documents that it leaves out are sent
before the end.
"""

import asyncio
import re
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.gateway.doors.firecrawl.errors import refusal
from scrapeyard.gateway.doors.firecrawl.progress import PAGE_ITEMS, JobDocuments, job_of
from scrapeyard.gateway.http.doors import refuse
from scrapeyard.gateway.http.paths import our_path

_PLACE: Final = re.compile(r"/v[12]/(?:crawl|batch/scrape)/(?P<job_id>[A-Za-z0-9_.-]{1,128})")
_MAX_REASON: Final = 123
"""Bytes of a reason that a WebSocket may be closed with."""


class FirecrawlWatching:
    """A middleware that answers WebSockets under the addresses of crawls and batches, and passes on all else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        found = _PLACE.fullmatch(our_path(scope["path"])) if scope["type"] == "websocket" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        known = _with_key(scope)
        call = DoorCall(self._app, _as_http(known), _silence, 0)
        try:
            job = await job_of(call, found["job_id"])
        except ApiRefused as refused:
            await refuse(refusal(refused), scope, receive, send)
            return
        place = f"/api/jobs/{quote(job['id'], safe='')}/ws"
        inner = {**known, "path": place, "raw_path": place.encode(), "query_string": b"lines=true"}
        await self._app(inner, receive, WatchedJobTeller(call, job, scope, send).send)


class WatchedJobTeller:
    """Turns what the API tells one watcher into Firecrawl's messages."""

    def __init__(self, call: DoorCall, job: dict[str, Any], scope: Scope, send: Send) -> None:
        self._call = call
        self._job = job
        self._protocol = next(iter(scope.get("subprotocols") or ()), None)
        self._send = send
        self._documents = JobDocuments(call, job)
        self._told = Numbers()
        """Of the items whose documents were sent."""

    async def send(self, message: Message) -> None:
        """Send what becomes of a message of the API."""
        if message["type"] == "websocket.accept":
            await self._send({**message, "subprotocol": self._protocol})
            await self._tell(type="catchup", data=_standing(self._job, "scraping"))
        elif message["type"] == "websocket.send":
            update = msgspec.json.decode(message["text"])
            await self._update(update["event"], update["data"])
        elif message["type"] == "websocket.close":  # the client for Node reads the reason as a message
            await self._send({**message, "reason": _reason(str(message.get("reason") or ""))})
        else:
            await self._send(message)

    async def _update(self, event: str, data: dict[str, Any]) -> None:
        try:
            if event == "item" and data["status"] == "success":
                path = f"/api/jobs/{self._job['id']}/items/{quote(data['key'], safe='')}"
                await self._document((await self._call.api("GET", path)).json())
            elif event == "end":
                await self._end(data["status"])
        except ApiRefused as refused:
            await self._tell(type="error", error=refused.words)

    async def _end(self, status: str) -> None:
        if status != "completed":
            await self._tell(type="error", error=f"the job is {status}")
            return
        cursor = ""
        while True:
            query = {"status": "success", "limit": PAGE_ITEMS} | ({"cursor": cursor} if cursor else {})
            page = (await self._call.api("GET", f"/api/jobs/{self._job['id']}/items", query=query)).json()
            await self._documents.find_changes(page["items"])
            for item in page["items"]:
                await self._document(item)
            if not (cursor := page["next_cursor"]):
                break
        await self._tell(type="done", data=_standing(await job_of(self._call, self._job["id"]), status))

    async def _document(self, item: dict[str, Any]) -> None:
        if self._told.add(item["number"]):
            await self._tell(type="document", data=await self._documents.document(item))

    async def _tell(self, **message: Any) -> None:
        await self._send({"type": "websocket.send", "text": msgspec.json.encode(message).decode()})


def _reason(words: str) -> str:
    """Why the connection is closed, in JSON, as much as a reason may have."""
    if not words:
        return "{}"
    words = words[:_MAX_REASON]
    while len(told := msgspec.json.encode({"type": "error", "error": words})) > _MAX_REASON:
        words = words[:-1]
    return told.decode()


class Numbers:
    """A set of numbers from 0, with a bit for each: a job may have millions of items."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> bool:
        """Whether it was not there yet."""
        at, bit = number // 8, 1 << number % 8
        if at >= len(self._bits):
            self._bits.extend(bytes(at + 1 - len(self._bits)))
        is_new = not self._bits[at] & bit
        self._bits[at] |= bit
        return is_new


def _standing(job: dict[str, Any], status: str) -> dict[str, Any]:
    counts = job["counts"]
    done = counts["success"]
    return {"status": status, "completed": done, "total": counts["total"], "creditsUsed": done, "data": []}


def _with_key(scope: Scope) -> Scope:
    """Clients for browsers and Node can send no header with a WebSocket: there the key is the subprotocol."""
    offered = scope.get("subprotocols") or ()
    if not offered or any(name == b"authorization" for name, _ in scope["headers"]):
        return scope
    return {**scope, "headers": [*scope["headers"], (b"authorization", b"Bearer " + offered[0].encode("latin-1"))]}


def _as_http(scope: Scope) -> Scope:
    """The connection as a request, for calls of the API on its caller's behalf."""
    scheme = "https" if scope.get("scheme") == "wss" else "http"
    return {**scope, "type": "http", "method": "GET", "scheme": scheme}


async def _silence() -> Message:
    """Nothing more comes of the request: what the watcher sends is for the API's WebSocket."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never
