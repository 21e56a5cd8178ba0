"""Settings become services: the composition root of a server."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scrapeyard import __version__
from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.leader import Dispatcher, MaintenanceTask
from scrapeyard.dispatch.upkeep.cluster_reading import ClusterReadings, LoadHistory
from scrapeyard.engines.captcha.engine import Captchas
from scrapeyard.engines.http.site import Sites
from scrapeyard.errors import SettingsInvalid
from scrapeyard.inputs.follower import Following
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.reading import ReadSources
from scrapeyard.model import new_id
from scrapeyard.model.job import ItemOutcome
from scrapeyard.model.lanes import ScraperLanes
from scrapeyard.queues.metered import MeteredQueue
from scrapeyard.queues.port import Queue
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.repository.catalogue.channels import ChannelOverrides
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import Finisher
from scrapeyard.results.running_manifests import RunningManifests
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import StateStore
from scrapeyard.store.ports.runs import Ending
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.telemetry.otlp import make_collector
from scrapeyard.telemetry.traces import POST_SECONDS, TraceExporter
from scrapeyard.wiring.backends import end_old_leases, make_blobs, make_limiter, make_masking, make_queue, make_store
from scrapeyard.wiring.builtins import start_builtins
from scrapeyard.wiring.catalogue import make_catalogue
from scrapeyard.wiring.data_folder import make_pepper, open_for_children
from scrapeyard.wiring.engine import WebParts, start_engine
from scrapeyard.wiring.files_process import start_early_files
from scrapeyard.wiring.pipeline import Engine
from scrapeyard.wiring.preparer import make_intake, start_preparer
from scrapeyard.wiring.starting import ALL_ROLES, Role, load, only_one, patiently
from scrapeyard.worker.attempts.environments import EnvironmentPrebuilder
from scrapeyard.worker.attempts.live import LiveViews
from scrapeyard.worker.attempts.parts import AttemptParts
from scrapeyard.worker.batches.batches import Batches, BatchParts
from scrapeyard.worker.loop import Worker
from scrapeyard.worker.runs import Executor

if TYPE_CHECKING:
    from scrapeyard.gateway.jobs.service import JobService
    from scrapeyard.gateway.server import GatewayServer
    from scrapeyard.gateway.services import GatewayServices
    from scrapeyard.telemetry.listener import MetricsListener

log = get_log("wiring")


@dataclass(frozen=True, kw_only=True)
class _Base:
    """What every role of a process needs."""

    queue: Queue
    store: DurableStore
    recorder: Recorder
    blobs: Blobs
    catalogue: SourcedCatalogue
    web: WebParts
    worker_id: str
    """Empty if there is no worker in this process."""
    engine: Engine
    intake: ItemImporter


class Platform:
    """The chosen roles in one process. `cache` holds copies of scrapers, `environments` the packages that they require
    and `pages` cached pages; if None, the data directory does. `hear` gets the outcome of each attempt of an item
    before it is recorded, `ended` is called when a batch was. With `jobs_only` jobs leave only their items, and there
    are no schedules, webhooks and sinks. With `temporary` nobody reads the data directory later. `state` holds the
    state of scrapers; if None, the store does. Without `has_scripts` only built-ins can run."""

    def __init__(
        self,
        settings: Settings,
        roles: tuple[Role, ...] = ALL_ROLES,
        *,
        cache: Path | None = None,
        environments: Path | None = None,
        pages: Path | None = None,
        hear: Callable[[ItemOutcome], None] = lambda _: None,
        ended: Callable[[], None] = lambda: None,
        jobs_only: bool = False,
        temporary: bool = False,
        state: StateStore | None = None,
        has_scripts: bool = True,
    ) -> None:
        self.settings = settings
        self.roles = roles
        self.gateway: GatewayServer | None = None
        self.worker: Worker | None = None
        self._dispatcher: Dispatcher | None = None
        self._cache = cache
        self._environments = environments
        self._pages = pages
        self._hear = hear
        self._ended = ended
        self._jobs_only = jobs_only
        self._temporary = temporary
        self._state = state
        self._has_scripts = has_scripts
        self.metrics = Metrics()
        self._traces: TraceExporter | None = None
        self.metrics_listener: MetricsListener | None = None
        self.done = asyncio.Event()
        """Set when this process should end: its worker was asked to, and has nothing left to do."""
        self._base: _Base | None = None
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Start everything. Raises SettingsInvalid or StoreUnavailable if that fails; nothing then stays running."""
        try:
            await self._start()
        except OSError as error:
            await self.stop()
            place = error.filename or self.settings.data_dir
            raise SettingsInvalid(f"cannot start: {place}: {error.strerror or error}") from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everything, last started first. May be called twice."""
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    def job_desk(self) -> "JobService":
        """The job service that a gateway uses, for callers in the same process; only after `start`."""
        from scrapeyard.gateway.jobs.service import JobService  # noqa: PLC0415 - a worker alone needs no web framework

        base = self._base
        if base is None:
            raise RuntimeError("the platform was not started")
        return JobService(
            settings=self.settings,
            store=base.store,
            queue=base.queue,
            blobs=base.blobs,
            catalogue=base.catalogue,
            intake=base.intake,
            clock=time.time,
        )

    def gateway_services(self) -> "GatewayServices":
        """What `create_app` takes, for callers that serve the API in an application of their own; only after `start`.
        Leave the gateway out of the roles then."""
        from scrapeyard.gateway.services import GatewayServices  # noqa: PLC0415 - a worker alone needs no web framework

        base = self._base
        if base is None:
            raise RuntimeError("the platform was not started")
        return GatewayServices(
            settings=self.settings,
            queue=base.queue,
            store=base.store,
            recorder=base.recorder,
            blobs=base.blobs,
            catalogue=base.catalogue,
            intake=base.intake,
            gateway_id=new_id("gateway"),
            limiter=make_limiter(self.settings),
            pepper=make_pepper(self.settings),
            pages=base.web.pages,
            gate=base.web.gate,
            more_of_sites=(base.web.ways_of,),
            metrics=self.metrics,
            traces=self._traces,
        )

    async def _start(self) -> None:
        settings = self.settings
        load(self.roles, settings, jobs_only=self._jobs_only)
        if not settings.has_broker:
            self._stack.enter_context(only_one(settings, self.roles))
        self._start_traces()
        store = make_store(settings, temporary=self._temporary, metrics=self.metrics)
        await self._up(lambda: patiently(store.start), store.stop)
        await end_old_leases(settings, store)
        queue = MeteredQueue(make_queue(settings), self.metrics)
        await self._up(queue.start, queue.stop)
        recorder = Recorder(store.runs, on_written=self._written)
        await self._up(recorder.start, recorder.stop)
        self.metrics.watch("recorder_pending", lambda: recorder.pending)
        blobs = make_blobs(settings, store.sealer)
        catalogue = make_catalogue(settings, self._cache)
        await self._up(catalogue.start, catalogue.stop)
        if "gateway" not in self.roles:  # which follows moved channels by itself
            moved = ChannelOverrides(store.channels, queue, catalogue, "", time.time)
            await self._up(moved.start, moved.stop)
        web = WebParts(settings, self._pages, store.sealer)
        await web.start(self._up)
        worker_id = new_id("worker") if "worker" in self.roles else ""
        engine = await start_engine(settings, web, store, queue, worker_id=worker_id, up=self._up, metrics=self.metrics)
        base = self._base = _Base(
            queue=queue,
            store=store,
            recorder=recorder,
            blobs=blobs,
            catalogue=catalogue,
            web=web,
            worker_id=worker_id,
            engine=engine,
            intake=make_intake(settings, store, blobs, engine, catalogue),
        )
        if "gateway" in self.roles:
            await self._secure_gateway()
        if "worker" in self.roles:
            await self._start_worker(base)
        if "dispatcher" in self.roles:
            await self._start_dispatcher(base)
        if self.gateway is not None:
            await self._up(self.gateway.start, self.gateway.stop)
        elif settings.telemetry.metrics_port is not None:
            await self._start_listener()

    async def _start_listener(self) -> None:
        from scrapeyard.telemetry.listener import MetricsListener  # noqa: PLC0415 - most processes need none

        self.metrics_listener = MetricsListener(self.settings.telemetry, self.metrics)
        await self._up(self.metrics_listener.start, self.metrics_listener.stop)

    async def _start_dispatcher(self, base: "_Base") -> None:
        settings, store, blobs = self.settings, base.store, base.blobs
        exporter = Exporter(store, blobs, time.time, make_masking(self.settings, base.store.sealer))
        await self._up(exporter.start, exporter.stop)
        manifests = RunningManifests(store, blobs, time.time)
        finisher = Finisher(store, blobs, exporter, time.time, manifests)
        reading = ReadSources(store.jobs, base.intake, time.time)
        await self._up(reading.start, reading.stop)
        following = Following(
            store=store,
            blobs=blobs,
            engine=base.engine,
            catalogue=base.catalogue,
            checker=InputChecker(),
            sites=Sites(settings.sites.whole_hosts),
            clock=time.time,
        )
        await self._up(following.start, following.stop)
        more: list[MaintenanceTask] = [reading, following]
        early = await start_early_files(settings, store, finisher, self._up)
        if not self._jobs_only:
            readings = ClusterReadings(settings, store, base.queue, base.web.gate, time.time)
            self.metrics.watch_cluster(readings.last)
            history = LoadHistory(store.load, readings.last, time.time)
            more += [exporter, manifests, early, readings, history, *await self._start_duties(base)]
        finish = None if self._jobs_only else early.finish
        dispatcher = Dispatcher(settings, store, base.queue, blobs, finish=finish, more=more, metrics=self.metrics)
        await self._up(dispatcher.start, dispatcher.stop)
        self._dispatcher = dispatcher

    async def _start_duties(self, base: "_Base") -> Sequence[MaintenanceTask]:
        from scrapeyard.wiring import duties  # noqa: PLC0415 - as above

        schedules = await duties.start_schedules(
            self.settings,
            base.store,
            base.queue,
            recorder=base.recorder,
            blobs=base.blobs,
            catalogue=base.catalogue,
            intake=base.intake,
            up=self._up,
        )
        webhooks = await duties.start_webhooks(self.settings, base.store, self._up)
        sinks = await duties.start_sinks(self.settings, base.store, base.blobs, self.metrics, self._up)
        events = await duties.start_events(self.settings, base.store, self.metrics, self._up)
        alerts = duties.make_alerts(self.settings, base.store, base.queue)
        return schedules, webhooks, sinks, *(() if events is None else (events,)), alerts

    async def _start_worker(self, base: "_Base") -> None:
        settings = self.settings
        slots = settings.worker.slots_here
        sandbox = ForkSandbox(settings.sandbox, settings.worker, slots)
        if self._has_scripts:
            await self._up(sandbox.start, sandbox.stop)
            if os.geteuid() == 0 and not any(wall.name == "root" and wall.up for wall in sandbox.walls()):
                open_for_children(settings.data_dir.resolve())
        home = self._environments or settings.data_dir.resolve() / "environments"
        environments = Environments(settings.environments, home)
        await self._up(environments.start, environments.stop)
        live = LiveViews(base.queue)
        attempts = await self._start_attempts(base, sandbox, environments, live)
        sites = Sites(settings.sites.whole_hosts)
        parts = BatchParts(
            store=base.store,
            attempts=attempts,
            sites=sites,
            hear=self._item_ended,
            ended=self._batch_ended,
            traces=self._traces,
            trace_share=settings.telemetry.item_trace_share,
        )
        self.worker = Worker(
            worker_id=base.worker_id,
            live=live,
            settings=settings.worker,
            slots=slots,
            lanes=ScraperLanes(settings.lanes.patterns).taken(settings.worker.lanes, settings.worker.takes),
            queue=base.queue,
            store=base.store,
            recorder=base.recorder,
            catalogue=base.catalogue,
            sandbox=sandbox,
            executor=Executor(attempts, base.queue, base.worker_id),
            batches=Batches(parts, base.worker_id, settings.worker.lease_seconds),
            foresight=EnvironmentPrebuilder(base.catalogue, environments),
            engines=base.engine.names,
            traces=self._traces,
            metrics=self.metrics,
            exit_process=self.done.set if self.roles == ("worker",) else None,
        )
        if (browsers := base.engine.browsers) is not None:
            self.metrics.watch("browser_contexts", lambda: browsers.open_now)
        await self._up(self.worker.start, self.worker.stop)

    async def _start_attempts(
        self, base: "_Base", sandbox: ForkSandbox, environments: Environments, live: LiveViews
    ) -> AttemptParts:
        settings, up = self.settings, self._up
        captchas = Captchas(settings.captcha)
        await up(captchas.start, captchas.stop)
        builtins, drift = await start_builtins(settings, base.store, up)
        return AttemptParts(
            catalogue=base.catalogue,
            preparer=await start_preparer(settings, base.store, environments, up),
            sandbox=sandbox,
            engine=base.engine,
            blobs=base.blobs,
            builtins=builtins,
            checker=InputChecker(),
            state=self._state or base.store.state,
            browser=base.engine.browsers,
            browser_contexts=settings.browser.contexts_per_run,
            captchas=captchas,
            models=base.engine.models,
            search=base.engine.search,
            live=live,
            meters=base.engine.meters,
            runs=base.store.runs,
            drift=drift,
            masking=make_masking(self.settings, base.store.sealer),
        )

    def _item_ended(self, outcome: ItemOutcome) -> None:
        self.metrics.item_ended(outcome)
        self._hear(outcome)

    def _batch_ended(self) -> None:
        self._ended()
        if self._jobs_only and self._dispatcher is not None:
            self._dispatcher.wake()

    def _start_traces(self) -> None:
        settings = self.settings.telemetry
        if not settings.otlp_endpoint or self._jobs_only:
            return
        service = "scrapeyard" if len(self.roles) > 1 else f"scrapeyard-{self.roles[0]}"
        self._traces = TraceExporter(make_collector(settings, service, __version__, POST_SECONDS))
        self._traces.start()
        self._stack.push_async_callback(self._traces.stop)

    def _written(self, endings: Sequence[Ending], began: float, ended: float) -> None:
        if self._traces is not None:
            of_runs = ((each.run.traceparent, each.run.id, each.outcome.attempt) for each in endings)
            self._traces.recorded(of_runs, began, ended)

    async def _secure_gateway(self) -> None:
        """Before anything takes work: a gateway that may not start must not lead or run for a moment."""
        from scrapeyard.gateway.server import GatewayServer  # noqa: PLC0415 - a worker alone needs no web framework

        self.gateway = GatewayServer(self.gateway_services())
        await self.gateway.secure()

    async def _up(self, start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> None:
        self._stack.push_async_callback(stop)
        await start()
