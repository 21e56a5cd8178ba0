"""One fetch from the first hop to the last.

For each hop the host is checked against the scraper's allowed hosts, resolved, checked by the guard and asked through a
client pinned to those addresses. Redirects are followed here, not in wreq, so that each is checked.
"""

import asyncio
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from wreq import Response

from scrapeyard.engines.headers import AnswerHeaders
from scrapeyard.engines.http.body import Stream, read_page, read_wire
from scrapeyard.engines.http.charset import extract_content_type, find_charset
from scrapeyard.engines.http.checks import METHODS, Hop, check_allowed, next_hop
from scrapeyard.engines.http.clients import ClientIdentity, PinnedClients
from scrapeyard.engines.http.cookies import Jar
from scrapeyard.engines.http.failures import WREQ_ERRORS, explain, is_stale_connection, refused_by_proxy
from scrapeyard.engines.http.shares import SMALL, BodyMemory, BodyShare
from scrapeyard.engines.http.site import Sites
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
SITE_OF = Sites().of
"""A cookie's domain is the public suffix list's matter, not of our settings."""


class RequestTerms(Struct, frozen=True, kw_only=True):
    """What holds for every hop. Requests that look alike share it."""

    allowed_hosts: tuple[str, ...]
    dress: ClientIdentity
    way: Route
    page_limit: int
    keep_limit: int
    max_redirects: int | None
    """None: the first answer is the last."""
    proxy: str
    """The proxy's name for people; empty: there is none."""
    told: str
    """The way, as `explain` shows it."""
    adds_headers: bool
    """Whether the way has headers of its own."""


class HopLoop:
    """Asks one host after another, until there is a page."""

    __slots__ = ("_began", "_clients", "_jar", "_keep", "_memory", "_repeats", "_seen", "_share", "_stage", "_terms")

    def __init__(
        self, clients: PinnedClients, terms: RequestTerms, memory: BodyMemory, jar: Jar | None, keep: Keep | None
    ) -> None:
        """`jar` None: there are no cookies yet, and none are kept. `keep` takes the page as it comes; None: nobody."""
        self._clients = clients
        self._terms = terms
        self._memory = memory
        self._jar = jar
        self._keep = keep
        self._share: BodyShare | None = None
        self._seen: tuple[str, ...] = ()
        self._repeats = 0
        self._began = 0.0
        self._stage = "waiting for a free connection"

    @property
    def stage(self) -> str:
        """What it is at, for whoever loses patience."""
        return "waiting for memory" if self._share is not None and self._share.is_waiting else self._stage

    async def run(self, hop: Hop) -> FetchResponse:
        """To the page. Raises FetchFailed; `details["repeats"]` says how many requests were sent once more."""
        self._began = time.perf_counter()
        home, is_home = hop.target, True
        try:
            while True:
                response = await self._ask(hop, is_home)
                status, headers = response.status.as_int(), AnswerHeaders(response.headers)  # each asking makes a map
                if self._terms.proxy:
                    self._judge_proxy(hop.target, status, headers)
                may_go_on = "location" in headers.raw
                if "set-cookie" in headers.raw and (may_go_on or self._jar is not None):
                    self._hear_cookies(hop, headers)
                onward = self._onward(hop, status, headers) if may_go_on else None
                if onward is None:
                    return await self._read(hop, status, headers, response)
                await response.close()
                hop, is_home = onward, onward.target.origin == home.origin
        except FetchFailed as failure:
            if self._repeats:
                failure.details["repeats"] = self._repeats
            raise
        finally:
            if self._share is not None:
                self._share.close()

    def _onward(self, hop: Hop, status: int, headers: AnswerHeaders) -> Hop | None:
        """Where an answer sends us; None: it is the last. Raises FetchFailed."""
        most = self._terms.max_redirects
        if most is None:
            return None
        onward = next_hop(hop, status, _location(headers))
        if onward is not None:
            self._seen = (*self._seen, hop.url)
            if len(self._seen) > most:
                raise _too_many(self._seen)
        return onward

    async def _ask(self, hop: Hop, at_home: bool) -> Response:
        if self._terms.allowed_hosts:
            check_allowed(hop.target, self._terms.allowed_hosts)
        client = self._clients.ready(hop.target, self._terms.dress)
        if client is None:
            self._stage = "resolving its name"
            client = await self._clients.connect(hop.target, self._terms.dress)
        self._stage = "waiting for its answer"
        is_bare = not (hop.headers or hop.body or self._jar or self._terms.adds_headers)
        options: Options = {} if is_bare else self._options(hop, at_home)
        try:
            return await client.request(METHODS[hop.method], hop.url, **options)
        except asyncio.CancelledError:
            _check_stopping()
            raise
        except WREQ_ERRORS as error:
            if hop.method not in _SAFE_TO_REPEAT or not is_stale_connection(error):
                raise explain(error, hop.target, self._terms.proxy) from None
        return await self._repeat(hop, options)

    async def _repeat(self, hop: Hop, options: "Options") -> Response:
        """Once more, on a new connection: of those that were kept, others may have been closed as well."""
        self._repeats += 1
        client = await self._clients.connect(hop.target, replace(self._terms.dress, keeps=False))
        try:
            return await client.request(METHODS[hop.method], hop.url, **options)
        except asyncio.CancelledError:
            _check_stopping()
            raise
        except WREQ_ERRORS as error:
            raise explain(error, hop.target, self._terms.proxy) from None

    def _options(self, hop: Hop, at_home: bool) -> "Options":
        options: Options = {}
        if headers := self._headers(hop, at_home):
            options["headers"] = headers
        if hop.body:
            options["body"] = hop.body
        return options

    def _headers(self, hop: Hop, at_home: bool) -> dict[str, str]:
        headers = dict(hop.headers)
        own = {name.lower() for name in headers}
        way = self._terms.way
        if way.user_agent and "user-agent" not in own:
            headers["user-agent"] = way.user_agent
        if at_home:
            headers |= {name: value for name, value in way.headers if name.lower() not in own}
        if self._jar and "cookie" not in own:
            cookies = self._jar.header(hop.target, time.time())
            if cookies:
                headers["cookie"] = cookies
        return headers

    def _judge_proxy(self, target: Target, status: int, headers: AnswerHeaders) -> None:
        if status == 407:
            raise refused_by_proxy(target, self._terms.proxy)
        for name in PROXY_ERRORS:
            if status >= 400 and (said := headers.first(name)):
                message = f"the proxy {self._terms.proxy} says: {said[:200]}"
                raise FetchFailed(ExitReason.FETCH_PROXY, message, host=target.host, cause=said[:500])

    def _hear_cookies(self, hop: Hop, headers: AnswerHeaders) -> None:
        """Of the last answer nobody needs them, unless they are a session's."""
        if self._jar is None:
            self._jar = Jar(SITE_OF)
        for cookie in headers.raw.get_all("set-cookie"):
            text = _unicode(cookie)
            self._jar.hear(text or _text(cookie), hop.target, time.time(), sendable=text is not None)

    async def _read(self, hop: Hop, status: int, headers: AnswerHeaders, response: Response) -> FetchResponse:
        self._stage = "sending its page"
        if self._keep is not None and 200 <= status < 300:
            return await self._stream(hop, status, headers, response, self._keep)
        limit, length = self._terms.page_limit, response.content_length
        if "content-encoding" not in headers.raw:
            share = None if length is not None and length <= SMALL else self._take_share()
            body = await read_wire(hop.target, status, response, limit, share)
            received = len(body)
        else:
            packed, share = headers.first("content-encoding"), self._take_share()
            body, received = await read_page(hop.target, status, packed, response, limit, share=share)
        encoding = find_charset(_content_type(headers), body)
        return self._answer(hop, status, headers, body=body, encoding=encoding, received=received)

    def _take_share(self) -> BodyShare:
        """Of the worker's memory for bodies. A small one whose length is known needs none."""
        self._share = BodyShare(self._memory)
        return self._share

    async def _stream(
        self, hop: Hop, status: int, headers: AnswerHeaders, response: Response, keep: Keep
    ) -> FetchResponse:
        stream = Stream(hop.target, status, headers.first("content-encoding"), self._terms.keep_limit)
        try:
            kept = await keep(stream.pieces(response), _content_type(headers))
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
        headers: AnswerHeaders,
        *,
        encoding: str,
        received: int,
        body: bytes = b"",
        kept: int | None = None,
    ) -> FetchResponse:
        terms = self._terms
        proxy = terms.way.proxy
        return FetchResponse(
            url=hop.url,
            status=status,
            headers=headers,
            body=body,
            encoding=encoding,
            elapsed_ms=(time.perf_counter() - self._began) * 1000,
            redirects=self._seen,
            bytes_received=received,
            way=terms.told,
            proxy_class=proxy.proxy_class if proxy else "",
            proxy=proxy.name if proxy else "",
            kept=kept,
            repeats=self._repeats,
        )


def _content_type(headers: AnswerHeaders) -> str:
    """Empty: there is none."""
    values = headers.raw.get_all("content-type")
    if len(values) == 1 and "," not in (only := str(values[0], "latin-1")):
        return only
    return extract_content_type([_text(value) for value in values])


def _location(headers: AnswerHeaders) -> str | None:
    """As browsers read it: UTF-8; where it is not, the bytes stand for themselves."""
    value = headers.raw.get("location")
    if value is None:
        return None
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return quote(bytes(value), safe=_ASCII)


def _check_stopping() -> None:
    """Raises FetchFailed unless the task was cancelled: wreq reports a closed client in the same way."""
    if (task := asyncio.current_task()) is None or not task.cancelling():
        raise FetchFailed(ExitReason.FETCH_CONNECT, "the engine is stopping; the run will be tried again") from None


def _unicode(value: memoryview) -> str | None:
    """For what goes back to the site. The client writes text as UTF-8, so nothing else comes back as it came: None."""
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return None


def _text(value: memoryview) -> str:
    return str(value, "latin-1")


def _too_many(seen: tuple[str, ...]) -> FetchFailed:
    loop = ", in a loop" if len(set(seen)) < len(seen) else ""
    message = f"more than {len(seen) - 1} redirects{loop}; the last came from {seen[-1][:200]}"
    return FetchFailed(ExitReason.FETCH_REDIRECTS, message, redirects=list(seen))
