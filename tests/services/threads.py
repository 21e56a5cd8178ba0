"""A web server that answers each client in a thread, for sites that tests write."""

import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ThreadedServer(ThreadingHTTPServer):
    """Listens on a free loopback port. Prints nothing when a client hangs up, as a killed command or a closed page
    does."""

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tells every other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
