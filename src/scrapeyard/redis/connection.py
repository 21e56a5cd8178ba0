"""Connections to Redis: by URL, shared by many callers, and restored after an outage."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from hiredis import pack_command
from msgspec import Struct
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.exceptions import RedisError, ResponseError

from scrapeyard.background import Background
from scrapeyard.errors import SettingsInvalid, refuses_certificate
from scrapeyard.redis.outage import Outage, pauses

_OF_A_POOL = ("max_connections", "timeout")
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_UNTRUSTED = (
    "; name the authority that signed it in REDIS_URL: rediss://host:port/0?ssl_ca_certs=/path/to/ca.pem. "
    "The host must be one that the certificate names"
)


class Dialer:
    """Makes connections to one URL. Raises SettingsInvalid, without the URL's password, when it cannot be used."""

    def __init__(self, url: str) -> None:
        try:
            options: dict[str, Any] = dict(parse_url(url))
            self._class: type[AbstractConnection] = options.pop("connection_class", Connection)
            for name in _OF_A_POOL:
                options.pop(name, None)
            self._options = options | {"protocol": 2, "socket_timeout": None, "driver_info": None}
            self()
            self._check_files()
        except (ValueError, TypeError, RedisError):
            # "from None" and no word of the URL: the error quotes parts of it, the password among them
            raise SettingsInvalid(
                "redis_url: write redis://user:password@host:port/db (rediss:// for TLS, unix:// for a socket) and "
                "percent-encode special characters in the password"
            ) from None

    def __call__(self) -> AbstractConnection:
        """A connection that is not yet open."""
        return self._class(**self._options)

    def _check_files(self) -> None:
        for name in _FILES:
            if (path := self._options.get(name)) is not None and not os.access(path, os.R_OK):
                raise SettingsInvalid(f"redis_url: {name}: {path} cannot be read")


CONNECT_SECONDS = 5.0

Command = tuple[str | bytes | int, ...]
_UNHEARD: Command = ("CLIENT", "REPLY", "SKIP")


class LinkLost(Exception):
    """The connection is not there, or went before the answer came. Whether the command was done is not known."""


class Link:
    """Keeps one connection alive in a task of its own. What is said on it is left to the classes below it."""

    def __init__(self, dial: Callable[[], AbstractConnection], outage: Outage) -> None:
        self._dial = dial
        self._outage = outage
        self._connection: AbstractConnection | None = None
        self._ready = asyncio.Event()
        self._background = Background()
        self._why = "not connected yet"

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._background.start(self._stay, name="redis-link")

    async def stop(self) -> None:
        """Close the connection."""
        if await self._background.stop():
            self._outage.forget(self)

    async def ready(self, until: float) -> None:
        """Wait for the connection. Raises LinkLost when there is none at `until`, in the loop's time."""
        if self._ready.is_set():
            return
        try:
            async with asyncio.timeout_at(until):
                await self._ready.wait()
        except TimeoutError:
            raise LinkLost(self._why) from None

    @property
    def is_up(self) -> bool:
        """Whether there is a connection now, as far as is known."""
        return self._ready.is_set()

    def drop(self) -> None:
        """Give up this connection, which does not answer, and make a new one."""
        self._ready.clear()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            closing = asyncio.ensure_future(connection.disconnect(nowait=True))
            closing.add_done_callback(lambda done: done.exception())

    async def _greet(self, connection: AbstractConnection) -> None:
        """Say what must be said first on a new connection."""

    def _receive(self, reply: Any) -> None:
        """Something came; an error reply comes as an exception object."""

    def _lose(self) -> None:
        """The connection is gone."""

    async def _stay(self) -> None:
        tries = pauses()
        while True:
            try:
                connection = await self._connect()
                tries = pauses()
                await self._listen(connection)
            except (RedisError, OSError, TimeoutError) as error:
                pause = next(tries)
                self._why = _reason(error)
                self._outage.down(self, self._why, pause)
                await self._outage.pause(pause)

    async def _connect(self) -> AbstractConnection:
        connection = self._dial()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await connection.connect()  # type: ignore[no-untyped-call]
                await self._greet(connection)
        except BaseException:
            self._connection = None
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _listen(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._ready.set()
        self._outage.up(self)
        try:
            while True:
                self._receive(await _reply(connection))
        finally:
            self._ready.clear()
            self._connection = None
            self._lose()
            with suppress(RedisError, OSError):
                await connection.disconnect(nowait=True)


def _reason(error: BaseException) -> str:
    words = str(error) or type(error).__name__
    return words + _UNTRUSTED if refuses_certificate(error) else words


async def _reply(connection: AbstractConnection) -> Any:
    """The next reply. Takes no timeout, not even `math.inf`: with one, the library takes a connection that the system
    gave up (ETIMEDOUT is a TimeoutError) for a read without a result, and returns None at once, again and again."""
    try:
        return await connection.read_response(disconnect_on_error=False)
    except ResponseError as error:
        return error


class _Exchange(Struct, eq=False):
    """Commands sent together, and the replies that have come so far."""

    missing: int
    replies: list[Any]
    done: asyncio.Future[list[Any]]


class CommandLink(Link):
    """Commands and their replies, for any number of callers at once."""

    def __init__(self, dial: Callable[[], AbstractConnection], outage: Outage) -> None:
        super().__init__(dial, outage)
        self._exchanges: deque[_Exchange] = deque()
        self.client_id = 0
        """The server's number for this connection."""

    async def ask(self, *commands: Command, within: float, unheard: Sequence[Command] = ()) -> list[Any]:
        """Send the commands together and wait for all replies; an error reply stands in its place as an exception.

        `unheard` are done before them, and the server does not say how they went. Raises LinkLost when the connection
        goes, or when not all came `within` so many seconds; it is then given up.
        """
        connection = self._connection
        if connection is None or not connection.is_connected:
            self.drop()
            raise LinkLost(self._why)
        said = [*(each for command in unheard for each in (_UNHEARD, command)), *commands]
        packed = b"".join([pack_command(command) for command in said])  # type: ignore[arg-type] # its stub means a tuple of one
        exchange = _Exchange(len(commands), [], asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(within):
                # nothing is awaited between these two: replies come in the order in which commands are written
                self._exchanges.append(exchange)
                await connection.send_packed_command(packed, check_health=False)
                return await exchange.done
        except TimeoutError:
            self.drop()
            raise LinkLost(f"no answer within {within:.1f} s") from None
        except RedisError as error:
            raise LinkLost(str(error)) from None
        finally:
            exchange.done.cancel()

    async def _greet(self, connection: AbstractConnection) -> None:
        await connection.send_command("CLIENT", "ID", check_health=False)
        self.client_id = int(await connection.read_response())

    def _receive(self, reply: Any) -> None:
        if not self._exchanges:
            raise RedisError("the server answered what was not asked")
        exchange = self._exchanges[0]
        exchange.replies.append(reply)
        exchange.missing -= 1
        if exchange.missing == 0:
            self._exchanges.popleft()
            if not exchange.done.done():
                exchange.done.set_result(exchange.replies)

    def _lose(self) -> None:
        for exchange in self._exchanges:
            if not exchange.done.done():
                exchange.done.set_exception(LinkLost("the connection was lost"))
        self._exchanges.clear()
