"""All that `scrapeyard up` has, in this process, with nothing that goes on by itself: a step moves it, or nothing does.

The gateway's application is made once and serves every example; a killed gateway goes on as another with an empty
memory but for its catalogue. Dispatcher and workers are made anew each time.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.builtin import ECHO
from scrapeyard.builtin.fetching import Fetch
from scrapeyard.builtin.registry import Builtin
from scrapeyard.builtin.scrapers import echo
from scrapeyard.builtin.services import with_fetch
from scrapeyard.dispatch.leader import Dispatcher
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.site import Sites
from scrapeyard.errors import FetchFailed
from scrapeyard.gateway.app import GatewayServices, application
from scrapeyard.gateway.limits.memory import MemoryLimiter
from scrapeyard.gateway.services import Gateway
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.reading import ReadSources
from scrapeyard.model import Delivery, ExitReason, Scraper, ScraperRef, new_id
from scrapeyard.model.identity import Pepper
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import Finisher
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.settings import Settings
from scrapeyard.store.recorder import Recorder
from scrapeyard.store.sql import SqlStore
from scrapeyard.worker.attempts.environments import EnvironmentPrebuilder, Preparer
from scrapeyard.worker.attempts.parts import AttemptParts
from scrapeyard.worker.batches.batches import Batches, BatchParts
from scrapeyard.worker.loop import Worker
from scrapeyard.worker.runs import Executor
from tests.integration.mortal import Door, Hatch, Life, StoreDoor, first_of, outlived
from tests.page_builtins import BUILTINS
from tests.services.job_yard import Clock
from tests.services.sqlite import migrated

MOODY = "builtin/moody"
RETRY_SECONDS = 2.0
LEASE_SECONDS = 15.0
SCRAPER = Scraper(ref=ScraperRef(id=MOODY, version="1.0.0"), folder=None, input_schema={"type": "object"})


class Runs:
    """How often each item was run, as (tag of the job, item)."""

    def __init__(self) -> None:
        self.recent: dict[tuple[str, str], int] = {}
        """The last run of each since `clear`."""
        self._ever: Counter[tuple[str, str]] = Counter()

    def begin(self, tag: str, key: str) -> int:
        """Which run of it this is, from 1."""
        self._ever[tag, key] += 1
        self.recent[tag, key] = self._ever[tag, key]
        return self._ever[tag, key]

    def clear(self) -> None:
        """What was run from now on."""
        self.recent.clear()

    def forget(self, tag: str, key: str) -> None:
        """It is run again from the start."""
        self._ever.pop((tag, key), None)


class Moody:
    """A built-in scraper whose items end as their input says: `well`, `badly`, or well after so many failures that may
    pass. While its gate is shut they stand before it."""

    def __init__(self, runs: Runs) -> None:
        self.gate = asyncio.Event()
        self.arrived = asyncio.Event()
        self._runs = runs
        self.gate.set()

    async def __call__(self, fetch: Fetch, given: dict[str, Any]) -> dict[str, Any]:
        self.arrived.set()
        await self.gate.wait()
        nth = self._runs.begin(given["tag"], f"k{given['n']}")
        if given["ends"] == "badly":
            raise FetchFailed(ExitReason.FETCH_DECODE, "as its input says")
        if nth <= int(given["fails"]):
            raise FetchFailed(ExitReason.FETCH_CONNECT, "not yet", retry_after=RETRY_SECONDS)
        return await echo(fetch, given)


class Ground:
    """What outlives every example: settings, the catalogue, a migrated database to copy, the gateway and its door."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        worker = {"slots": 1, "lease_seconds": LEASE_SECONDS, "drain_seconds": 0}
        given = Settings.model_validate({"data_dir": folder, "worker": worker, "auth": {"mode": "off"}})
        # Longer than an operator may set: however long a story takes, hearts beat only when it says so.
        seldom = given.worker.model_copy(update={"heartbeat_seconds": 1e6})
        self.settings = given.model_copy(update={"worker": seldom})
        known = {ECHO: BUILTINS[ECHO].scraper, MOODY: SCRAPER}
        self.catalogue = SourcedCatalogue(
            [], folder / "cache", known, LoadTerms(ceiling=self.settings.limits.as_limits()), Upkeep(refresh_seconds=60)
        )
        self.sandbox = ForkSandbox(self.settings.sandbox, self.settings.worker, 1)
        self.environments = Environments(self.settings.environments, folder / "environments")
        self.life = Life()
        self.store, self.queue, self.blobs = StoreDoor(self.life, None), Door(self.life, None), Door(self.life, None)
        self.engine = WreqEngine(self.settings.http, sessions=self.store.sessions)

    def intake(self, store: Any, blobs: Any) -> ItemImporter:
        """Of one process."""
        return ItemImporter(
            store=store, blobs=blobs, engine=self.engine, catalogue=self.catalogue, checker=InputChecker(),
            holder=new_id("intake"), clock=self.clock,
        )  # fmt: skip

    def gateway(self) -> Gateway:
        """On doors that are to lead somewhere before it is called."""
        doors: dict[str, Any] = {"store": self.store, "queue": self.queue, "blobs": self.blobs}
        return Gateway(
            GatewayServices(
                settings=self.settings,
                recorder=Recorder(doors["store"].runs),
                catalogue=self.catalogue,
                intake=self.intake(self.store, self.blobs),
                gateway_id="gw1",
                limiter=MemoryLimiter(),
                pepper=Pepper(b"p" * 32),
                clock=self.clock,
                **doors,
            )
        )


@asynccontextmanager
async def open_ground(folder: Path, clock: Clock) -> AsyncIterator[tuple[Ground, httpx.AsyncClient]]:
    """The ground, and the way to its gateway."""
    ground = Ground(folder, clock)
    async with AsyncExitStack() as stack:
        await ground.catalogue.start()
        stack.push_async_callback(ground.catalogue.stop)
        transport = httpx.ASGITransport(application(ground.gateway()))
        yield (
            ground,
            await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://gateway")),
        )


class Duties:
    """One dispatcher's process."""

    def __init__(self, ground: Ground, store: SqlStore, queue: MemoryQueue, blobs: ObjectBlobs) -> None:
        self.life = Life()
        clock = ground.clock
        doors: tuple[Any, Any, Any] = (StoreDoor(self.life, store), Door(self.life, queue), Door(self.life, blobs))
        self._exporter = Exporter(doors[0], doors[2], clock)
        self._reading = ReadSources(doors[0].jobs, ground.intake(doors[0], doors[2]), clock)
        finisher = Finisher(doors[0], doors[2], self._exporter, clock)
        self._dispatcher = Dispatcher(
            ground.settings, *doors, clock, finish=finisher.finish, more=(self._reading, self._exporter)
        )

    async def round(self) -> bool:
        """Every duty once, and what they began to its end, then feeding. False: another leads, or we died."""
        return bool(await outlived(self.life, self._round()))

    async def _round(self) -> bool:
        leads = await self._dispatcher.round()
        await self._reading.idle()
        await self._dispatcher.idle()
        if leads:
            await self._dispatcher.feeder.feed()
        return leads

    async def bury(self) -> None:
        """Nothing of it goes on."""
        self.life.over.set()
        for part in (self._reading, self._dispatcher, self._exporter):
            with suppress(asyncio.CancelledError):
                await part.stop()


class Hand:
    """One worker's process, which holds a batch at most."""

    def __init__(self, ground: Ground, store: SqlStore, queue: MemoryQueue, blobs: ObjectBlobs, runs: Runs) -> None:
        self.id = new_id("worker")
        self.life = Life()
        self.moody = Moody(runs)
        self.hatch = Hatch(self.life, queue)
        doors: list[Any] = [StoreDoor(self.life, store), self.hatch, Door(self.life, blobs)]
        builtins = {ECHO: BUILTINS[ECHO], MOODY: Builtin(scraper=SCRAPER, run=with_fetch(self.moody))}
        attempts = AttemptParts(
            catalogue=ground.catalogue, preparer=Preparer(ground.environments, Secrets(None)), sandbox=ground.sandbox,
            engine=ground.engine, blobs=doors[2], builtins=builtins, checker=InputChecker(),
            state=store.state,
        )  # fmt: skip
        parts = BatchParts(store=doors[0], attempts=attempts, sites=Sites(()))
        self._batches = Batches(parts, self.id, LEASE_SECONDS)
        self._clock = ground.clock
        self._worker = Worker(
            worker_id=self.id, settings=ground.settings.worker, slots=1, lanes=("default",),
            queue=doors[1], store=doors[0], recorder=Recorder(doors[0].runs),
            catalogue=ground.catalogue, sandbox=ground.sandbox,
            executor=Executor(attempts, doors[1], self.id), batches=self._batches,
            foresight=EnvironmentPrebuilder(ground.catalogue, ground.environments),
        )  # fmt: skip

    @property
    def busy(self) -> bool:
        """Whether it holds a batch."""
        return not self.hatch.asking.is_set()

    async def start(self) -> None:
        """Begin to ask for work."""
        await self._worker.start()
        await self.hatch.asking.wait()

    async def work(self, *, hold: bool) -> Delivery | None:
        """Take one delivery and run it to its end, or with `hold` to where its items begin. None: there was none."""
        (self.moody.gate.clear if hold else self.moody.gate.set)()
        self.moody.arrived.clear()
        delivery = await self.hatch.hand_over()
        if delivery is not None:
            await first_of(self.hatch.asking, self.life.over, *((self.moody.arrived,) if hold else ()))
        return delivery

    async def go_on(self) -> None:
        """Run what it holds to its end."""
        self.moody.gate.set()
        await self.rest()

    async def rest(self) -> None:
        """Until it holds nothing, or died."""
        await first_of(self.hatch.asking, self.life.over)

    async def beat(self) -> None:
        """Prolong what it holds, as a heartbeat does."""
        with suppress(asyncio.CancelledError):
            await self._batches.renew(self._clock() + LEASE_SECONDS)

    async def bury(self) -> None:
        """Nothing of it goes on."""
        self.life.over.set()
        with suppress(asyncio.CancelledError):
            await self._worker.stop()


class JobMachineYard:
    """One example's: a database of its own, and whatever runs on it at the moment."""

    def __init__(self, ground: Ground, client: httpx.AsyncClient, name: str) -> None:
        self.clock = ground.clock
        self.runs = Runs()
        self._ground = ground
        self._client = client
        self._folder = ground.folder / name
        self._store: SqlStore | None = None
        self.duties: Duties
        self.hands: list[Hand]

    async def start(self) -> None:
        """Everything up, on an empty database."""
        self._folder.mkdir()
        migrated(self._folder / "jobs.sqlite")
        self._blobs = ObjectBlobs.in_folder(self._folder / "blobs")
        self._queue = MemoryQueue()
        await self._open_store()
        await self._begin()

    async def stop(self) -> None:
        """Everything down."""
        await self.duties.bury()
        for hand in self.hands:
            await hand.bury()
        assert self._store is not None
        await self._store.stop()
        shutil.rmtree(self._folder)

    def left_by(self) -> set[str]:
        """The jobs that objects in the blob store belong to."""
        place = self._folder / "blobs"
        return {path.relative_to(place).parts[0] for path in place.rglob("*") if path.is_file()}

    async def call(self, method: str, path: str, **given: Any) -> httpx.Response | None:
        """One call of the gateway. None: it died of it, and another is there."""
        life = self._ground.life
        answer = await outlived(life, self._client.request(method, path, **given))
        life.begin_again()
        return answer

    async def depth(self) -> int:
        """Deliveries that wait."""
        return sum((await self._queue.depth()).values())

    def doom_gateway(self, calls: int, *, done: bool) -> None:
        """See Life."""
        self._ground.life.doom(calls, done=done)

    async def replace_duties(self) -> None:
        """Kill the dispatcher; another begins."""
        await self.duties.bury()
        self.duties = Duties(self._ground, self._open, self._queue, self._blobs)

    async def replace_hand(self, place: int) -> None:
        """Kill a worker; another begins."""
        await self.hands[place].bury()
        self.hands[place] = await self._new_hand()

    async def replace_all(self) -> None:
        """Kill the process that has all of it, the queue among it; the file is opened by another."""
        await self.duties.bury()
        for hand in self.hands:
            await hand.bury()
        await self._open.stop()
        self._queue = MemoryQueue()
        await self._open_store()
        await self._begin()

    @property
    def _open(self) -> SqlStore:
        assert self._store is not None
        return self._store

    async def _open_store(self) -> None:
        self._store = SqlStore(f"sqlite:///{self._folder}/jobs.sqlite")
        await self._store.start()

    async def _begin(self) -> None:
        targets = (self._open, self._queue, self._blobs)
        for door, target in zip((self._ground.store, self._ground.queue, self._ground.blobs), targets, strict=True):
            door.lead_to(target)
        self.duties = Duties(self._ground, *targets)
        self.hands = [await self._new_hand() for _ in range(2)]

    async def _new_hand(self) -> Hand:
        hand = Hand(self._ground, self._open, self._queue, self._blobs, self.runs)
        await hand.start()
        return hand
