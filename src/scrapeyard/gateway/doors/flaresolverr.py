"""The FlareSolverr door: `POST /v1` on our browser engine, for programs that are written for FlareSolverr 3."""

import base64
import secrets
import time
from collections import OrderedDict
from typing import Any, Final, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from scrapeyard.builtin import DOCUMENT
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall, session_of
from scrapeyard.gateway.http.patterns import Url
from scrapeyard.settings import Settings

VERSION: Final = "3.4.6"
"""The FlareSolverr whose answers these are."""
MAX_SESSIONS: Final = 1000
"""Names that a gateway remembers; the oldest are forgotten first, and begin anew when they are used."""
_MEDIA: Final = ["image", "media", "font", "stylesheet"]
_SUBMIT: Final = """(fields) => {
  const form = document.createElement("form");
  form.method = "POST";
  form.action = location.href;
  for (const [name, value] of fields) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = name;
    field.value = value;
    form.append(field);
  }
  document.body.append(form);
  HTMLFormElement.prototype.submit.call(form);
}"""


class CookieGiven(BaseModel):
    """A cookie for the page. It is sent to the page's own host."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
    value: str = Field("", max_length=4096)


class SolverCommand(BaseModel):
    """A call of `/v1`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cmd: Literal["request.get", "request.post", "sessions.create", "sessions.list", "sessions.destroy"]
    url: Url | None = None
    session: str | None = Field(None, min_length=1, max_length=100)
    session_ttl_minutes: float | None = Field(None, gt=0, le=525_600)
    max_timeout: int = Field(60_000, ge=1, le=3_600_000, alias="maxTimeout")
    cookies: list[CookieGiven] = Field(default_factory=list, max_length=50)
    return_only_cookies: bool = Field(False, alias="returnOnlyCookies")
    return_screenshot: bool = Field(False, alias="returnScreenshot")
    post_data: str | None = Field(None, max_length=200_000, alias="postData")
    wait_in_seconds: float = Field(0, ge=0, le=600, alias="waitInSeconds")
    disable_media: bool = Field(False, alias="disableMedia")
    proxy: dict[str, Any] | None = None
    tabs_till_verify: int | None = Field(None, description="Checkboxes are clicked where they are.")
    user_agent: Any = Field(None, alias="userAgent", description="The browser's own is sent, as FlareSolverr 3 does.")
    headers: Any = Field(None, description="FlareSolverr 3 sends none of these either, and clients still give them.")
    return_raw_html: Any = Field(None, alias="returnRawHtml", description="The same.")
    download: Any = Field(None, description="The same.")


class _Session(Struct, frozen=True):
    name: str
    """Under which cookies and storage are kept."""
    made_at: float
    ended: bool = False
    """Whether it was removed: it is not listed, and begins anew when it is used again."""


class FlareSolverrDoor:
    """Answers `POST /v1` and `GET /health`."""

    def __init__(self, settings: Settings) -> None:
        self._max_wait = settings.gateway.max_wait_seconds
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()
        """By client and id. Another gateway finds a session that the client names by its id, but does not list it."""

    def takes(self, method: str, path: str) -> bool:
        """The one path of commands, and the check whether it is there."""
        return (method, path) in (("POST", "/v1"), ("GET", "/health"))

    async def answer(self, call: DoorCall) -> Response:
        """Do what the command says. Raises ApiRefused."""
        began = time.time()
        if call.method == "GET":
            await call.api("GET", "/api/ready")
            return _respond({"status": "ok"})
        try:
            command = SolverCommand.model_validate(await call.json())
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(str(part) for part in fault["loc"])
            raise BadRequest(f"Request parameter '{place}': {fault['msg']}") from None
        if command.cmd.startswith("sessions."):
            told = await self._manage(call, command)
        else:
            told = {"message": "", "solution": await self._solve(call, command)}
        times = {"startTimestamp": int(began * 1000), "endTimestamp": int(time.time() * 1000)}
        return _respond({"status": "ok", **told, **times, "version": VERSION})

    def refuse(self, refused: ApiRefused) -> Response:
        """In FlareSolverr's shape: a page that cannot be had is 500, as are calls that are not valid."""
        status = refused.status if refused.status in (401, 402, 403, 413, 421, 429, 503) else 500
        now = int(time.time() * 1000)
        told = {"status": "error", "message": f"Error: {_words(refused)}", "startTimestamp": now, "endTimestamp": now}
        return _respond({**told, "version": VERSION}, status, refused.headers)

    async def _manage(self, call: DoorCall, command: SolverCommand) -> dict[str, Any]:
        if command.proxy is not None:
            raise _no_proxy()
        client = str((await call.api("GET", "/api/identity")).json()["client"])
        if command.cmd == "sessions.list":
            open_now = [name for (owner, name), each in self._sessions.items() if owner == client and not each.ended]
            return {"message": "", "sessions": open_now}
        if command.cmd == "sessions.create":
            name = command.session or secrets.token_hex(16)
            before = self._sessions.get((client, name))
            known = before is not None and not before.ended
            self._session(client, name, None)
            return {"message": "Session already exists." if known else "Session created successfully.", "session": name}
        if command.session is None or (found := self._sessions.get((client, command.session))) is None or found.ended:
            raise BadRequest("The session doesn't exist.")
        self._remember(client, command.session, _fresh(ended=True))
        return {"message": "The session has been removed."}

    def _session(self, client: str, name: str, ttl_minutes: float | None) -> str:
        """Where the cookies of a session are kept. One that is older than its time begins anew."""
        found = self._sessions.get((client, name))
        if found is None:
            found = self._remember(client, name, _Session(session_of(name), time.time()))
        elif found.ended:
            found = self._remember(client, name, msgspec.structs.replace(found, ended=False))
        elif ttl_minutes is not None and time.time() - found.made_at > ttl_minutes * 60:
            found = self._remember(client, name, _fresh())
        return found.name

    def _remember(self, client: str, name: str, session: _Session) -> _Session:
        self._sessions[client, name] = session
        self._sessions.move_to_end((client, name))
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    async def _solve(self, call: DoorCall, command: SolverCommand) -> dict[str, Any]:
        if command.url is None:
            raise BadRequest("Request parameter 'url' is mandatory in 'request.get' and 'request.post' commands.")
        if command.proxy is not None:
            raise _no_proxy()
        seconds = min(command.max_timeout / 1000, self._max_wait)
        given = {"url": command.url, "formats": ["raw_html", "headers"], "steps": _steps(command), "cookies_too": True}
        given |= {"context": {"block": _MEDIA}} if command.disable_media else {}
        given |= {"cookies": {each.name: each.value for each in command.cookies}} if command.cookies else {}
        if command.session is not None:
            client = str((await call.api("GET", "/api/identity")).json()["client"])
            given["session"] = self._session(client, command.session, command.session_ttl_minutes)
        asked = {
            "scraper": DOCUMENT,
            "input": given,
            "wait": seconds,
            "on_timeout": "cancel",
            "on_disconnect": "cancel",
            "policy": {"timeout_seconds": seconds, "retries": 0},
        }
        run = (await call.api("POST", "/api/scrape", asked)).json()
        if run["status"] != "succeeded":
            raise BadRequest(f"the request has not ended: it is {run['status']}; call again")
        return await _solution(call, command, run)


def _fresh(*, ended: bool = False) -> _Session:
    return _Session(secrets.token_hex(16), time.time(), ended)


def _steps(command: SolverCommand) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if command.cmd == "request.post":
        if command.post_data is None:
            raise BadRequest("Request parameter 'postData' is mandatory in 'request.post' command.")
        fields = [list(pair) for pair in parse_qsl(command.post_data, keep_blank_values=True)]
        steps.append({"do": "evaluate", "expression": _SUBMIT, "arg": fields})
        steps += [{"do": "wait_for", "response": "**"}, {"do": "wait_for", "load": "load"}]
    elif command.post_data is not None:
        raise BadRequest("Cannot use 'postBody' when sending a GET request.")
    if command.wait_in_seconds:
        steps.append({"do": "wait_for", "seconds": command.wait_in_seconds})
    if command.return_screenshot:
        steps.append({"do": "screenshot", "file": "screenshot.png"})
    return steps


async def _solution(call: DoorCall, command: SolverCommand, run: dict[str, Any]) -> dict[str, Any]:
    result = run["result"]
    told: dict[str, Any] = {"url": result["final_url"], "status": result["status"], "cookies": _cookies(result)}
    if not command.return_only_cookies:
        told["headers"] = {each["name"]: each["value"] for each in result["headers"]}
        told["response"] = result["raw_html"] or ""
    told["userAgent"] = result["user_agent"] or ""
    if command.return_screenshot:
        data = (await call.api("GET", f"/api/scrape/{run['id']}/artifacts/screenshot.png")).body
        told["screenshot"] = base64.b64encode(data).decode()
    return told


def _cookies(result: dict[str, Any]) -> list[dict[str, Any]]:
    """As Selenium spells them, and as Playwright does."""
    return [
        {**each, "expiry": int(each["expires"])} if each.get("expires", -1) > 0 else each
        for each in result["cookies"] or ()
    ]


def _no_proxy() -> BadRequest:
    return BadRequest("proxy is not available here: the operator sets pools of proxies, and policy chooses among them")


def _words(refused: ApiRefused) -> str:
    if refused.code in ("wait_timeout", "timeout"):
        return f"Error solving the challenge. Timeout after the given maxTimeout. {refused.words}"
    return refused.words


def _respond(told: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(told), status, headers, "application/json")
