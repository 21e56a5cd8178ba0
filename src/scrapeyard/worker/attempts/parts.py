"""What attempts are run with: the services of a worker, and the plan of a run or a batch."""

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.blobs.port import Blobs
from scrapeyard.builtin.registry import Builtin
from scrapeyard.builtin.services import Search, search_nowhere
from scrapeyard.engines.browser.port import BrowserEngine
from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.captcha.port import CaptchaEngine
from scrapeyard.engines.models.port import ModelEngine
from scrapeyard.engines.port import Caller, HttpEngine
from scrapeyard.errors import ScraperNotFound, SourceUnavailable, Unavailable
from scrapeyard.model import Limits, Scraper
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.results.masking import Masking
from scrapeyard.sandbox.port import Sandbox, Series
from scrapeyard.store.ports.operations import StateStore
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.worker.attempts.drift import DriftWatch
from scrapeyard.worker.attempts.environments import Prepared, Preparer
from scrapeyard.worker.attempts.live import LiveViews
from scrapeyard.worker.attempts.retrying import RetryRules
from scrapeyard.worker.attempts.slots import SlotLease
from scrapeyard.worker.attempts.waiting import SiteWait


class AttemptParts(Struct, frozen=True, kw_only=True):
    """The services of a worker that every attempt uses."""

    catalogue: Catalogue
    preparer: Preparer
    sandbox: Sandbox
    engine: HttpEngine
    blobs: Blobs
    builtins: dict[str, Builtin]
    checker: InputChecker
    state: StateStore
    browser: BrowserEngine | None = None
    """None: this worker has no browser."""
    browser_contexts: int = 1
    """Contexts that one run may have open at once."""
    captchas: CaptchaEngine | None = None
    """None: nothing solves captchas."""
    models: ModelEngine | None = None
    """None: nothing asks models."""
    search: Search = search_nowhere
    live: LiveViews | None = None
    """Lets people watch the pages of runs; None: nobody can."""
    meters: Meters | None = None
    """Counts what clients use; None: nobody asks."""
    runs: RunStore | None = None
    """Where the progress of runs is kept while they go on; None: nowhere."""
    drift: DriftWatch | None = None
    """Watches the fields of results; None: nobody does."""
    masking: Masking | None = None
    """Masks personal data as policies say; None: nothing is masked."""

    async def find(self, wanted: str, digest: str, seat: SlotLease | None) -> Scraper:
        """The scraper, from memory. Obtains content that is not known yet, without holding the slot.

        Raises the errors that `steps.refused` explains.
        """
        try:
            return self.catalogue.resolve(wanted, digest)
        except (ScraperNotFound, Unavailable):
            if seat is None:
                return await self.catalogue.obtain(wanted, digest)
        async with seat.released():
            return await self.catalogue.obtain(wanted, digest)

    async def prepare(self, scraper: Scraper, seat: SlotLease | None) -> Prepared:
        """The scraper, with its config and packages. It is verified last, because packages may take minutes. A damaged
        copy is fetched again, once. Raises the errors that `steps.refused` explains."""
        prepared = await self.preparer.prepare(scraper, seat)
        if await self.catalogue.verify(scraper):
            return prepared
        again = await self.catalogue.obtain(str(scraper.ref), scraper.ref.digest)
        if not await self.catalogue.verify(again):
            raise SourceUnavailable(f"the copy of {scraper.ref} on this worker is damaged; its log has more")
        return replace(prepared, scraper=again)


class AttemptPlan(Struct, frozen=True, kw_only=True):
    """What a run, or all items of a batch, are run with."""

    prepared: Prepared
    limits: Limits
    caller: Caller
    """On whose behalf they fetch. An attempt that fetches has a copy with a ledger of its own; others are counted for
    this one."""
    retries: RetryRules
    site_wait: SiteWait
    """Of the run, or of the whole batch: gives up the slot while every fetch waits."""
    series: Series | None = None
    """The child that serves the items of a batch one after another; None: each attempt has a child of its own."""
    warm: bool = False
    """Whether a child that served earlier runs of this version may serve it."""
