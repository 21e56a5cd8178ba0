"""Versions of a scraper: publish, resolve, download once, roll back. Runs by itself, on a local web server."""

import asyncio
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scrapeyard.model import Limits
from scrapeyard.repository.port import find
from scrapeyard.repository.publish.publish import pack_scraper, publish
from scrapeyard.repository.publish.targets import open_target
from scrapeyard.settings import Settings, SourceSettings, load
from scrapeyard.telemetry.events import configure
from scrapeyard.wiring.catalogue import make_catalogue

SCRIPT = 'def run(ctx) -> dict:\n    return {{"version": "{version}"}}\n'
downloads: list[str] = []


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder and notes which archives are downloaded."""

    def do_GET(self) -> None:
        if self.path.endswith(".tar.gz"):
            downloads.append(self.path)
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


async def publish_version(folder: Path, version: str, index: Path) -> None:
    """What `scrapeyard publish FOLDER --to INDEX` does."""
    place = folder / version
    place.mkdir(parents=True)
    (place / "scraper.toml").write_text(f'id = "demo/answer"\nversion = "{version}"\n')
    (place / "scraper.py").write_text(SCRIPT.format(version=version))
    with tempfile.TemporaryDirectory() as work:
        parcel = pack_scraper(place, Path(work), Limits())
        await publish(parcel, open_target(str(index), SourceSettings(), 10))


async def main(folder: Path, settings: Settings, index: Path) -> None:
    """One worker's catalogue, before and after a release, then a second one with the same cache."""
    await publish_version(folder, "1.0.0", index)
    catalogue = make_catalogue(settings, folder / "cache")
    await catalogue.start()
    print("newest:", catalogue.resolve("demo/answer").ref.version)

    await publish_version(folder, "1.1.0", index)
    await publish_version(folder, "2.0.0", index)
    await catalogue.refresh()  # a worker does this by itself, or when a hook calls
    for wanted in ("demo/answer", "demo/answer@^1", "demo/answer@1.0.0"):
        print(wanted, "->", (await find(catalogue, wanted)).ref.version)

    catalogue.move_channels(
        {"demo/answer": {"stable": "1.1.0"}}
    )  # `scrapeyard scrapers move` does it for all processes
    print("rolled back to:", catalogue.resolve("demo/answer").ref.version)
    await catalogue.stop()

    before = len(downloads)
    again = make_catalogue(settings, folder / "cache")
    await again.start()
    print("after a restart:", again.resolve("demo/answer").ref.version, "downloads:", len(downloads) - before)
    await again.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        index = Path(name) / "index"
        index.mkdir()
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(index)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = {"type": "http", "url": f"http://127.0.0.1:{server.server_port}/", "name": "team"}
        settings = load({"repository": {"source": source, "installed": False}, "log": {"level": "error"}})
        configure(settings.log)
        asyncio.run(main(Path(name), settings, index))
        server.shutdown()
        server.server_close()
