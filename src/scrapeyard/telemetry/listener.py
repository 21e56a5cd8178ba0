"""Serves `/metrics` of a process that has no gateway. Whoever reaches the address may read them."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from prometheus_client import make_asgi_app

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import TelemetrySettings
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("metrics")
_MOST = 32
"""Maximum connections at once."""
_IDLE_SECONDS = 60


class MetricsListener:
    """Listens where the settings say. `port` is known after `start`."""

    def __init__(self, settings: TelemetrySettings, metrics: Metrics) -> None:
        self._host = settings.metrics_host
        self.port = settings.metrics_port or 0
        self._app = _only_metrics(make_asgi_app(metrics.registry))
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises SettingsInvalid if the address cannot be bound."""
        listener = self._bind()
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            loop="none",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([listener]), name="metrics-http")
        log.info("metrics.listening", url=f"http://{self._host}:{self.port}/metrics")

    async def stop(self) -> None:
        """Close. May be called twice."""
        task, self._task = self._task, None
        if task is not None and self._server is not None:
            self._server.should_exit = True
            await task

    def _bind(self) -> socket.socket:
        listener = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self.port))
        except OSError as error:
            listener.close()
            place = f"{self._host}:{self.port}"
            raise SettingsInvalid(
                f"telemetry.metrics_port: cannot listen on {place}: {error.strerror or error}; every process on a "
                "machine needs its own port; 0 takes a free one"
            ) from None
        return listener


def _only_metrics(app: Any) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/metrics":
            await app(scope, receive, send)
            return
        head = {"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]}
        await send(head)
        await send({"type": "http.response.body", "body": b"only /metrics is here\n"})

    return answer


class _Server(uvicorn.Server):
    """Does not install signal handlers."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
