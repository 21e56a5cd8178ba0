"""The gateway as a server on a socket, inside the event loop it is started from."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from scrapeyard.errors import SettingsInvalid
from scrapeyard.gateway.app import application
from scrapeyard.gateway.http.protocol import BoundedHttp
from scrapeyard.gateway.services import Gateway, GatewayServices
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
MAX_HEARD = 4096
"""Maximum bytes of a message from a watcher; none is expected."""
GRACE_SECONDS = 10
"""How long responses under way may take once the server stops."""


class GatewayServer:
    """Serves the API. The caller handles signals; `stop` answers waiting calls before it closes."""

    def __init__(self, services: GatewayServices) -> None:
        self._settings = services.settings.gateway
        self._gateway = Gateway(services)
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Where it listens, for a client on the same machine. Only after `start`."""
        host = self._settings.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104  not a bind
        return f"http://{f'[{shown}]' if ':' in shown and shown[0] != '[' else shown}:{self._port}"

    async def start(self) -> None:
        """Listen. Returns once requests are accepted. Raises SettingsInvalid if the address cannot be bound."""
        if self._task is not None:
            return
        listener = self._listener()
        self._port = listener.getsockname()[1]
        await self._gateway.start()
        self._server = _Server(self._config())
        self._task = asyncio.create_task(self._server.serve([listener]), name="gateway-http")
        await self._server.listening.wait()
        if not self._server.started:
            await self._task
        log.info("gateway.listening", url=self.url)

    async def stop(self) -> None:
        """Answer waiting calls, finish requests under way, close. May be called twice."""
        task, self._task = self._task, None
        if task is None or self._server is None:
            return
        self._gateway.close()
        self._server.should_exit = True
        await task
        await self._gateway.stop()

    def _listener(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._settings.host else socket.AF_INET
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._settings.host, self._settings.port))
        except OSError as error:
            listener.close()
            place = f"{self._settings.host}:{self._settings.port}"
            raise SettingsInvalid(f"gateway.port: cannot listen on {place}: {error.strerror or error}") from None
        return listener

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            application(self._gateway),
            loop="none",
            http=BoundedHttp,
            ws="websockets-sansio",
            ws_max_size=MAX_HEARD,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )


class _Server(uvicorn.Server):
    """Does not install signal handlers, and reports when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
