"""Publish with one queue, take with another: the second finds what the first left in the file."""

import asyncio
import tempfile
from pathlib import Path

from msgspec import Raw
from sqlite_queue import SqliteQueue

from scrapeyard.model import Delivery, Priority


def delivery(run_id: str, priority: Priority) -> Delivery:
    """One run for a worker."""
    return Delivery(
        run_id=run_id,
        scraper="shop/product",
        input=Raw(b'{"url": "http://127.0.0.1:8800/product/1"}'),
        lane="default",
        priority=priority,
        created_at=1.0,
        queued_at=1.0,
    )


async def main(file: Path) -> None:
    """What is urgent leaves first, also after a restart."""
    await SqliteQueue(file).publish([delivery("run_bulk", Priority.LOW), delivery("run_urgent", Priority.HIGH)])
    later = SqliteQueue(file)
    print("waiting:", sum((await later.depth()).values()))
    taken = await later.take(["default"], 10, tuple(Priority), timeout=0)
    print("taken:", [each.run_id for each in taken])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name) / "queue.db"))
