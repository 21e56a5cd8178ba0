"""A real server as a program, for tests of one's own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

SCRAPEYARD = str(Path(sys.executable).with_name("scrapeyard"))
SCRAPERS = Path(__file__).parent.parent / "scrapers"
PATIENCE = 120.0
"""Seconds. Only a test that fails waits so long."""


class Server:
    """`scrapeyard up` on a free port with a data directory of its own. It can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"

    def start(self) -> httpx.Client:
        """Start it and wait until it listens. The caller closes the client."""
        words = ["up", "--port", "0", "--scrapers", str(SCRAPERS), "--allow-private"]
        given = {"SCRAPEYARD_LOG__FORMAT": "json", "SCRAPEYARD_WORKER__LEASE_SECONDS": "5"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [SCRAPEYARD, *words, "--data-dir", str(self._folder / "data")], stderr=log, env={**os.environ, **given}
            )
        url = until(self._listening, "the server listens")
        return httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False)

    def kill(self) -> None:
        """As a power cut does: SIGKILL."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """As an operator does: SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)

    def _listening(self) -> str:
        assert self._process.poll() is None, self._log.read_text()
        events = (json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{"))
        return next((event["url"] for event in events if event["event"] == "gateway.listening"), "")


def until(found: Any, what: str) -> Any:
    """Call `found` until it returns something."""
    deadline = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.05)
    return value
