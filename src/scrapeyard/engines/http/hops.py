"""One fetch from the first hop to the last.

For each hop the host is checked against the scraper's allowed hosts, resolved, checked by the guard and asked through a
client pinned to those addresses. Redirects are followed here, not in wreq, so that each is checked.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from wreq import Client, Response
from wreq.header import HeaderMap

from scrapeyard.engines.http.body import Stream, read_page, read_wire
from scrapeyard.engines.http.charset import extract_content_type, find_charset
from scrapeyard.engines.http.checks import METHODS, Hop, check_allowed, next_hop
from scrapeyard.engines.http.clients import ClientIdentity
from scrapeyard.engines.http.cookies import Jar
from scrapeyard.engines.http.failures import WREQ_ERRORS, explain, is_stale_connection, refused_by_proxy
from scrapeyard.engines.http.shares import BodyShare
from scrapeyard.engines.http.url import Target
from scrapeyard.engines.port import FetchResponse, Keep, Route
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

if TYPE_CHECKING:
    from wreq.wreq import Request as Options

_SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Idempotent: whether the server had the request already makes no difference."""
_ASCII = "".join(map(chr, range(0x80)))
PROXY_ERRORS = ("x-brd-error", "x-luminati-error")
"""Headers by which vendors say that an answer is their own and not the site's."""


Connect = Callable[[Target, ClientIdentity], Awaitable[Client]]
"""Makes a client to a target whose addresses have passed the guard. Raises FetchFailed."""


class RequestTerms(Struct, frozen=True, kw_only=True):
    """What holds for every hop."""

    allowed_hosts: tuple[str, ...]
    dress: ClientIdentity
    way: Route
    page_limit: int
    keep_limit: int
    keep: Keep | None = None
    max_redirects: int | None
    """None: the first answer is the last."""

    @property
    def proxy(self) -> str:
        """The proxy's name for people; empty: there is none."""
        return (self.way.proxy.name or "in use") if self.way.proxy else ""

    @property
    def told(self) -> str:
        """The way, as `explain` shows it."""
        return f"{self.dress.profile} via {self.proxy}" if self.proxy else self.dress.profile


class HopLoop:
    """`stage` says what it is at, for whoever loses patience."""

    def __init__(
        self,
        connect: Connect,
        terms: RequestTerms,
        jar: Jar,
        share: BodyShare,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._share = share
        self._connect = connect
        self._terms = terms
        self._jar = jar
        self._clock = clock
        self._seen: list[str] = []
        self._repeats = 0
        self._began = time.perf_counter()
        self.stage = "waiting for a free connection"

    async def run(self, hop: Hop) -> FetchResponse:
        """To the page. Raises FetchFailed; `details["repeats"]` says how many requests were sent once more."""
        self._began = time.perf_counter()  # waiting for a free connection was ours, not the site's
        home, is_home = hop.target, True
        try:
            while True:
                response = await self._ask(hop, is_home)
                status, headers = response.status.as_int(), AnswerHeaders(response.headers)  # each asking makes a map
                if self._terms.way.proxy is not None:
                    self._judge_proxy(hop.target, status, headers)
                if "set-cookie" in headers.values:
                    self._hear_cookies(hop, headers)
                onward = self._onward(hop, status, headers)
                if onward is None:
                    return await self._read(hop, status, headers, response)
                await response.close()
                hop, is_home = onward, onward.target.origin == home.origin
        except FetchFailed as failure:
            if self._repeats:
                failure.details["repeats"] = self._repeats
            raise

    def _onward(self, hop: Hop, status: int, headers: "AnswerHeaders") -> Hop | None:
        """Where an answer sends us; None: it is the last. Raises FetchFailed."""
        most = self._terms.max_redirects
        if most is None or "location" not in headers.values:
            return None
        onward = next_hop(hop, status, headers.location())
        if onward is not None:
            self._seen.append(hop.target.url)
            if len(self._seen) > most:
                raise _too_many(self._seen)
        return onward

    async def _ask(self, hop: Hop, at_home: bool) -> Response:
        if self._terms.allowed_hosts:
            check_allowed(hop.target, self._terms.allowed_hosts)
        self.stage = "resolving its name"
        client = await self._connect(hop.target, self._terms.dress)
        self.stage = "waiting for its answer"
        options = self._options(hop, at_home)
        try:
            return await self._send(client, hop, options)
        except WREQ_ERRORS as error:
            if hop.method not in _SAFE_TO_REPEAT or not is_stale_connection(error):
                raise explain(error, hop.target, self._terms.proxy) from None
        return await self._repeat(hop, options)

    async def _repeat(self, hop: Hop, options: "Options") -> Response:
        """Once more, on a new connection: of those that were kept, others may have been closed as well."""
        self._repeats += 1
        client = await self._connect(hop.target, replace(self._terms.dress, keeps=False))
        try:
            return await self._send(client, hop, options)
        except WREQ_ERRORS as error:
            raise explain(error, hop.target, self._terms.proxy) from None

    def _options(self, hop: Hop, at_home: bool) -> "Options":
        options: Options = {}
        headers = self._headers(hop, at_home)
        if headers:
            options["headers"] = headers
        if hop.body:
            options["body"] = hop.body
        return options

    def _headers(self, hop: Hop, at_home: bool) -> dict[str, str]:
        if not (hop.headers or self._jar or self._terms.way.user_agent or self._terms.way.headers):
            return {}
        headers = dict(hop.headers)
        own = {name.lower() for name in headers}
        way = self._terms.way
        if way.user_agent and "user-agent" not in own:
            headers["user-agent"] = way.user_agent
        if at_home:
            headers |= {name: value for name, value in way.headers if name.lower() not in own}
        if self._jar and "cookie" not in own:
            cookies = self._jar.header(hop.target, self._clock())
            if cookies:
                headers["cookie"] = cookies
        return headers

    async def _send(self, client: Client, hop: Hop, options: "Options") -> Response:
        try:
            return await client.request(METHODS[hop.method], hop.target.url, **options)
        except asyncio.CancelledError:
            # wreq reports a closed client so; a true cancellation is counted on the task.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise FetchFailed(ExitReason.FETCH_CONNECT, "the engine is stopping; the run will be tried again") from None

    def _judge_proxy(self, target: Target, status: int, headers: "AnswerHeaders") -> None:
        if status == 407:
            raise refused_by_proxy(target, self._terms.proxy)
        for name in PROXY_ERRORS:
            if status >= 400 and (said := headers.first(name)):
                message = f"the proxy {self._terms.proxy} says: {said[:200]}"
                raise FetchFailed(ExitReason.FETCH_PROXY, message, host=target.host, cause=said[:500])

    def _hear_cookies(self, hop: Hop, headers: "AnswerHeaders") -> None:
        for cookie in headers.raw.get_all("set-cookie"):
            text = _unicode(cookie)
            self._jar.hear(text or _text(cookie), hop.target, self._clock(), sendable=text is not None)

    async def _read(self, hop: Hop, status: int, headers: "AnswerHeaders", response: Response) -> FetchResponse:
        self.stage = "sending its page"
        if self._terms.keep is not None and 200 <= status < 300:
            return await self._stream(hop, status, headers, response, self._terms.keep)
        limit, packed = self._terms.page_limit, headers.first("content-encoding")
        if packed is None:
            body = await read_wire(hop.target, status, response, limit, self._share)
            received = len(body)
        else:
            body, received = await read_page(hop.target, status, packed, response, limit, share=self._share)
        encoding = find_charset(headers.content_type(), body)
        return self._answer(hop, status, headers, body=body, encoding=encoding, received=received)

    async def _stream(
        self, hop: Hop, status: int, headers: "AnswerHeaders", response: Response, keep: Keep
    ) -> FetchResponse:
        stream = Stream(hop.target, status, headers.first("content-encoding"), self._terms.keep_limit)
        try:
            kept = await keep(stream.pieces(response), headers.content_type())
        except Exception:
            await response.close()
            if stream.failure is not None:
                raise stream.failure from None
            raise
        return self._answer(hop, status, headers, encoding="utf-8", received=stream.received, kept=kept)

    def _answer(
        self,
        hop: Hop,
        status: int,
        headers: "AnswerHeaders",
        *,
        encoding: str,
        received: int,
        body: bytes = b"",
        kept: int | None = None,
    ) -> FetchResponse:
        return FetchResponse(
            url=hop.target.url,
            status=status,
            headers=headers.pairs,
            body=body,
            encoding=encoding,
            elapsed_ms=(time.perf_counter() - self._began) * 1000,
            redirects=tuple(self._seen),
            bytes_received=received,
            way=self._terms.told,
            proxy_class=self._terms.way.proxy.proxy_class if self._terms.way.proxy else "",
            proxy=self._terms.way.proxy.name if self._terms.way.proxy else "",
            kept=kept,
            repeats=self._repeats,
        )


class AnswerHeaders:
    """The headers of an answer as text, read once. wreq writes names in lower case."""

    __slots__ = ("pairs", "raw", "values")

    def __init__(self, raw: HeaderMap) -> None:
        self.raw = raw
        self.pairs = tuple([(str(name, "latin-1"), str(value, "latin-1")) for name, value in raw])
        self.values = dict(self.pairs)
        """By name; of several of one name the last."""

    def first(self, name: str) -> str | None:
        """The first of this name; None: there is none."""
        return next(value for each, value in self.pairs if each == name) if name in self.values else None

    def content_type(self) -> str:
        """Empty: there is none."""
        if len(self.values) == len(self.pairs):
            return extract_content_type((self.values.get("content-type", ""),))
        return extract_content_type([value for name, value in self.pairs if name == "content-type"])

    def location(self) -> str | None:
        """As browsers read it: UTF-8; where it is not, the bytes stand for themselves."""
        value = self.raw.get("location")
        if value is None:
            return None
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            return quote(bytes(value), safe=_ASCII)


def _unicode(value: memoryview) -> str | None:
    """For what goes back to the site. The client writes text as UTF-8, so nothing else comes back as it came: None."""
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return None


def _text(value: memoryview) -> str:
    return str(value, "latin-1")


def _too_many(seen: list[str]) -> FetchFailed:
    loop = ", in a loop" if len(set(seen)) < len(seen) else ""
    message = f"more than {len(seen) - 1} redirects{loop}; the last came from {seen[-1][:200]}"
    return FetchFailed(ExitReason.FETCH_REDIRECTS, message, redirects=seen)
