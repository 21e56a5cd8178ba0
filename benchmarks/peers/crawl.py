"""What every crawler of the comparison is told and prints: pages to fetch from one URL, and how long they took."""

import argparse
import json
import sys
import time

from msgspec import Struct


class Errand(Struct, frozen=True, kw_only=True):
    """One program's work."""

    url: str
    pages: int
    concurrency: int
    extract: bool
    """Whether the fields of every page are read."""


def errand() -> Errand:
    """From the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--extract", action="store_true")
    given = parser.parse_args()
    return Errand(url=given.url, pages=given.pages, concurrency=given.concurrency, extract=given.extract)


class Clock:
    """From the first page asked for to the last one done."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self._cpu = time.process_time()

    def cpu_seconds(self) -> float:
        """Processor time of this process since then."""
        return time.process_time() - self._cpu

    def tell(self, pages: int, **more: float) -> None:
        """Print the figures as the last line of stdout; the seconds until now unless given."""
        taken = {"seconds": time.perf_counter() - self.began, "cpu_seconds": self.cpu_seconds()}
        sys.stdout.write(json.dumps({"pages": pages, **taken, **more}) + "\n")
        sys.stdout.flush()


def numbered(url: str, number: int) -> str:
    """Every page has a URL of its own, so that nobody's filter or cache leaves one out."""
    return f"{url}?n={number}"
