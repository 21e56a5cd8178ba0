"""From a call to runs: resolve the version, check inputs, choose the lane, check that the queue has room."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.builtin import default_for
from scrapeyard.errors import BadRequest, InputInvalid, Overloaded, Refusal, ScraperInvalid
from scrapeyard.gateway.auth.ownership import check_call
from scrapeyard.gateway.runs.calls import ScrapeRequest
from scrapeyard.gateway.runs.policies import Policy, fetching_of
from scrapeyard.model import Priority, Run, RunStatus, Scraper, new_id
from scrapeyard.model.lanes import DEFAULT_LANE, ScraperLanes
from scrapeyard.queues.port import Queue
from scrapeyard.repository.manifest.json_schemas import InputChecker, SchemaRefused, spell_urls
from scrapeyard.repository.port import Catalogue, find
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import WorkerStore
from scrapeyard.store.ports.runs import RunStore

REST_BYTES = 65_536
"""Room for the rest of the delivery."""
MAX_PATH = 200


class InputChecks:
    """Checks inputs and packs them for the queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._checker = InputChecker()

    def check(self, scraper: Scraper, given: Mapping[str, Any], place: str = "/input") -> Raw:
        """The input as JSON. Raises InputInvalid listing each wrong place under `place`, or ScraperInvalid."""
        given = spell_urls(scraper.input_schema, given)
        try:
            faults = self._checker.errors(scraper, given)
        except SchemaRefused as error:
            raise ScraperInvalid(f"{scraper.ref}: its input schema is wrong: {error}") from None
        if faults:
            raise _invalid(faults, place)
        return _packed(given, self._queue.capabilities.max_message_bytes - REST_BYTES)


def _invalid(faults: list[dict[str, str]], place: str) -> InputInvalid:
    errors = [{"path": (place + fault["path"])[:MAX_PATH], "message": fault["message"]} for fault in faults]
    detail = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
    return InputInvalid(detail, errors=errors)


def _packed(given: Mapping[str, Any], most: int) -> Raw:
    try:
        packed = msgspec.json.encode(given)
    except (OverflowError, RecursionError, ValueError) as error:
        raise InputInvalid(f"the input cannot be sent on: {error}") from None
    if len(packed) > most:
        raise InputInvalid(f"the input has {len(packed)} bytes; at most {most} can be delivered")
    return Raw(packed)


LOOK_SECONDS = 1.0


class Lanes:
    """The lane of new work. A lane that a call or a manifest names must be one that a known worker serves: otherwise
    runs would wait for ever, and lane names be unbounded. `lanes.patterns` choose among the rest."""

    def __init__(self, workers: WorkerStore, settings: Settings) -> None:
        self._workers = workers
        self._remember = 10 * settings.worker.lease_seconds
        self._scrapers = ScraperLanes(settings.lanes.patterns)
        self._known: frozenset[str] = frozenset()
        self._looked_at = float("-inf")

    async def choose(self, asked: str | None, scraper: Scraper) -> str:
        """The lane a call asks for, or the scraper's own, or that of the pattern it matches. Raises BadRequest if no
        worker has served a named one lately."""
        lane = asked or scraper.lane
        if lane == DEFAULT_LANE:
            return lane if asked else self._scrapers.lane_of(scraper.ref.id)
        if lane in self._known:
            return lane
        await self._poll()
        if lane not in self._known:
            raise BadRequest(f"no worker takes lane {lane}; GET /api/workers shows which lanes are taken")
        return lane

    async def _poll(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        workers = await self._workers.alive(time.time() - self._remember)
        self._known = frozenset(lane for worker in workers for lane in worker.lanes)


SAMPLE_SECONDS = 0.5


class Backlog:
    """Tracks how many deliveries wait in each lane from publishing, and asks the queue only when it seems full.

    Several gateways may together exceed the limit by what they publish within one sample.
    """

    def __init__(self, queue: Queue, limit: int) -> None:
        self._queue = queue
        self._limit = limit
        self._known: dict[str, int] = {}
        self._sampled_at = float("-inf")

    async def admit(self, lane: str, count: int) -> None:
        """Raise Overloaded if `count` more do not fit, QueueUnavailable if the queue does not answer."""
        if self._fits(lane, count):
            return
        await self._sample()
        if not self._fits(lane, count):
            waiting = self._known.get(lane, 0)
            raise Overloaded(f"{waiting} runs wait in lane {lane}; the limit is {self._limit}", retry_after=2)

    def waiting(self, lane: str) -> int:
        """How many are known to wait in the lane."""
        return self._known.get(lane, 0)

    def note(self, lane: str, waiting: int) -> None:
        """Store the queue length that publishing to this lane returned."""
        self._known[lane] = waiting

    def defer(self, lane: str, count: int) -> None:
        """Count runs that wait in the store for the queue to come back: they need a limit as well."""
        self._known[lane] = self._known.get(lane, 0) + count

    def _fits(self, lane: str, count: int) -> bool:
        return self._known.get(lane, 0) + count <= self._limit

    async def _sample(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._sampled_at < SAMPLE_SECONDS:
            return
        self._sampled_at = now
        try:
            depth = await self._queue.depth()
        except BaseException:
            self._sampled_at = float("-inf")  # nothing was sampled: the next call asks again
            raise
        totals: Counter[str] = Counter()
        for (lane, _priority), waiting in depth.items():
            totals[lane] += waiting
        self._known = dict(totals)


class QueueShare:
    """Keeps one client from filling a lane: its waiting runs take at most a share of the backlog.

    Counts the rows of waiting runs, and only while a lane holds more than that share. Several gateways may together
    exceed it by what they accept within one sample.
    """

    def __init__(self, runs: RunStore, limit: int, share: float) -> None:
        self._runs = runs
        self._most = int(limit * share)
        self._known: dict[tuple[str, str], int] = {}
        self._sampled_at = float("-inf")

    async def admit(self, lane: str, client: str, count: int, waiting: int) -> None:
        """Raise Refusal if `count` more of this client are too many in a lane where `waiting` wait."""
        if not client or not self._most or waiting + count <= self._most:
            return
        await self._sample()
        own = self._known.get((lane, client), 0)
        if own + count > self._most:
            words = f"{own} runs of this client wait in lane {lane}; the limit is {self._most}"
            raise Refusal("queue_share", 429, words, retry_after=2)
        self._known[lane, client] = own + count

    async def _sample(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._sampled_at >= SAMPLE_SECONDS:
            self._sampled_at = now
            self._known = await self._runs.waiting()


class RunBuilder:
    """Builds runs from calls. A refused call leaves nothing behind."""

    def __init__(self, catalogue: Catalogue, lanes: Lanes, default_scraper: str, queue: Queue) -> None:
        self._catalogue = catalogue
        self._lanes = lanes
        self._default = default_scraper
        self._inputs = InputChecks(queue)

    async def build(self, asked: ScrapeRequest, reply_to: str, now: float) -> tuple[Run, ...]:
        """One queued run for each input, in order, not yet written or published anywhere. `reply_to` is the gateway
        that waits; empty if none does.

        Raises BadRequest, Refusal, ScraperNotFound, ScraperInvalid or SourceUnavailable.
        """
        check_call(asked.identity, self._wanted(asked))
        scraper = await find(self._catalogue, self._wanted(asked))
        inputs = self._check(asked, scraper)
        lane = await self._lanes.choose(asked.call.lane, scraper)
        first = replace(self._run(asked, scraper, inputs[0], lane, now), reply_to=reply_to)
        return (first, *(replace(first, id=new_id("run"), input=given) for given in inputs[1:]))

    def _wanted(self, asked: ScrapeRequest) -> str:
        return asked.call.scraper or default_for(asked.call.input, self._default)

    def _check(self, asked: ScrapeRequest, scraper: Scraper) -> tuple[Raw, ...]:
        call = asked.call
        if call.urls is not None:
            return tuple(
                self._inputs.check(scraper, {**call.input, "url": url}, f"/urls/{index}")
                for index, url in enumerate(call.urls)
            )
        given = call.input if call.url is None else {**call.input, "url": call.url}
        return (self._inputs.check(scraper, given),)

    def _run(self, asked: ScrapeRequest, scraper: Scraper, given: Raw, lane: str, now: float) -> Run:
        """The version is resolved here, once; workers run exactly that. Of a built-in, each worker runs its own."""
        call, defaults = asked.call, scraper.policy
        wanted = call.priority or (Priority(defaults.priority) if defaults.priority else None)
        timeout = call.policy.timeout_seconds
        return Run(
            id=new_id("run"),
            status=RunStatus.QUEUED,
            scraper=self._wanted(asked) if scraper.is_builtin else str(scraper.ref),
            resolved=None if scraper.is_builtin else scraper.ref,
            input=given,
            lane=lane,
            priority=wanted or (Priority.HIGH if asked.wait else Priority.NORMAL),
            max_attempts=1 + _retries(call.policy, scraper),
            timeout_seconds=defaults.timeout_seconds if timeout is None else timeout,
            created_at=now,
            queued_at=now,
            traceparent=asked.span or asked.traceparent,
            owner=asked.identity.client,
            fetching=fetching_of(call.policy).over(defaults.fetching),
        )


def _retries(policy: Policy, scraper: Scraper) -> int:
    if "retries" in policy.model_fields_set or scraper.policy.retries is None:
        return policy.retries
    return scraper.policy.retries
