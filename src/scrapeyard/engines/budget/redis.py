"""The ledgers of jobs on Redis 7 or Valkey, shared by all workers.

Every process keeps its own numbers whole, so a lost answer or a restarted server makes no difference once it is told
again. What a process told that has since ended is lost with the server's memory. A job is forgotten KEEP_DAYS after its
last fetch.
"""

import asyncio
from collections import OrderedDict
from hashlib import sha1
from importlib.resources import files

from redis.exceptions import NoScriptError, ResponseError

from scrapeyard.engines.ledger import Spent
from scrapeyard.model import new_id
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost, Outage
from scrapeyard.redis.keys import Keys
from scrapeyard.telemetry.events import get_log

log = get_log("budget")
KEEP_DAYS = 30
ANSWER_SECONDS = 1.0
_JOBS = 10_000
_SCRIPT = files("scrapeyard.engines.budget").joinpath("share.lua").read_text("utf-8")
_DIGEST = sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class _Away(Outage):
    """In the budget's own words, once for each outage."""

    def __init__(self) -> None:
        super().__init__(log)
        self._gone = False

    def down(self, link: object, error: BaseException, retry_seconds: float) -> None:  # noqa: ARG002  as Outage's
        """The link was lost, or could not be made."""
        if not self._gone:
            log.warning("budget.away", error=str(error) or type(error).__name__)
        self._gone = True

    def up(self, link: object) -> None:  # noqa: ARG002  as Outage's
        """The link was made."""
        if self._gone:
            log.info("budget.back")
        self._gone = False


class RedisJobLedgers:
    """JobLedgers for many processes."""

    def __init__(self, url: str, *, prefix: str = "scrapeyard") -> None:
        """Raises SettingsInvalid when the URL or the prefix cannot be used."""
        Keys(prefix)
        self._prefix = prefix
        self._process = new_id("ledger")
        self._link = CommandLink(Dialer(url), _Away())
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
            whole = _read(await self._ask(f"{self._prefix}:budget:{job_id}", _write(mine)))
        except LinkLost:
            told, sums = self._last.get(job_id, (Spent(), Spent()))
            return _since(told, sums, mine)
        self._last[job_id] = (mine, whole)
        self._last.move_to_end(job_id)
        if len(self._last) > _JOBS:
            self._last.popitem(last=False)
        return whole

    async def _ask(self, key: str, numbers: str) -> str:
        rest = (1, key, self._process, numbers, KEEP_DAYS * 86_400)
        reply = await self._one("EVALSHA", _DIGEST, *rest)
        if isinstance(reply, NoScriptError):
            reply = await self._one("EVAL", _SCRIPT, *rest)
        if isinstance(reply, ResponseError):
            log.warning("budget.refused", error=str(reply))
            raise LinkLost(str(reply))
        return bytes(reply).decode("ascii")

    async def _one(self, *command: str | int) -> bytes | ResponseError:
        words: Command = command
        (reply,) = await self._link.ask(words, within=ANSWER_SECONDS)
        return reply  # type: ignore[no-any-return]  # the link answers with what came


def _write(spent: Spent) -> str:
    return f"{spent.requests} {spent.bytes} {spent.residential_bytes} {round(1000 * spent.seconds)}"


def _read(text: str) -> Spent:
    requests, size, residential, milliseconds = map(int, text.split())
    return Spent(requests=requests, bytes=size, residential_bytes=residential, seconds=milliseconds / 1000)


def _since(told: Spent, sums: Spent, mine: Spent) -> Spent:
    """The sums with what was used up here since they came."""
    return Spent(
        requests=sums.requests + mine.requests - told.requests,
        bytes=sums.bytes + mine.bytes - told.bytes,
        residential_bytes=sums.residential_bytes + mine.residential_bytes - told.residential_bytes,
        seconds=sums.seconds + mine.seconds - told.seconds,
    )
