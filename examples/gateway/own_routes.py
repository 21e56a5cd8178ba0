"""The API inside an application of one's own: `/busy` is ours, `/api/…` is Scrapeyard's. `PROGRAM [PORT]`."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from scrapeyard.gateway.app import create_app
from scrapeyard.settings import load
from scrapeyard.telemetry.events import configure
from scrapeyard.wiring.platform import Platform
from scrapeyard.wiring.starting import LOCAL_ROLES

settings = load({"http": {"allow_private": True}})
platform = Platform(settings, LOCAL_ROLES)  # worker and dispatcher; the gateway is the application below


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start the platform, then the API around it, and stop them in the other order."""
    await platform.start()
    try:
        api = create_app(platform.gateway_services())
        app.mount("/", api)
        async with api.router.lifespan_context(api):
            yield
    finally:
        await platform.stop()


app = FastAPI(lifespan=lifespan)


@app.get("/busy")
async def busy() -> dict[str, Any]:
    """How many runs wait and how many run, straight from the store."""
    counts = await platform.gateway_services().store.runs.counts()
    return {status.value: count for status, count in counts.items()}


if __name__ == "__main__":
    configure(settings.log)
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000, ws="websockets-sansio")
