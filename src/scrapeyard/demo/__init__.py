"""The practice shop: a small site with categories, pages and prices, so that a first scrape needs no network."""

import socket
from collections.abc import Callable

import uvicorn

from scrapeyard.demo.app import create_app

__all__ = ["create_app", "serve"]


def serve(host: str, port: int, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve the shop until a signal ends the process. Raises OSError if the address is not available.

    Port 0 takes a free one. Calls `on_ready` with the shop's address once the port is bound; requests then queue.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        if on_ready is not None:
            name = f"[{host}]" if family == socket.AF_INET6 else host
            on_ready(f"http://{name}:{listener.getsockname()[1]}")
        config = uvicorn.Config(create_app(), log_level="warning", access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])
