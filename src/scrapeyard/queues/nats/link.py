"""One connection to NATS for the whole process: made again after an outage, with requests that fail when it is lost."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from scrapeyard.background import Background
from scrapeyard.errors import SettingsInvalid, refuses_certificate
from scrapeyard.redis.outage import Outage, pauses

T = TypeVar("T")
CONNECT_SECONDS = 5.0
PING_SECONDS = 10
_UNTRUSTED = "; name the authority that signed it in `queue.ca_file`. The host must be one that the certificate names"
_NO_RESPONDERS = "503"


class NatsLost(Exception):
    """The connection is not there, or went before the answer came. Whether the request was done is not known."""


class NatsServers:
    """The addresses of one cluster and how to log in. Raises SettingsInvalid, without the password."""

    def __init__(self, url: str, ca_file: str = "") -> None:
        scheme, _, rest = url.partition("://")
        login, _, hosts = rest.rstrip("/").rpartition("@")
        try:
            self.hosts = [_host(scheme, host) for host in hosts.split(",")]
        except ValueError:
            raise SettingsInvalid(
                "queue.url: write nats://user:password@host:port (tls:// for TLS), several hosts with commas, and "
                "percent-encode special characters in the password"
            ) from None
        user, _, password = login.partition(":")
        self._login: dict[str, Any] = {"token": unquote(user)} if user and not password else {}
        if password:
            self._login = {"user": unquote(user), "password": unquote(password)}
        self._tls: dict[str, Any] = {"tls": _trusting(ca_file)} if scheme == "tls" else {}

    async def connect(self, client: Client, **callbacks: Any) -> None:
        """Tries every host twice. The library's own reconnecting is off: requests under way would not learn of it."""
        await client.connect(
            self.hosts,
            name="scrapeyard",
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=2,
            ping_interval=PING_SECONDS,
            **self._login,
            **self._tls,
            **callbacks,
        )


def _host(scheme: str, host: str) -> str:
    parts = urlsplit(f"{scheme}://{host}")
    if scheme not in ("nats", "tls") or not parts.hostname or parts.path or parts.query or parts.fragment:
        raise ValueError(host)
    return f"{scheme}://{parts.hostname if ':' not in parts.hostname else f'[{parts.hostname}]'}:{parts.port or 4222}"


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError):
        raise SettingsInvalid(f"queue.ca_file: {ca_file} cannot be read as PEM") from None


class NatsLink:
    """Keeps a connection alive in a task of its own. `greet` prepares each new one before anybody uses it."""

    def __init__(self, servers: NatsServers, outage: Outage, greet: Callable[[Client], Awaitable[None]]) -> None:
        self._servers = servers
        self._outage = outage
        self._greet = greet
        self._background = Background()
        self._ready = asyncio.Event()
        self._client: Client | None = None
        self._lost: asyncio.Future[None] | None = None
        self._answers: dict[str, asyncio.Future[Msg]] = {}
        self._inbox = ""
        self._numbers = count()
        self._pauses = pauses()
        self._why = "not connected yet"
        self.max_payload = 0
        """The largest message that the server takes, in bytes; 0 before the first connection."""

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._background.start(self._stay, name="nats-link")

    async def stop(self) -> None:
        """Close the connection."""
        if await self._background.stop():
            self._outage.forget(self)

    async def ready(self, until: float) -> Client:
        """The connection, as soon as there is one. Raises NatsLost when there is none at `until`, in loop time."""
        try:
            async with asyncio.timeout_at(until):
                while (client := self.client) is None:
                    await self._ready.wait()
        except TimeoutError:
            raise NatsLost(self._why) from None
        return client

    @property
    def client(self) -> Client | None:
        """The connection, if there is one now."""
        return self._client if self._ready.is_set() else None

    def drop(self) -> None:
        """Give up this connection, which does not answer, and make a new one."""
        self._ready.clear()
        self._lose("the server does not answer")

    async def ask(self, client: Client, subject: str, payload: bytes, until: float, **headers: str) -> Msg:
        """Send a request and wait for its answer. Raises NatsLost, also when nobody answers it within `until`.

        Requests of one connection reach the server in the order of the calls.
        """
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        msg = await self._answer(
            client, lambda inbox: client.publish(subject, payload, reply=inbox, headers=named or None), until
        )
        if msg.headers and msg.headers.get("Status") == _NO_RESPONDERS:
            raise NatsLost(NO_JETSTREAM)
        return msg

    async def echo(self, client: Client, until: float) -> None:
        """Wait until the server has done everything that was said before. The library's `flush` sends its PING ahead of
        what it has not written yet, and breaks the connection when it is cancelled. Raises NatsLost."""
        await self._answer(client, lambda inbox: client.publish(inbox, b""), until)

    async def _answer(self, client: Client, say: Callable[[str], Awaitable[None]], until: float) -> Msg:
        token = str(next(self._numbers))
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._answers[token] = answer
        try:
            async with asyncio.timeout_at(until):
                await say(f"{self._inbox}.{token}")
                return await answer
        except TimeoutError:
            if client is self._client:
                self.drop()
            raise NatsLost("no answer in time") from None
        except (NatsError, OSError) as error:
            raise NatsLost(str(error) or type(error).__name__) from None
        finally:
            self._answers.pop(token, None)

    async def during(self, work: Coroutine[Any, Any, T], until: float) -> T:
        """What the work returns. Raises NatsLost when the connection is lost or the time is over before it ends."""
        lost = self._lost
        task = asyncio.ensure_future(work)
        try:
            if lost is not None:
                left = max(0.0, until - asyncio.get_running_loop().time())
                await asyncio.wait((task, lost), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            raise NatsLost(self._why if lost is None or lost.done() else "no answer in time")
        except (NatsError, OSError, TimeoutError) as error:
            raise NatsLost(str(error) or type(error).__name__) from None
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def _stay(self) -> None:
        # the library may swallow a cancellation while it connects, so `stop` is looked for as well
        while self._background.started:
            try:
                await self._serve()
            except (NatsError, NatsLost, OSError, TimeoutError) as error:
                pause = next(self._pauses)
                self._why = self._words(error)
                self._outage.down(self, self._why, pause)
                await self._outage.pause(pause)

    async def _serve(self) -> None:
        """One connection, from its beginning to its end, which is always an exception."""
        self._lost = asyncio.get_running_loop().create_future()
        client = Client()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._servers.connect(client, error_cb=self._note, closed_cb=self._closed)
                self._client = client
                await self._listen(client)
                await self._greet(client)
            self.max_payload = client.max_payload
            self._pauses = pauses()
            self._why = ""  # until now it told whoever waited why the last one failed
            self._ready.set()
            self._outage.up(self)
            await self._lost
        finally:
            self._ready.clear()
            self._client = None
            self._lose("the connection was closed")
            with suppress(NatsError, OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await client.close()

    async def _listen(self, client: Client) -> None:
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._answered)

    async def _answered(self, msg: Msg) -> None:
        answer = self._answers.get(msg.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(msg)

    async def _note(self, error: Exception) -> None:
        self._why = self._words(error)

    async def _closed(self) -> None:
        self._lose(self._why or "the connection was closed")

    def _lose(self, why: str) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_exception(NatsLost(why))
            self._lost.exception()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(NatsLost(why))

    def _words(self, error: BaseException) -> str:
        words = str(error) or type(error).__name__
        if isinstance(error, NoRespondersError):
            words = NO_JETSTREAM
        if "no servers available" in words and self._why:
            return self._why
        return words + _UNTRUSTED if refuses_certificate(error) else words


NO_JETSTREAM = "the server has no JetStream, or lost the stream; start it with -js, or `jetstream {}` in its file"
