"""The ledgers of jobs on Redis 7 or Valkey, shared by all workers.

Every process keeps its own numbers whole, so a lost answer or a restarted server makes no difference once it is told
again. What a process told that has since ended is lost with the server's memory. A job is forgotten KEEP_DAYS after its
last fetch.
"""

import asyncio
from collections import OrderedDict

from redis.exceptions import ResponseError

from scrapeyard.engines.ledger import Spent
from scrapeyard.model import new_id
from scrapeyard.redis.connection import CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.redis.scripts import Script
from scrapeyard.telemetry.events import get_log

log = get_log("budget")
KEEP_DAYS = 30
ANSWER_SECONDS = 1.0
_JOBS = 10_000
_MILLION = 1_000_000
_SHARE = Script.load("scrapeyard.engines.budget", "share.lua")


class RedisJobLedgers:
    """JobLedgers for many processes."""

    def __init__(self, url: str, *, prefix: str = "scrapeyard") -> None:
        """Raises SettingsInvalid when the URL or the prefix cannot be used."""
        self._keys = Keys(prefix)
        self._process = new_id("ledger")
        outage = Outage(
            away=lambda error, _: log.warning("budget.away", error=error), back=lambda _: log.info("budget.back")
        )
        self._link = CommandLink(Dialer(url), outage)
        self._last: OrderedDict[str, tuple[Spent, Spent]] = OrderedDict()
        """By job: what was told, and the sum that came back."""

    async def start(self) -> None:
        """Begin to connect, and wait for it a moment."""
        self._link.start()
        try:
            await self._link.ready(asyncio.get_running_loop().time() + ANSWER_SECONDS)
        except LinkLost:
            return

    async def stop(self) -> None:
        """Close the connection."""
        await self._link.stop()

    async def share(self, job_id: str, mine: Spent) -> Spent:
        """One round trip. While the server is away, what was last heard of the others serves."""
        try:
            whole = _read(await self._ask(self._keys.budget(job_id), _write(mine)))
        except LinkLost:
            told, sums = self._last.get(job_id, (Spent(), Spent()))
            return _since(told, sums, mine)
        self._last[job_id] = (mine, whole)
        self._last.move_to_end(job_id)
        if len(self._last) > _JOBS:
            self._last.popitem(last=False)
        return whole

    async def _ask(self, key: str, numbers: str) -> str:
        words = (self._process, numbers, KEEP_DAYS * 86_400)
        reply = await _SHARE.run(self._link, *words, keys=[key], within=ANSWER_SECONDS)
        if isinstance(reply, ResponseError):
            log.warning("budget.refused", error=str(reply))
            raise LinkLost(str(reply))
        return bytes(reply).decode("ascii")


def _write(spent: Spent) -> str:
    numbers = (spent.requests, spent.bytes, spent.residential_bytes, round(1000 * spent.seconds))
    return " ".join(map(str, (*numbers, spent.ai_tokens, round(_MILLION * spent.ai_cost))))


def _read(text: str) -> Spent:
    requests, size, residential, milliseconds, tokens, cost = map(int, text.split())
    return Spent(
        requests=requests,
        bytes=size,
        residential_bytes=residential,
        seconds=milliseconds / 1000,
        ai_tokens=tokens,
        ai_cost=cost / _MILLION,
    )


def _since(told: Spent, sums: Spent, mine: Spent) -> Spent:
    """The sums with what was used up here since they came."""
    return Spent(
        requests=sums.requests + mine.requests - told.requests,
        bytes=sums.bytes + mine.bytes - told.bytes,
        residential_bytes=sums.residential_bytes + mine.residential_bytes - told.residential_bytes,
        seconds=sums.seconds + mine.seconds - told.seconds,
        ai_tokens=sums.ai_tokens + mine.ai_tokens - told.ai_tokens,
        ai_cost=sums.ai_cost + mine.ai_cost - told.ai_cost,
    )
