"""A queue of one's own: deliveries in a SQLite file, so that what waits outlives the process.

It does what `scrapeyard.queues.port.Queue` promises, for one process, and passes the same contract tests as ours.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.listeners import Listener, Listeners
from scrapeyard.queues.messages import check_lanes, check_size, decode_delivery, encode_delivery
from scrapeyard.queues.port import Capabilities
from scrapeyard.telemetry.events import get_log

SCHEMA = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS deliveries (
    place INTEGER PRIMARY KEY, lane TEXT NOT NULL, priority TEXT NOT NULL, queued_at REAL NOT NULL, body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS lines ON deliveries (lane, priority, place);
"""


class _Taker(Struct, eq=False):
    """Someone who waits in `take`."""

    lanes: Sequence[str]
    count: int
    priorities: Sequence[Priority]
    given: asyncio.Future[list[Delivery]]


class SqliteQueue:
    """A row for each delivery that waits. `place` orders them; one that is given back goes before all others."""

    capabilities = Capabilities(is_shared=False)

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.executescript(SCHEMA)
        self._takers: dict[_Taker, None] = {}
        self._listeners = Listeners()
        self._stopped = False

    async def start(self) -> None:
        """The file is open already."""
        self._stopped = False

    async def stop(self) -> None:
        """End every listener and every waiting `take`. What waits stays in the file."""
        self._stopped = True
        self._listeners.close()
        for taker in self._takers:
            if not taker.given.done():
                taker.given.set_result([])

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """All of them or none: a lane that cannot be used raises before the first is written."""
        self._insert([(None, each, encode_delivery(each)) for each in deliveries])
        self._serve()
        count = "SELECT count(*) FROM deliveries WHERE lane = ?"
        lanes = {each.lane for each in deliveries}
        return max((self._database.execute(count, (lane,)).fetchone()[0] for lane in lanes), default=0)

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """Returns as soon as there is anything; those who wait are served in the order they came."""
        check_lanes(lanes)
        taker = _Taker(lanes, count, priorities, asyncio.get_running_loop().create_future())
        found = self._pick(taker)
        if found or timeout <= 0 or self._stopped:
            return found
        self._takers[taker] = None
        try:
            await asyncio.wait((taker.given,), timeout=timeout)
        except asyncio.CancelledError:
            del self._takers[taker]
            if taker.given.done():
                self._give_back(taker.given.result())
            raise
        del self._takers[taker]
        return taker.given.result() if taker.given.done() else []

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """Exact."""
        rows = self._database.execute("SELECT lane, priority, count(*) FROM deliveries GROUP BY lane, priority")
        return {(lane, Priority(priority)): count for lane, priority, count in rows}

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """Of the delivery that is next in this line."""
        check_lanes((lane,))
        query = "SELECT queued_at FROM deliveries WHERE lane = ? AND priority = ? ORDER BY place LIMIT 1"
        return next((at for (at,) in self._database.execute(query, (lane, priority.value))), None)

    async def send(self, channel: str, message: bytes) -> None:
        """To the listeners of this process."""
        self._listeners.give(channel, check_size(message))

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """As the memory queue does: a listener that falls behind loses the oldest messages."""
        listener = Listener(channel, get_log("queue"))
        self._listeners.add(channel, listener)
        if self._stopped:
            listener.close()
        try:
            yield listener
        finally:
            self._listeners.remove(channel, listener)
            listener.close()

    async def ping(self) -> float:
        """No broker to reach."""
        return 0.0

    def _serve(self) -> None:
        for taker in self._takers:
            if not taker.given.done() and (found := self._pick(taker)):
                taker.given.set_result(found)

    def _pick(self, taker: _Taker) -> list[Delivery]:
        found: list[Delivery] = []
        lanes = ",".join("?" * len(taker.lanes))
        query = f"SELECT place, body FROM deliveries WHERE lane IN ({lanes}) AND priority = ? ORDER BY place LIMIT ?"  # noqa: S608
        for priority in taker.priorities:
            wanted = taker.count - len(found)
            rows = self._database.execute(query, (*taker.lanes, priority.value, wanted)).fetchall()
            self._database.executemany("DELETE FROM deliveries WHERE place = ?", [(place,) for place, _ in rows])
            found += [decode_delivery(body) for _, body in rows]
        return found

    def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        (first,) = self._database.execute("SELECT min(place) FROM deliveries").fetchone()
        start = min(first or 0, 0) - len(deliveries)
        self._insert([(start + n, each, encode_delivery(each)) for n, each in enumerate(deliveries)])
        self._serve()

    def _insert(self, rows: Sequence[tuple[int | None, Delivery, bytes]]) -> None:
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany(
                "INSERT INTO deliveries VALUES (?, ?, ?, ?, ?)",
                [(place, each.lane, each.priority.value, each.queued_at, body) for place, each, body in rows],
            )
