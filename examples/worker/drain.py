"""Stop a server while a run goes on: the worker takes nothing more, and the run ends before the process does.

python examples/worker/drain.py [SHOP]
"""

import asyncio
import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from scrapeyard.settings import load
from scrapeyard.telemetry.events import configure
from scrapeyard.wiring.platform import ALL_ROLES, Platform

SHOP = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8800"


def call(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """A JSON call with the standard library."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        document: dict[str, Any] = json.load(answer)
        return document


async def serve(folder: Path) -> Platform:
    """Every role in this process, on a free port."""
    settings = load(
        {"data_dir": folder, "gateway": {"port": 0}, "http": {"allow_private": True}, "log": {"level": "error"}}
    )
    configure(settings.log)
    platform = Platform(settings, ALL_ROLES)
    await platform.start()
    return platform


async def main(folder: Path) -> None:
    """Begin a run, stop the server, start it again and look the run up."""
    platform = await serve(folder)
    url = platform.gateway.url
    run = await asyncio.to_thread(call, f"{url}/api/scrape", {"url": f"{SHOP}/slow?seconds=2", "wait": 0})
    while run["status"] == "queued":
        run = await asyncio.to_thread(call, f"{url}/api/scrape/{run['id']}")
    print("before:", run["status"])
    await platform.stop()  # `scrapeyard up` does this on SIGTERM

    platform = await serve(folder)
    try:
        run = await asyncio.to_thread(call, f"{platform.gateway.url}/api/scrape/{run['id']}?wait=60")
        print("after:", run["status"], "at attempt", run["attempt"])
    finally:
        await platform.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
