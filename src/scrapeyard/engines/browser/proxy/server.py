"""The forward proxy of a worker: the only door of its browsers. docs/design/browser-proxy.md tells why."""

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from scrapeyard.background import Background
from scrapeyard.engines.browser.port import Passage, PassageCount
from scrapeyard.engines.browser.proxy.connect import Connector, check_exit_answer, exit_failed, login_fields
from scrapeyard.engines.browser.proxy.heads import (
    ANSWER_END,
    MAX_ANSWER,
    MAX_REQUEST,
    REQUEST_END,
    AnswerHead,
    BadHead,
    RequestHead,
    read_answer,
    read_request,
    write_answer,
)
from scrapeyard.engines.browser.proxy.passages import Connection, OpenPassage
from scrapeyard.engines.browser.proxy.peer import HeadTooLong, Peer, PeerGone
from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings

HEAD_SECONDS = 10.0
"""A browser has sent its head by then."""
IDLE_SECONDS = 300.0
MOST_CONNECTIONS = 2000
"""Of all contexts together."""
MOST_EACH = 200
"""Of one context. Chromium itself opens 32 to one proxy, and as many for WebSockets."""
_CLOSING_SECONDS = 60.0
"""To take what is left when the other side has closed."""
_BOOKS_SECONDS = 0.25
_MOST_HINTS = 10
"""Answers 1xx before the one that counts."""
_AUTHORITY = re.compile(r".+:[0-9]{1,5}")
_NO_BODY = frozenset({204, 304})
_REFUSALS = frozenset(
    {
        ExitReason.FETCH_BAD_URL,
        ExitReason.FETCH_BUDGET,
        ExitReason.FETCH_NOT_ALLOWED,
        ExitReason.FETCH_PRIVATE_ADDRESS,
    }
)
"""Reasons of ours; with others, the site or an exit failed."""


class BrowserProxy:
    """A ForwardProxy."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        dns: GuardedDns,
        budgets: Budgets,
        pools: ProxyPools,
        sites: Sites,
        meters: Meters | None = None,
        folder: Callable[[], Path | None] = lambda: None,
        head_seconds: float = HEAD_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
        most_each: int = MOST_EACH,
    ) -> None:
        """The socket is made below `folder`; None: in the temporary folder. `dns` is the proxy's own: it stops it.
        Without meters, only budgets and pools are told."""
        self.path = ""
        self._folder = folder
        self._dns = dns
        self._connector = Connector(settings, dns)
        self._budgets = budgets
        self._pools = pools
        self._sites = sites
        self._meters = meters
        self._head_seconds = head_seconds
        self._idle_seconds = idle_seconds
        self._most = most_connections
        self._most_each = most_each
        self._passages: dict[str, OpenPassage] = {}
        self._connections: set[Connection] = set()
        self._background = Background()
        self._to_book = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. May be called twice."""
        if not self._background.start(self._keep_books, name="browser proxy"):
            return
        folder = Path(tempfile.mkdtemp(prefix=f"browser-{os.getpid()}-", dir=self._folder()))
        self.path = str(folder / "socket")
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_unix_server(lambda: Peer(self._accept), self.path, backlog=512)
        except BaseException:
            await self.stop()
            raise
        os.chmod(self.path, 0o600)  # noqa: PTH101  a socket, not a file

    async def stop(self) -> None:
        """As the port has it."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for user in tuple(self._passages):
            await self.dismiss(user)
        await self._background.stop()
        await self._dns.stop()
        if self.path:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)

    def admit(self, passage: Passage) -> tuple[str, str]:
        """As the port has it."""
        opened = OpenPassage(passage, self._to_book.set)
        self._passages[opened.user] = opened
        return opened.user, opened.password

    def count(self, user: str) -> PassageCount:
        """As the port has it. Nothing, for one that was dismissed."""
        opened = self._passages.get(user)
        return opened.count if opened else PassageCount()

    async def dismiss(self, user: str) -> PassageCount:
        """As the port has it. Nothing, the second time."""
        opened = self._passages.pop(user, None)
        if opened is None:
            return PassageCount()
        tasks = [connection.task for connection in opened.connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await opened.book(self._budgets)
        return opened.count

    def _accept(self, browser: Peer) -> None:
        if len(self._background) > 2 * self._most:  # those beyond the limit are told so when their head has come
            browser.abort()
            return
        self._background.spawn(self._serve(browser), name="browser connection")

    async def _serve(self, browser: Peer) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  this is one
        connection = Connection(browser, task)
        self._connections.add(connection)
        if len(self._connections) == 1:
            self._to_book.set()
        try:
            await self._answer(connection)
            browser.close()
            await asyncio.wait([browser.closed], timeout=_CLOSING_SECONDS)
        except (PeerGone, TimeoutError):
            return
        finally:
            self._connections.discard(connection)
            browser.abort()

    async def _answer(self, connection: Connection) -> None:
        """Raises PeerGone or TimeoutError when the browser does not send a head."""
        browser = connection.browser
        try:
            async with asyncio.timeout(self._head_seconds):
                head = read_request(await browser.read_head(REQUEST_END, MAX_REQUEST))
            user, password = head.credentials
            opened = self._passages.get(user)
            if opened is None or not opened.admits(password):
                asks = (b"Proxy-Authenticate", b'Basic realm="scrapeyard"')
                browser.write(write_answer(407, "this proxy serves its own browsers only", asks))
                return
        except HeadTooLong:
            browser.write(write_answer(400, f"the head has more than {MAX_REQUEST} bytes"))
            return
        except BadHead as error:
            browser.write(write_answer(400, str(error)))
            return
        opened.connections.add(connection)
        try:
            await self._pass(opened, connection, head)
        finally:
            opened.connections.discard(connection)

    async def _pass(self, opened: OpenPassage, connection: Connection, head: RequestHead) -> None:
        """A tunnel that cannot be had is answered with the reason. A plain request is not answered at all: the browser
        would take what we say for the site's page."""
        try:
            target, resource = read_target(head)
            self._check_room(opened)
            await self._budgets.begin(opened.passage.caller, opened.proxy_class)
            await self._forward_counted(opened, connection, head, target, resource)
        except FetchFailed as failure:
            words = opened.refuse(failure)
            if head.method == "CONNECT":
                connection.browser.write(write_answer(_status(failure), words))

    def _check_room(self, opened: OpenPassage) -> None:
        """Raises FetchFailed (fetch_not_allowed) when there are as many connections as may be."""
        if len(opened.connections) > self._most_each:
            whose, most = "this browser context", self._most_each
        elif len(self._connections) > self._most:
            whose, most = "all browser contexts together", self._most
        else:
            return
        message = f"{whose} may have {most} connections; close tabs, or load less at once"
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message)

    async def _forward_counted(
        self, opened: OpenPassage, connection: Connection, head: RequestHead, target: Target, resource: str
    ) -> None:
        """Until it is closed. Tells pools and meters how it went, as `Metered` does. Raises FetchFailed."""
        way, ok = opened.passage.exit, None
        try:
            upstream = await self._forward(opened, connection, head, target, resource)
            ok = True
            both = (connection.browser.closed, upstream.closed)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(both, timeout=_CLOSING_SECONDS)
        except FetchFailed as failure:
            ok = False if failure.reason is ExitReason.FETCH_PROXY else None
            raise
        finally:
            if connection.upstream is not None:
                connection.upstream.abort()
            if way is not None:
                self._pools.report(way, ok)
            self._meter(opened, connection, target, ok)

    async def _forward(
        self, opened: OpenPassage, connection: Connection, head: RequestHead, target: Target, resource: str
    ) -> Peer:
        """The connection to the site, when bytes flow both ways. Raises FetchFailed."""
        browser, way, caller = connection.browser, opened.passage.exit, opened.passage.caller
        is_tunnel = head.method == "CONNECT"
        upstream = await self._connector.connect(target, caller, way, tunnel=is_tunnel)
        opened.begin(connection, upstream)
        if is_tunnel:
            browser.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            browser.pipe(upstream)
            upstream.pipe(browser)
            return upstream
        exit_asks = way if way is not None and way.url.startswith("http") else None
        if exit_asks is not None:
            whole = f"http://{target.authority}{resource}"
            upstream.write(head.forwarded(target.authority, whole, *login_fields(exit_asks)))
        else:
            upstream.write(head.forwarded(target.authority, resource))
        browser.pipe(upstream, send=_Body(upstream, head.body_size), finish=upstream.close)
        try:
            answer = await _read_answer(upstream)
            if exit_asks is not None:
                check_exit_answer(answer, exit_asks, target)
            elif answer.status == 407:
                raise BadHead("it answers as a proxy does")
        except BadHead as error:
            raise exit_failed(exit_asks, target, str(error)) if exit_asks else _bad_answer(target, error) from None
        _pipe_answer(upstream, browser, answer, is_head=head.method == "HEAD")
        return upstream

    def _meter(self, opened: OpenPassage, connection: Connection, target: Target, ok: bool | None) -> None:
        if self._meters is None:
            return
        way = opened.passage.exit
        self._meters.count(
            site=self._sites.of(target.host),
            caller=opened.passage.caller,
            pool=way.name.partition("/")[0] if way else "",
            proxy_class=opened.proxy_class,
            failures=0 if ok else 1,
            size=connection.received,
        )

    async def _keep_books(self) -> None:
        """While there are connections: write what they received, and close those that are idle."""
        loop = asyncio.get_running_loop()
        next_look = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BOOKS_SECONDS if self._connections else None):
                    await self._to_book.wait()
            self._to_book.clear()
            await asyncio.gather(*(each.book(self._budgets) for each in self._passages.values() if each.unbooked))
            if (now := loop.time()) < next_look:
                continue
            next_look = now + min(1.0, self._idle_seconds)
            for connection in self._connections:
                if connection.touched < now - self._idle_seconds:
                    connection.close()


def read_target(head: RequestHead) -> tuple[Target, str]:
    """Where a request leads, and the resource it asks for there. Raises FetchFailed (fetch_bad_url)."""
    if head.method == "CONNECT":
        if not _AUTHORITY.fullmatch(head.target) or head.body_size:
            raise FetchFailed(ExitReason.FETCH_BAD_URL, f"cannot connect to {head.target[:100]!r}; it is no host:port")
        return parse_target(f"http://{head.target}/"), ""
    try:
        authority, resource = head.plain_url()
    except BadHead as error:
        raise FetchFailed(ExitReason.FETCH_BAD_URL, str(error)) from None
    return parse_target(f"http://{authority}/"), resource


class _Body:
    """A body of so many bytes, and nothing behind it: of a browser, that would be a request that nobody has checked."""

    def __init__(self, sink: Peer, size: int, finish: Callable[[], None] | None = None) -> None:
        """`finish` is called when it is whole."""
        self._sink = sink
        self._left = size
        self._finish = finish

    def __call__(self, data: bytes) -> None:
        if self._left:
            self._sink.write(data[: self._left])
            self._left = max(0, self._left - len(data))
            if not self._left and self._finish:
                self._finish()


async def _read_answer(upstream: Peer) -> AnswerHead:
    """Raises BadHead."""
    try:
        for _ in range(_MOST_HINTS):
            answer = read_answer(await upstream.read_head(ANSWER_END, MAX_ANSWER))
            if answer.status >= 200:
                return answer
        raise BadHead("its answer never begins")
    except PeerGone:
        raise BadHead("it closed the connection") from None
    except HeadTooLong:
        raise BadHead(f"its head has more than {MAX_ANSWER} bytes") from None


def _pipe_answer(upstream: Peer, browser: Peer, answer: AnswerHead, *, is_head: bool) -> None:
    """A body that only the end of its connection ends is sent in chunks: the browser could not tell it from one that
    was cut off."""
    size = 0 if is_head or answer.status in _NO_BODY else answer.body_size
    if size == 0:
        browser.write(answer.forwarded())
        browser.close()
        return
    if size is not None or answer.is_chunked:
        browser.write(answer.forwarded())
        send = browser.write if size is None else _Body(browser, size, browser.close)
        upstream.pipe(browser, send=send, finish=browser.close)
        return

    def send_chunk(data: bytes) -> None:
        browser.write(b"%x\r\n%b\r\n" % (len(data), data))

    def finish() -> None:
        browser.write(b"0\r\n\r\n")
        browser.close()

    browser.write(answer.forwarded((b"Transfer-Encoding", b"chunked")))
    upstream.pipe(browser, send=send_chunk, finish=finish)


def _bad_answer(target: Target, cause: BadHead) -> FetchFailed:
    message = f"{target.endpoint} broke off or did not speak HTTP ({cause}); trying again may help"
    return FetchFailed(ExitReason.FETCH_PROTOCOL, message, host=target.host, cause=str(cause))


def _status(failure: FetchFailed) -> int:
    if failure.reason in _REFUSALS:
        return 403
    return 504 if failure.reason is ExitReason.FETCH_TIMEOUT else 502
