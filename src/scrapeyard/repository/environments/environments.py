"""The environments of this machine, as the worker sees them: requested, building, ready."""

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scrapeyard.errors import ScraperInvalid, SettingsInvalid, SourceUnavailable
from scrapeyard.model import Environment, EnvironmentState, EnvironmentStatus, Scraper
from scrapeyard.repository.environments.build import Builder
from scrapeyard.repository.environments.spec import EnvironmentSpec, spec_of
from scrapeyard.repository.environments.store import Built, EnvironmentStore
from scrapeyard.repository.environments.uv import BuildFailed, BuildStopped, BuildUnavailable
from scrapeyard.settings import EnvironmentSettings
from scrapeyard.telemetry.events import get_log

log = get_log("environments")
_REMEMBERED = 10_000
_USED_SECONDS = 15.0
_NONE = EnvironmentState(status=EnvironmentStatus.NONE)
_WAITING = EnvironmentState(status=EnvironmentStatus.WAITING)
_MARGIN_SECONDS = 30.0
_PASSING_SECONDS = 5.0
"""Seconds before a build is tried again that failed because the index was away. Runs that ask meanwhile share the
answer."""


class _Order:
    """One requested environment and the state of its build."""

    def __init__(self, wish: EnvironmentSpec, scraper: str) -> None:
        self.wish = wish
        self.scraper = scraper
        """The first scraper that requested it, for logs."""
        self.state = _WAITING
        self.environment: Environment | None = None
        self.failed_at = 0.0
        self.is_passing = False
        """Whether the last failure was not the scraper's: an index that is away, a full disk."""
        self.used_at = 0.0
        self.done: asyncio.Future[None] | None = None
        """Set while it waits or is built."""


class Environments:
    """Builds what scrapers require, a few at a time, in threads of its own. Call all methods from the event loop."""

    def __init__(self, settings: EnvironmentSettings, folder: Path) -> None:
        self._settings = settings
        self._shelf = EnvironmentStore(folder)
        self._stopping = threading.Event()
        self._builder = Builder(settings, self._shelf, self._stopping)
        self._threads: ThreadPoolExecutor | None = None
        self._wishes: OrderedDict[str, EnvironmentSpec | ScraperInvalid | None] = OrderedDict()
        """By the digest of the scraper's files; the spec for a digest never changes."""
        self._orders: OrderedDict[str, _Order] = OrderedDict()
        self._urgent: OrderedDict[str, _Order] = OrderedDict()
        self._calm: OrderedDict[str, _Order] = OrderedDict()
        self._building: set[asyncio.Task[None]] = set()

    @property
    def patience_seconds(self) -> float:
        """How long a run may wait for its environment."""
        return self._settings.build_seconds + _MARGIN_SECONDS

    async def start(self) -> None:
        """Make the folders. Raises SettingsInvalid if that fails. May be called twice."""
        if self._threads is not None:
            return
        self._stopping.clear()
        try:
            await asyncio.to_thread(self._shelf.open)
        except OSError as error:
            raise SettingsInvalid(f"data_dir: cannot keep environments in {self._shelf.folder}: {error}") from None
        self._threads = ThreadPoolExecutor(self._settings.builds, "environments")

    async def stop(self) -> None:
        """Cancel running builds and wait until their processes are gone. May be called twice."""
        self._stopping.set()
        await asyncio.gather(*self._building, return_exceptions=True)
        for order in (*self._urgent.values(), *self._calm.values()):
            _settle(order)
        self._urgent.clear()
        self._calm.clear()
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()

    def state(self, scraper: Scraper) -> EnvironmentState:
        """The state, from memory; only the first call reads the scraper's lock file, if it has one."""
        try:
            wish = self._wish(scraper)
        except ScraperInvalid as error:
            return EnvironmentState(status=EnvironmentStatus.FAILED, problem=error.message)
        if wish is None:
            return _NONE
        order = self._orders.get(wish.key)
        return _WAITING if order is None else order.state

    def requires(self, scraper: Scraper) -> bool:
        """Whether it needs packages beyond the base, or has requirements that cannot be met."""
        return self.state(scraper).status is not EnvironmentStatus.NONE

    def want(self, scraper: Scraper) -> None:
        """Build it in the background, unless a build failed before through a fault of the scraper. Never raises."""
        with contextlib.suppress(ScraperInvalid):
            wish = self._wish(scraper)
            if wish is not None and self._threads is not None and self._is_due(wish.key):
                self._put(self._order(wish, scraper), self._calm)

    def at_hand(self, scraper: Scraper) -> Environment | None:
        """The environment if it is ready now; None if it is not, or if the scraper requires nothing."""
        with contextlib.suppress(ScraperInvalid):
            wish = self._wish(scraper)
            order = self._orders.get(wish.key) if wish is not None else None
            return self._whole(order) if order is not None else None
        return None

    async def ready(self, scraper: Scraper) -> Environment | None:
        """The environment, built if necessary; None if the scraper requires nothing and runs in the base.

        Raises ScraperInvalid with the resolver's message if it cannot be built, SourceUnavailable if it cannot be built
        now through no fault of the scraper. Cancelling does not stop the build.
        """
        wish = self._wish(scraper)
        if wish is None:
            return None
        order = self._order(wish, scraper)
        environment = self._whole(order)
        if environment is not None:
            return environment
        if not self._is_fresh_failure(order):
            await self._built(order)
        if order.environment is None:
            raise _failure(order)
        return order.environment

    async def _built(self, order: _Order) -> None:
        if self._threads is None:
            return
        if order.done is None:
            self._put(order, self._urgent)
        elif order.wish.key in self._calm:
            self._urgent[order.wish.key] = self._calm.pop(order.wish.key)
        if order.done is not None:
            await asyncio.shield(order.done)

    def _wish(self, scraper: Scraper) -> EnvironmentSpec | None:
        digest = scraper.ref.digest
        if digest not in self._wishes:
            try:
                self._wishes[digest] = spec_of(scraper)
            except ScraperInvalid as error:
                self._wishes[digest] = error
            _forget_oldest(self._wishes)
        found = self._wishes[digest]
        if isinstance(found, ScraperInvalid):
            raise ScraperInvalid(found.message)
        return found

    def _order(self, wish: EnvironmentSpec, scraper: Scraper) -> _Order:
        order = self._orders.get(wish.key)
        if order is None:
            order = self._orders[wish.key] = _Order(wish, str(scraper.ref))
            self._forget_orders()
        return order

    def _forget_orders(self) -> None:
        for key in list(self._orders)[: max(0, len(self._orders) - _REMEMBERED)]:
            if self._orders[key].done is None:
                del self._orders[key]

    def _whole(self, order: _Order) -> Environment | None:
        """The built environment; None if it is not built, or if another process has evicted it."""
        environment = order.environment
        if environment is None:
            return None
        if not self._shelf.is_there(environment):
            order.environment, order.state = None, _WAITING
            return None
        now = time.monotonic()
        if now - order.used_at > _USED_SECONDS:
            order.used_at = now
            self._shelf.used(environment)
        return environment

    def _is_fresh_failure(self, order: _Order) -> bool:
        failed = order.state.status is EnvironmentStatus.FAILED
        seconds = self._settings.retry_seconds
        if order.is_passing:
            seconds = min(seconds, _PASSING_SECONDS)
        return failed and time.monotonic() - order.failed_at < seconds

    def _is_due(self, key: str) -> bool:
        order = self._orders.get(key)
        if order is None:
            return True
        failed = order.state.status is EnvironmentStatus.FAILED
        return failed and order.is_passing and order.done is None and not self._is_fresh_failure(order)

    def _put(self, order: _Order, line: OrderedDict[str, _Order]) -> None:
        order.state = _WAITING
        order.done = asyncio.get_running_loop().create_future()
        line[order.wish.key] = order
        self._pump()

    def _pump(self) -> None:
        """Start builds up to the limit; those that runs wait for go first."""
        while len(self._building) < self._settings.builds and (line := self._urgent or self._calm):
            if self._stopping.is_set():
                return
            _, order = line.popitem(last=False)
            task = asyncio.get_running_loop().create_task(self._build(order))
            self._building.add(task)
            task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._building.discard(task)
        self._pump()

    async def _build(self, order: _Order) -> None:
        order.state = EnvironmentState(status=EnvironmentStatus.BUILDING)
        began = time.monotonic()
        try:
            built = await self._in_thread(order.wish)
        except BuildStopped:
            order.state = _WAITING
        except BuildUnavailable as error:
            self._note_failure(order, str(error), is_passing=True)
        except BuildFailed as error:
            self._note_failure(order, str(error))
        except OSError as error:
            words = f"the machine that builds could not: {error.strerror or type(error).__name__}"
            self._note_failure(order, words, is_passing=True)
        except Exception as error:  # an internal error must not leave runs waiting forever
            log.error("environments.broken", scraper=order.scraper, error=repr(error), exc_info=error)
            words = f"a fault in the worker: {type(error).__name__}; its log has the rest"
            self._note_failure(order, words, is_passing=True)
        else:
            self._note_success(order, built, time.monotonic() - began)
        finally:
            _settle(order)

    async def _in_thread(self, wish: EnvironmentSpec) -> Built:
        loop = asyncio.get_running_loop()
        built, removed = await loop.run_in_executor(self._threads, self._make, wish)
        for order in self._orders.values():
            if order.environment is not None and order.environment.key in removed:
                order.environment, order.state = None, _WAITING
        return built

    def _make(self, wish: EnvironmentSpec) -> tuple[Built, list[str]]:
        built = self._builder.make(wish)
        removed = self._builder.make_room()
        if removed:
            log.info("environments.removed", count=len(removed))
        return built, removed

    def _note_success(self, order: _Order, built: Built, seconds: float) -> None:
        order.environment = built.environment
        order.used_at = time.monotonic()
        order.state = EnvironmentState(
            status=EnvironmentStatus.READY,
            key=built.environment.key,
            size_bytes=built.extent.size_bytes,
            built_at=built.built_at,
        )
        log.info("environments.ready", scraper=order.scraper, key=built.environment.key[:12], seconds=round(seconds, 1))

    def _note_failure(self, order: _Order, words: str, *, is_passing: bool = False) -> None:
        order.failed_at = time.monotonic()
        order.is_passing = is_passing
        order.state = EnvironmentState(status=EnvironmentStatus.FAILED, problem=words)
        log.warning("environments.failed", scraper=order.scraper, problem=words)


def _failure(order: _Order) -> ScraperInvalid | SourceUnavailable:
    if order.state.status is not EnvironmentStatus.FAILED:
        return SourceUnavailable("this worker stopped before the requirements were installed")
    if order.is_passing:
        words = f"the requirements cannot be installed now: {order.state.problem}"
        return SourceUnavailable(words, retry_after=_PASSING_SECONDS)
    return ScraperInvalid(f"the requirements cannot be installed: {order.state.problem}")


def _settle(order: _Order) -> None:
    done, order.done = order.done, None
    if done is not None and not done.done():
        done.set_result(None)


def _forget_oldest(known: "OrderedDict[str, EnvironmentSpec | ScraperInvalid | None]") -> None:
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
