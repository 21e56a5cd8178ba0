"""What is remembered, on Redis 7 or Valkey, for all workers.

Reading is from a copy that is at most `FRESH_SECONDS` old, and noting is gathered for `NOTE_SECONDS`, so that an
ordinary fetch makes no round trip. While the server is away the copy serves and learns for this process alone.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from redis.exceptions import ResponseError

from scrapeyard.background import Background
from scrapeyard.engines.escalation.memory import FADES, MAX_CLEARANCES, MAX_WAYS, MemoryWays
from scrapeyard.engines.escalation.port import MOST_COUNTED, Remembered, Tried
from scrapeyard.engines.solver.port import Clearance
from scrapeyard.errors import SealBroken
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.redis.scripts import Script
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.telemetry.events import get_log

FRESH_SECONDS = 2.0
NOTE_SECONDS = 0.5
ANSWER_SECONDS = 2.0
MAX_PENDING = 10_000
MAX_COPIES = 20_000

log = get_log("ways")
_clearances = msgspec.json.Decoder(Clearance)
_NOTE, _KEEP, _DROP, _RELEASE = (
    Script.load("scrapeyard.engines.escalation", f"lua/{name}.lua") for name in ("note", "keep", "drop", "release")
)


class RedisWays:
    """A WayMemory. One for each process."""

    def __init__(
        self,
        url: str,
        remember_seconds: float,
        *,
        sealer: Sealer | None = None,
        prefix: str = "scrapeyard",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`sealer` seals clearances, which hold cookies; if None, they are kept in clear. Raises SettingsInvalid when
        the URL or the prefix cannot be used."""
        self._keys = Keys(prefix)
        outage = Outage(
            away=lambda error, _: log.warning("ways.away", error=error), back=lambda _: log.info("ways.back")
        )
        self._link = CommandLink(Dialer(url), outage)
        self._sealer = sealer or Sealer()
        self._remember = remember_seconds
        self._half_life = remember_seconds / FADES
        self._clock = clock
        self._token = secrets.token_hex(8)
        self._copies: OrderedDict[str, float] = OrderedDict()
        """When each site was last read, in the loop's time."""
        self._local = MemoryWays(remember_seconds, clock=clock, max_sites=MAX_COPIES)
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._pending: dict[tuple[str, str], tuple[int, int, float]] = {}
        self._work = asyncio.Event()
        self._background = Background()

    async def start(self) -> None:
        """Begins to connect and waits for it, but no longer than two seconds."""
        if not self._background.start(self._keep_writing, name="way-memory"):
            return
        self._link.start()
        with suppress(LinkLost):
            await self._link.ready(asyncio.get_running_loop().time() + ANSWER_SECONDS)

    async def stop(self) -> None:
        """Writes what is left."""
        if await self._background.stop():
            await self._write()
            await self._link.stop()

    async def recall(self, site: str, *, fresh: bool = False) -> Remembered:
        """One round trip where the copy is old."""
        if fresh or self._is_old(site):
            reading = self._reading.get(site)
            if reading is None:
                reading = self._reading[site] = asyncio.create_task(self._read(site))
                reading.add_done_callback(lambda _: self._reading.pop(site, None))
            # Shielded: others wait for the same answer.
            await asyncio.shield(reading)
        return await self._local.recall(site)

    async def note(self, site: str, way: str, *, ok: bool, cost: float) -> None:
        """Gathered, and seen here at once."""
        if not self._local.learn(site, way, ok=ok, cost=cost):
            return
        good, bad, _ = self._pending.get((site, way), (0, 0, cost))
        if len(self._pending) < MAX_PENDING or (site, way) in self._pending:
            self._pending[site, way] = (good + ok, bad + (not ok), cost)
            self._work.set()

    async def keep(self, site: str, clearance: Clearance) -> None:
        """One round trip."""
        await self._local.keep(site, clearance)
        milliseconds = int((clearance.expires_at - self._clock()) * 1000)
        if milliseconds <= 0:
            return
        sealed = self._sealer.seal(msgspec.json.encode(clearance), _place(site))
        value = clearance.id.encode() + b" " + sealed
        with suppress(LinkLost):
            words = (_field(clearance), value, milliseconds, MAX_CLEARANCES)
            await self._run(_KEEP, self._keys.clearances(site), *words)

    async def drop(self, site: str, clearance: Clearance) -> None:
        """One round trip."""
        await self._local.drop(site, clearance)
        with suppress(LinkLost):
            await self._run(_DROP, self._keys.clearances(site), _field(clearance), clearance.id)

    async def claim(self, site: str, exit_name: str, seconds: float) -> bool:
        """By a key that ends by itself."""
        command: Command = ("SET", self._keys.solving(site, exit_name), self._token, "NX", "PX", int(seconds * 1000))
        try:
            (reply,) = await self._link.ask(command, within=ANSWER_SECONDS)
        except LinkLost:
            return True
        return reply is not None

    async def release(self, site: str, exit_name: str) -> None:
        """Only our own."""
        with suppress(LinkLost):
            await self._run(_RELEASE, self._keys.solving(site, exit_name), self._token)

    async def forget(self, site: str) -> None:
        """Other workers know it for two seconds more."""
        await self._local.forget(site)
        for key in [key for key in self._pending if key[0] == site]:
            del self._pending[key]
        with suppress(LinkLost):
            commands: list[Command] = [("DEL", self._keys.ways(site)), ("DEL", self._keys.clearances(site))]
            await self._link.ask(*commands, within=ANSWER_SECONDS)

    def _is_old(self, site: str) -> bool:
        read_at = self._copies.get(site)
        return read_at is None or read_at + FRESH_SECONDS <= asyncio.get_running_loop().time()

    def _was_read(self, site: str) -> None:
        self._copies[site] = asyncio.get_running_loop().time()
        self._copies.move_to_end(site)
        if len(self._copies) > MAX_COPIES:
            self._copies.popitem(last=False)

    async def _read(self, site: str) -> None:
        self._was_read(site)
        if any(key[0] == site for key in self._pending):
            await self._write()  # or what was just learnt would be overwritten here by what was known before
        commands: list[Command] = [("HGETALL", self._keys.ways(site)), ("HGETALL", self._keys.clearances(site))]
        try:
            ways, clearances = await self._link.ask(*commands, within=ANSWER_SECONDS)
        except LinkLost:
            return
        tried = (_tried(name, value) for name, value in _pairs(ways))
        held = (_held(site, value, self._sealer) for _, value in _pairs(clearances))
        known = Remembered(tried=tuple(filter(None, tried)), clearances=tuple(filter(None, held)))
        self._local.adopt(site, known)

    async def _keep_writing(self) -> None:
        while True:
            await self._work.wait()
            await asyncio.sleep(NOTE_SECONDS)
            self._work.clear()
            await self._write()

    async def _write(self) -> None:
        pending, self._pending = self._pending, {}
        by_site: dict[str, list[str | int]] = {}
        for (site, way), (good, bad, cost) in pending.items():
            by_site.setdefault(site, []).extend((way, good, bad, f"{cost:g}"))
        for site, words in by_site.items():
            limits = (f"{self._clock():.3f}", f"{self._half_life:.3f}", int(self._remember * 1000))
            try:
                await self._run(_NOTE, self._keys.ways(site), *limits, f"{MOST_COUNTED:g}", MAX_WAYS, *words)
            except LinkLost:
                return  # what is lost is learnt again

    async def _run(self, script: Script, key: str, *words: str | bytes | int) -> None:
        reply = await script.run(self._link, *words, keys=[key], within=ANSWER_SECONDS)
        if isinstance(reply, ResponseError):
            log.warning("ways.refused", error=str(reply)[:200])


def _field(clearance: Clearance) -> str:
    return f"{clearance.host} {clearance.exit}"


def _pairs(reply: Any) -> list[tuple[bytes, bytes]]:
    return list(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else []


def _tried(name: bytes, value: bytes) -> Tried | None:
    try:
        good, bad, cost, used = (float(part) for part in value.split())
    except ValueError:
        return None
    return Tried(way=name.decode("utf-8", "replace"), cost=cost, successes=good, failures=bad, used_at=used)


def _place(site: str) -> str:
    return f"clearances/{site}"


def _held(site: str, value: bytes, sealer: Sealer) -> Clearance | None:
    try:
        return _clearances.decode(sealer.open(value.partition(b" ")[2], _place(site)))
    except (msgspec.MsgspecError, SealBroken) as error:
        log.warning("ways.unreadable", site=site, error=str(error)[:200])
        return None
