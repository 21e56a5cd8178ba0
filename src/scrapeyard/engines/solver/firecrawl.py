"""Firecrawl as an outside engine: a server that the operator set up or pays for brings pages that nothing here gets,
and searches the web."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field
from wreq import Client, Method
from wreq.redirect import Policy

from scrapeyard.engines.http.body import read_wire
from scrapeyard.engines.http.checks import check_allowed
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.failures import WREQ_ERRORS
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy
from scrapeyard.engines.solver.port import SearchHits, SearchQuestion, Solved, SolverAway
from scrapeyard.engines.solver.searching import MAX_SEARCH_BYTES, SEARCH_DECODER, checked_hits
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason
from scrapeyard.settings import EscalationSettings
from scrapeyard.telemetry.events import get_log

log = get_log("solver")
_CONNECT_SECONDS: Final = 5.0
_GRACE_SECONDS: Final = 5.0
_NO_ANSWER: Final[tuple[type[Exception], ...]] = (TimeoutError, *WREQ_ERRORS)
_REASONS: Final = {
    "SCRAPE_DNS_RESOLUTION_ERROR": ExitReason.FETCH_DNS,
    "SCRAPE_SSL_ERROR": ExitReason.FETCH_TLS,
    "SCRAPE_TIMEOUT": ExitReason.FETCH_TIMEOUT,
    "SCRAPE_SITE_ERROR": ExitReason.FETCH_CONNECT,
}


class _Metadata(Struct, frozen=True):
    url: str = ""
    source_url: str = field(default="", name="sourceURL")
    status_code: int = field(default=200, name="statusCode")
    content_type: str = field(default="", name="contentType")


class _Document(Struct, frozen=True):
    raw_html: str = field(default="", name="rawHtml")
    metadata: _Metadata = _Metadata()


class _Answer(Struct, frozen=True):
    success: bool = False
    data: _Document | None = None
    error: str = ""
    code: str = ""


_DECODER: Final = msgspec.json.Decoder(_Answer, strict=False)
_Decoded = TypeVar("_Decoded")


class FirecrawlSolver:
    """A Solver and a Searcher that asks a Firecrawl-compatible server. It gives no clearance: each page is asked for
    again. The server opens pages at its own address, so a proxy of ours is not used."""

    def __init__(
        self,
        settings: EscalationSettings,
        *,
        dns: GuardedDns,
        max_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """As `FlareSolverr`. Raises SettingsInvalid when solver_url cannot be used."""
        self._settings = settings
        self._place = _place(settings.solver_url)
        self._dns = dns
        self._max_bytes = max_bytes
        self._clock = clock
        self._free = asyncio.Semaphore(settings.solver_concurrency)
        self._client: Client | None = None
        self._day, self._pages = "", 0

    async def start(self) -> None:
        """Connections are made when first needed."""
        if self._client is None:
            connect = timedelta(seconds=_CONNECT_SECONDS)
            self._client = Client(redirect=Policy.none(), no_proxy=True, connect_timeout=connect)

    async def stop(self) -> None:
        """Close the connections. May be called twice."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
        await self._dns.stop()

    async def solve(self, request: FetchRequest, caller: Caller, *, proxy: Proxy | None, seconds: float) -> Solved:
        """As `Solver`. GET alone; another method is fetch_not_allowed."""
        del proxy
        if request.method.upper() != "GET" or request.body:
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, "Firecrawl opens pages with GET")
        target = parse_target(request.url)
        await self._passes(target, caller)
        self._count()
        began = time.perf_counter()
        try:
            async with asyncio.timeout(seconds + _GRACE_SECONDS), self._free:
                answer = await self._ask(request, target, seconds - (time.perf_counter() - began))
        except TimeoutError:
            words = f"Firecrawl did not bring {target.host} in time; raise escalation.solver_seconds"
            raise FetchFailed(ExitReason.FETCH_TIMEOUT, words) from None
        await self._passes(parse_target(answer.metadata.url or target.url), caller)
        return Solved(response=self._page(answer, target, (time.perf_counter() - began) * 1000), clearance=None)

    async def search(self, question: SearchQuestion) -> SearchHits:
        """As `Searcher`."""
        self._count()
        words = f"the search engine at {self._named} "
        try:
            async with asyncio.timeout(min(question.timeout / 1000, self._settings.solver_seconds)), self._free:
                asked = msgspec.json.encode(question)
                status, answer = await self._say("search", asked, SEARCH_DECODER, MAX_SEARCH_BYTES)
        except TimeoutError:
            raise FetchFailed(ExitReason.FETCH_TIMEOUT, words + "did not answer in time") from None
        except SolverAway as error:
            raise FetchFailed(ExitReason.FETCH_CONNECT, f"{error.message}, so nothing is found") from None
        except FetchFailed as error:
            raise FetchFailed(ExitReason.FETCH_PROTOCOL, words + "breaks off or answers too much") from error
        if status != 200 or not answer.success:
            words += f"refuses the search with {status}: {self._shown(answer.error)}"
            raise FetchFailed(ExitReason.FETCH_STATUS, words, site_status=status)
        return checked_hits(answer, question.limit)

    async def healthy(self) -> bool:
        """Whether it answers anything: it has no call for this that costs nothing."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._made().get(self._place.url)
        except _NO_ANSWER:
            return False
        return True

    def _count(self) -> None:
        """Raises FetchFailed (`fetch_budget`) if the pages of the day are used up."""
        today = datetime.fromtimestamp(self._clock(), UTC).date().isoformat()
        if today != self._day:
            self._day, self._pages = today, 0
        most = self._settings.solver_pages_daily
        if most and self._pages >= most:
            words = f"the {most} pages of this day that the solver may be asked for are used up"
            raise FetchFailed(ExitReason.FETCH_BUDGET, words)
        self._pages += 1

    async def _passes(self, target: Target, caller: Caller) -> None:
        check_allowed(target, caller.scraper.allowed_hosts if caller.scraper else ())
        await self._dns.addresses(target)

    async def _ask(self, request: FetchRequest, target: Target, seconds: float) -> _Document:
        words: dict[str, Any] = {"url": target.url, "formats": ["rawHtml"], "onlyMainContent": False, "maxAge": 0}
        words |= {"timeout": max(1000, int(seconds * 1000)), "proxy": "auto"}
        words |= {"headers": request.headers} if request.headers else {}
        _status, answer = await self._say("scrape", msgspec.json.encode(words), _DECODER, 2 * self._max_bytes)
        if answer.success and answer.data is not None:
            return answer.data
        reason = _REASONS.get(answer.code, ExitReason.FETCH_CAPTCHA)
        raise FetchFailed(
            reason, f"Firecrawl did not bring {target.host}", host=target.host, cause=self._shown(answer.error)
        )

    async def _say(
        self, call: str, body: bytes, decoder: msgspec.json.Decoder[_Decoded], limit: int
    ) -> tuple[int, _Decoded]:
        """The status and the answer of a call of the second version. Raises SolverAway."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        if key := self._settings.solver_key.get_secret_value():
            headers["authorization"] = f"Bearer {key}"
        place = f"{self._place.url.rstrip('/')}/v2/{call}"
        try:
            response = await self._made().request(Method.POST, place, headers=headers, body=body)
            status = response.status.as_int()
            raw = await read_wire(self._place, status, response, limit)
            if status in (401, 402, 403, 429):
                log.warning("solver.away", error=f"status {status}")
                words = f"{status}: {self._shown(_reason(raw))}; check escalation.solver_key"
                raise SolverAway(f"Firecrawl at {self._named} refuses us with {words}")
            return status, decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise SolverAway(f"{self._named} does not speak Firecrawl's protocol") from None
        except WREQ_ERRORS as error:
            log.warning("solver.away", error=type(error).__name__)
            raise SolverAway(f"Firecrawl at {self._named} does not answer") from None

    @property
    def _named(self) -> str:
        return f"{self._place.host}:{self._place.port}"

    def _shown(self, words: str) -> str:
        """What the server says, without our key, which some repeat."""
        key = self._settings.solver_key.get_secret_value()
        return (words.replace(key, "***") if key else words)[:500]

    def _made(self) -> Client:
        if self._client is None:
            raise SolverAway("the solver's client is not started")
        return self._client

    def _page(self, document: _Document, target: Target, elapsed_ms: float) -> FetchResponse:
        body, told = document.raw_html.encode("utf-8", "replace"), document.metadata
        if len(body) > self._max_bytes:
            message = f"the page holds more than {self._max_bytes} bytes; raise http.max_body_mb"
            raise FetchFailed(ExitReason.FETCH_TOO_LARGE, message, site_status=told.status_code)
        return FetchResponse(
            url=parse_target(told.url or target.url).url,
            status=told.status_code if 100 <= told.status_code <= 999 else 200,
            headers=(("content-type", _utf8(told.content_type)),),
            body=body,
            encoding="utf-8",
            elapsed_ms=elapsed_ms,
            bytes_received=len(body),
            way="solver",
            strategy="solver",
        )


def _reason(raw: bytes) -> str:
    """Why a call is refused, if the answer says so."""
    try:
        return _DECODER.decode(raw).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _utf8(content_type: str) -> str:
    """The page came as JSON, so its text is UTF-8, whatever it was before."""
    return f"{content_type.partition(';')[0].strip() or 'text/html'}; charset=utf-8"


def _place(url: str) -> Target:
    try:
        return parse_target(url.removesuffix("/v1"))
    except FetchFailed:
        raise SettingsInvalid("escalation.solver_url: write Firecrawl's address as https://host") from None
