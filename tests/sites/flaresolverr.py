"""A server that speaks FlareSolverr's protocol, and a site that only lets in who has passed its challenge.

The solver opens pages by asking the site as a browser would that can run scripts: it presents the answer that only the
challenge's script could work out. So whether a clearance holds is the site's decision, as it is in life.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sites.site import Asked, Site, page

CHALLENGE = (
    b"<!doctype html><html><head><title>Just a moment...</title></head><body><noscript>Enable JavaScript and cookies "
    b"to continue</noscript><script>window._cf_chl_opt={cType:'managed'}</script></body></html>"
)
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
PAGE = (
    b"<!doctype html><html><head><title>Shop</title></head><body><h1>Lamp</h1><p>A lamp for the desk.</p></body></html>"
)


@dataclass(kw_only=True)
class ChallengedSite:
    """Serves `CHALLENGE` with 403 unless the request has a clearance that it gave out, with the same user agent."""

    site: Site = field(default_factory=Site)
    cleared: dict[str, str] = field(default_factory=dict)
    """Clearance -> user agent."""
    served: int = 0
    challenged: int = 0
    body: bytes = PAGE
    content_type: str = "text/html"
    status: int = 200

    def __post_init__(self) -> None:
        for path in ("/", "/page", "/form"):
            self.site.routes[path] = self._answer

    async def __aenter__(self) -> "ChallengedSite":
        await self.site.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.site.__aexit__(*error)

    def pass_challenge(self, user_agent: str) -> str:
        """What a browser gets for running the challenge's script."""
        token = secrets.token_hex(8)
        self.cleared[token] = user_agent
        return token

    def revoke(self) -> None:
        """No clearance holds any more."""
        self.cleared.clear()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        cookies = dict(part.strip().partition("=")[::2] for part in asked.headers.get("cookie", "").split(";"))
        agent = self.cleared.get(cookies.get("cf_clearance", ""))
        if agent is not None and agent == asked.headers.get("user-agent"):
            self.served += 1
            await page(self.body, status=self.status, content_type=self.content_type)(asked, writer)
            return
        self.challenged += 1
        await page(CHALLENGE, status=403, content_type="text/html", cf_mitigated="challenge")(asked, writer)


@dataclass(kw_only=True)
class FlareSolverrSite:
    """Speaks version 1 of the protocol on /v1, and /health."""

    challenged: ChallengedSite
    host: str = "shop.test"
    """The host for which it says its cookies are."""
    site: Site = field(default_factory=Site)
    said: list[dict[str, Any]] = field(default_factory=list)
    """Every command, as it came."""
    error: str = ""
    """Answered with status 500 to every request.*, as the real one does."""
    garbage: bytes = b""
    """Answered as it stands."""
    ends_at: str = ""
    """Where the browser says that it ended; empty: where it was sent."""
    no_cookies: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Pages are solved while it is set."""
    sessions: set[str] = field(default_factory=set)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.gate.set()
        self._open = 0
        self.site.routes["/v1"] = self._answer
        self.site.routes["/health"] = page(b'{"status": "ok"}', content_type="application/json")

    async def __aenter__(self) -> "FlareSolverrSite":
        await self.site.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.site.__aexit__(*error)

    @property
    def url(self) -> str:
        """For escalation.solver_url."""
        return self.site.url("/v1")

    def asked(self, command: str) -> list[dict[str, Any]]:
        """The commands of one kind."""
        return [words for words in self.said if words["cmd"] == command]

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        words = json.loads(asked.body)
        self.said.append(words)
        if self.garbage:
            await page(self.garbage, status=502)(asked, writer)
            return
        answers: dict[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            "sessions.create": self._create,
            "sessions.list": self._list,
            "sessions.destroy": self._destroy,
            "request.get": self._open_page,
            "request.post": self._open_page,
        }
        answer = await answers[words["cmd"]](words)
        stamped = {"startTimestamp": 1, "endTimestamp": 2, "version": "3.3.21", "message": "", **answer}
        status = 500 if answer["status"] == "error" else 200
        await page(json.dumps(stamped).encode(), status=status, content_type="application/json")(asked, writer)

    async def _create(self, words: dict[str, Any]) -> dict[str, Any]:
        self.sessions.add(words["session"])
        return {"status": "ok", "message": "Session created successfully.", "session": words["session"]}

    async def _list(self, _words: dict[str, Any]) -> dict[str, Any]:
        return {"status": "ok", "sessions": sorted(self.sessions)}

    async def _destroy(self, words: dict[str, Any]) -> dict[str, Any]:
        if words["session"] not in self.sessions:
            return {"status": "error", "message": "Error: The session doesn't exist."}
        self.sessions.remove(words["session"])
        return {"status": "ok", "message": "The session has been removed."}

    async def _open_page(self, words: dict[str, Any]) -> dict[str, Any]:
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            await self.gate.wait()
        finally:
            self._open -= 1
        if self.error:
            return {"status": "error", "message": self.error}
        return {"status": "ok", "message": "Challenge solved!", "solution": self._solution(words)}

    def _solution(self, words: dict[str, Any]) -> dict[str, Any]:
        token = self.challenged.pass_challenge(BROWSER)
        cookie = {"name": "cf_clearance", "value": token, "domain": f".{self.host}", "path": "/", "expiry": 4102444800}
        return {
            "url": self.ends_at or words["url"],
            "status": 200,
            "headers": {},
            "response": self.challenged.body.decode(),
            "cookies": [] if self.no_cookies else [cookie],
            "userAgent": BROWSER,
        }
