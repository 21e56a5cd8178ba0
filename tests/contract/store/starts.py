"""Starts the store of each URL that is given in two processes at once: `python -m tests.contract.store.starts URL…`.

They are forks of one process that has loaded what they need, so nothing but the start itself sets them apart.
"""

import asyncio
import gc
import os
import sys

import aiosqlite  # noqa: F401 - loaded before the forks
import asyncpg  # noqa: F401

import scrapeyard.store.database.postgres
import scrapeyard.store.database.sqlite
import scrapeyard.store.dynamo.store
import scrapeyard.store.sql  # noqa: F401
from scrapeyard.wiring.backends import store_at
from tests.contract.unhurried import unhurried


def _fork(url: str, gate: tuple[int, int]) -> int:
    """A process that starts a store once the gate is closed, and writes the URL and what the store counts."""
    pid = os.fork()
    if pid == 0:
        held, opened = gate
        os.close(opened)
        os.read(held, 1)
        asyncio.run(_start(url))
        gc.collect()  # what was not closed is told
        os._exit(0)
    return pid


async def _start(url: str) -> None:
    store = store_at(url)
    await store.start()
    os.write(1, f"{url} {await store.runs.counts()}\n".encode())  # at once, so that two lines do not mix
    await store.stop()


def main() -> None:
    """Fails if any of them fails."""
    gc.freeze()
    failed = False
    for url in sys.argv[1:]:
        gate = os.pipe()
        both = [_fork(url, gate), _fork(url, gate)]
        for end in gate:
            os.close(end)
        for pid in both:
            failed |= os.waitpid(pid, 0)[1] != 0
    sys.exit(failed)


if __name__ == "__main__":
    with unhurried("scrapeyard.store."):
        main()
