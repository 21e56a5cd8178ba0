"""Everything the routes of jobs need, made once."""

from collections.abc import Callable

from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.errors import ScrapeyardError
from scrapeyard.gateway.jobs.control import JobControl
from scrapeyard.gateway.jobs.create import Created, JobCreation
from scrapeyard.gateway.jobs.documents import (
    CreatedJobDocument,
    JobDocument,
    WholeJobDocument,
    created_document,
    job_document,
    whole_job,
)
from scrapeyard.gateway.jobs.policies import JobManners, manners_of
from scrapeyard.gateway.jobs.rates import JobRates
from scrapeyard.gateway.jobs.streams import JobNotifier, JobStreams
from scrapeyard.gateway.runs.admission import Lanes
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model.job import Job
from scrapeyard.queues.port import Queue
from scrapeyard.repository.port import Catalogue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.traces import TraceExporter


class JobService:
    """Jobs, as the gateway serves them."""

    def __init__(
        self,
        *,
        settings: Settings,
        store: Store,
        queue: Queue,
        blobs: Blobs,
        catalogue: Catalogue,
        intake: ItemImporter,
        clock: Callable[[], float],
        traces: TraceExporter | None = None,
    ) -> None:
        self._sites = FixedPolicies(settings.sites)
        self._catalogue = catalogue
        self.store = store
        self.blobs = blobs
        self.clock = clock
        self.news = JobNotifier(queue, store.events, clock)
        self.rates = JobRates(clock)
        self.creation = JobCreation(
            store=store,
            blobs=blobs,
            catalogue=catalogue,
            intake=intake,
            lanes=Lanes(store.workers, settings),
            news=self.news,
            receivers=WebhookValidator(settings.webhooks, store.sealer),
            sinks=settings.sinks,
            default_scraper=settings.repository.default,
            clock=clock,
            traces=traces,
            trace_share=settings.telemetry.trace_share if settings.telemetry.otlp_endpoint else 0.0,
        )
        self.control = JobControl(
            store=store,
            blobs=blobs,
            catalogue=catalogue,
            intake=intake,
            creation=self.creation,
            news=self.news,
            clock=clock,
        )
        self.streams = JobStreams(store, self.rates, clock, settings.gateway.max_streams)

    async def whole(self, job: Job) -> WholeJobDocument:
        """A job, with how its sinks stand."""
        deliveries = await self.store.sinks.of_jobs([job.id]) if job.sinks else ()
        return whole_job(job, self.rates.pace(job), self._manners(job), deliveries)

    def document(self, job: Job) -> JobDocument:
        """A job as it is shown."""
        return job_document(job, self.rates.pace(job), self._manners(job))

    def created(self, made: Created) -> CreatedJobDocument:
        """A job that was made just now, with what became of its list."""
        return created_document(made.job, self.rates.pace(made.job), self._manners(made.job), made.summary)

    def _manners(self, job: Job) -> JobManners | None:
        try:
            return manners_of(job.policy, self._catalogue.resolve(job.pinned, job.digest), self._sites)
        except ScrapeyardError:
            return None

    def close(self) -> None:
        """End all streams. May be called twice."""
        self.streams.close()
