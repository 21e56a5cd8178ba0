"""What authentication adds to a call: the middleware alone, with a key and without. `python -m benchmarks.auth`."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from scrapeyard.gateway.app import ROUTERS
from scrapeyard.gateway.auth.authentication import Authentication
from scrapeyard.gateway.auth.credentials import Authenticator
from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.gateway.auth.permissions import RouteAccess
from scrapeyard.model.identity import Pepper, Role
from scrapeyard.settings import LogSettings
from scrapeyard.store.sql import SqlStore
from scrapeyard.telemetry.events import configure

CALLS = 20_000
ROUNDS = 5


async def _app(*_: Any) -> Any:
    return None


async def _micros(middleware: Authentication, scope: dict[str, Any]) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        await middleware(dict(scope), _app, _app)
    return (time.perf_counter() - began) / CALLS * 1e6


async def measure(folder: Path) -> None:
    """Print microseconds for each call, the best of some rounds."""
    configure(LogSettings(level="error"))
    store = SqlStore(f"sqlite:///{folder / 'keys.db'}")
    await store.start()
    try:
        ring = KeyRing(store.api_keys, Pepper(b"p" * 32))
        _, secret = await ring.create(KeyCall(name="bench", role=Role.CLIENT).draft(time.time()))
        access = RouteAccess(route for router in ROUTERS for route in router.routes)
        headers = [(b"host", b"x"), (b"authorization", f"Bearer {secret}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/api/scrape", "query_string": b"", "headers": headers}
        for mode in ("off", "on"):
            middleware = Authentication(_app, Authenticator([ring], mode), access, ring.fault)
            best = min([await _micros(middleware, scope) for _ in range(ROUNDS)])
            print(f"authentication {mode}: {best:.1f} µs a call")
    finally:
        await store.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(Path(place)))
