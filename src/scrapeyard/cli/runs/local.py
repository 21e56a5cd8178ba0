"""Runs without a server: the worker's own steps, walls, limits and engine, with its files in a temporary folder."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from scrapeyard.authoring.recording import UnrecordedBrowser
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.cli.common.server_address import user_folder
from scrapeyard.cli.runs.heard import Hear, HeardSandbox, heard_builtins
from scrapeyard.cli.runs.local_state import LocalState, user_state
from scrapeyard.engines.browser.port import BrowserEngine
from scrapeyard.engines.captcha.engine import Captchas
from scrapeyard.engines.port import HttpEngine
from scrapeyard.errors import InputInvalid, ScraperInvalid, ScraperNotFound
from scrapeyard.gateway.runs.documents import settle
from scrapeyard.model import Delivery, Environment, Outcome, Run, RunStatus, Scraper, new_id
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.manifest.json_schemas import InputChecker, spell_urls
from scrapeyard.repository.port import Listing, SourceState
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.sandbox.port import Wall
from scrapeyard.settings import Settings
from scrapeyard.wiring.builtins import all_builtins, lazy_ladder
from scrapeyard.wiring.starting import build_type_info
from scrapeyard.worker.attempts.environments import Preparer
from scrapeyard.worker.attempts.parts import AttemptParts
from scrapeyard.worker.runs import Executor

if TYPE_CHECKING:
    from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
    from scrapeyard.wiring.pipeline import Engine


class LocalYard:
    """A worker without a queue. Use it through `open_yard`."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        sandbox: ForkSandbox,
        environments: Environments,
        stack: contextlib.AsyncExitStack,
        *,
        state: LocalState,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._stack = stack
        self._environments = environments
        self._secrets = Secrets(settings.repository.secrets_file)
        self._cache = folder / "cache"
        self._sandbox = sandbox
        self._engine: Engine | None = None
        self.blobs = ObjectBlobs.in_folder(folder / "blobs")
        self._checker = InputChecker()
        self._state = state
        self.captchas = Captchas(settings.captcha)
        stack.push_async_callback(self.captchas.stop)

    def load(self, folder: Path) -> Scraper:
        """The scraper in a folder. Raises ScraperInvalid."""
        from scrapeyard.repository.catalogue.loading import load_folder

        granted = self._settings.sandbox.direct_network
        return load_folder(folder, self._cache, self._settings.limits.as_limits(), direct_network=granted)

    async def find(self, wanted: str) -> Scraper:
        """A scraper by name: built in, or from the settings' sources. Raises as a catalogue's `resolve`."""
        catalogue = catalogue_of(self._settings, self._cache)
        try:
            return await catalogue.obtain(wanted)
        except ScraperNotFound as error:
            if self._settings.repository.scrapers is not None or self._settings.repository.source.type:
                raise
            raise ScraperNotFound(f"{error.message}; name its folder, or give --scrapers") from None
        finally:
            await catalogue.stop()

    def check(self, scraper: Scraper, value: dict[str, Any]) -> dict[str, Any]:
        """The input with its URLs spelled plainly. Raises InputInvalid with each wrong place on a line of its own."""
        value = dict(spell_urls(scraper.input_schema, value))
        faults = self._checker.errors(scraper, value)
        if faults:
            places = "".join(f"\n  {fault['path'] or '/'}: {fault['message']}" for fault in faults)
            raise InputInvalid(f"the input does not fit the schema of {scraper.ref}:{places}", errors=faults)
        return value

    async def install_packages(self, scraper: Scraper) -> Environment | None:
        """As the port says."""
        return await self._environments.ready(scraper)

    async def load_script(self, scraper: Scraper) -> None:
        """Load the script in its sandbox without running it. Raises ScraperInvalid with the script's error."""
        await self._sandbox.check(scraper, await self._environments.ready(scraper))

    async def engine(self) -> "Engine":
        """What fetches for runs here: a worker's engine with all of its stages, started when it is first needed."""
        if self._engine is None:
            from scrapeyard.wiring.local_engine import start_local_engine

            build_type_info()
            pages = self._stack.enter_context(pages_folder(self._folder))
            self._engine = await start_local_engine(self._settings, pages, self._stack)
        return self._engine

    async def run(
        self,
        scraper: Scraper,
        value: dict[str, Any],
        *,
        timeout: float | None = None,
        hear: Hear | None = None,
        engine: HttpEngine | None = None,
    ) -> tuple[Run, Outcome]:
        """One attempt, and the run as a server would show it. `hear` is called with each line that the script logs,
        without secret values; `engine` replaces the yard's own. A run with recorded pages begins without a state."""
        now = time.time()
        delivery = Delivery(
            run_id=new_id("run"),
            scraper=str(scraper.ref),
            input=Raw(msgspec.json.encode(value)),
            max_attempts=1,
            created_at=now,
            queued_at=now,
            timeout_seconds=timeout,
            fetching=scraper.policy.fetching,
        )
        state = self._state if engine is None else LocalState()
        if engine is None:
            engine = await self.engine()
            executor = self._executor(scraper, hear, engine, state, engine.browsers)
        else:
            executor = self._executor(scraper, hear, engine, state, UnrecordedBrowser())
        outcome = await executor.execute(delivery)
        return _run_of(delivery, outcome), outcome

    async def result(self, outcome: Outcome) -> bytes:
        """The result as JSON; `null` when there is none."""
        if outcome.result_key:
            return await self.blobs.get(outcome.result_key)
        return b"null" if outcome.result is None else bytes(outcome.result)

    def walls(self) -> tuple[Wall, ...]:
        """Which walls stand around every run here."""
        return self._sandbox.walls()

    def _hidden(self, scraper: Scraper) -> tuple[str, ...]:
        """Secret values that must not be shown; empty if one is missing, since then nothing runs."""
        try:
            return self._secrets.named_by(scraper)
        except ScraperInvalid:
            return ()

    def _executor(
        self, scraper: Scraper, hear: Hear | None, engine: HttpEngine, state: LocalState, browser: BrowserEngine | None
    ) -> Executor:
        extract = lazy_ladder(ThreadExtractor(), self._settings)
        parts = AttemptParts(
            catalogue=_OneScraper(scraper),
            preparer=Preparer(self._environments, self._secrets),
            sandbox=HeardSandbox(self._sandbox, hear, self._hidden(scraper)) if hear else self._sandbox,
            engine=engine,
            blobs=self.blobs,
            builtins=heard_builtins(hear, extract) if hear else all_builtins(extract=extract),
            checker=self._checker,
            state=state,
            browser=browser,
            browser_contexts=self._settings.browser.contexts_per_run,
            models=getattr(engine, "models", None),
            captchas=None if isinstance(browser, UnrecordedBrowser) else self.captchas,
        )
        return Executor(parts, MemoryQueue(), new_id("worker"))


@contextlib.asynccontextmanager
async def open_yard(
    settings: Settings, *, has_scripts: bool = True, keeps_state: bool = False
) -> AsyncIterator[LocalYard]:
    """Start everything; at the end stop it and remove every file but installed packages. Without `has_scripts` there is
    no sandbox, and only built-in scrapers can run. With `keeps_state` the next command finds what `ctx.state` has.
    Raises SandboxError if walls are missing and sandbox.mode is strict."""
    build_type_info()
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scrapeyard-run-")))
        folder.chmod(0o755)  # noqa: ASYNC240  nothing else runs yet
        sandbox = ForkSandbox(settings.sandbox, settings.worker.model_copy(update={"ahead": 0}), 1)
        state = LocalState(user_state() if keeps_state else None)
        if not has_scripts:
            yield LocalYard(settings, folder, sandbox, Environments(settings.environments, folder), stack, state=state)
            return
        stack.push_async_callback(sandbox.stop)
        await sandbox.start()
        has_own_root = any(wall.name == "root" and wall.up for wall in sandbox.walls())
        environments = await _open_environments(settings, folder, has_own_root, stack)
        yield LocalYard(settings, folder, sandbox, environments, stack, state=state)


async def _open_environments(
    settings: Settings, folder: Path, has_own_root: bool, stack: contextlib.AsyncExitStack
) -> Environments:
    """Environments in the server's folder or the user's cache, so that the next command reuses them. If neither can be
    written, in `folder`, which is removed at the end."""
    data_dir = settings.data_dir.resolve()
    cache = user_cache()
    if data_dir.is_dir() and os.access(data_dir, os.W_OK):
        place = data_dir
    else:
        place = cache if _is_usable(cache, has_own_root) else folder
    environments = Environments(settings.environments, place / "environments")
    stack.push_async_callback(environments.stop)
    await environments.start()
    return environments


def user_cache() -> Path:
    """The user's cache folder for Scrapeyard, which may not exist: `$XDG_CACHE_HOME/scrapeyard`."""
    return user_folder("XDG_CACHE_HOME", ".cache")


@contextlib.contextmanager
def pages_folder(folder: Path) -> Iterator[Path]:
    """Where cached pages stay for the next command: in the user's cache, for one command at a time. While another uses
    it, or if it cannot be written, in `folder`."""
    kept = user_cache() / "pages"
    try:
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (kept / "lock").open("a")
    except OSError:
        yield folder / "pages"
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            kept = folder / "pages"
        yield kept


def _is_usable(cache: Path, has_own_root: bool) -> bool:
    """Whether packages can be kept there and children can read them. Makes the folder. Children that run as another
    user, without a root of their own, must be able to pass every folder above it."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        is_open = has_own_root or os.geteuid() != 0 or all(above.stat().st_mode & 0o001 for above in cache.parents)
    except OSError:
        return False
    return is_open and os.access(cache, os.W_OK | os.X_OK)


def catalogue_of(settings: Settings, cache: Path) -> "SourcedCatalogue":
    """The built-in scrapers and those of the settings' sources; `refresh` polls them once, `stop` releases them.

    `cache` is a folder for copies. If there is a repository to download from, the data directory is used instead, so
    that downloads are shared with a server here.
    """
    from scrapeyard.wiring.catalogue import make_catalogue

    return make_catalogue(settings, None if is_remote(settings) else cache)


def is_remote(settings: Settings) -> bool:
    """Whether scrapers are downloaded from somewhere."""
    repository = settings.repository
    return any(place.type not in ("", "folder") for place in (repository.source, *repository.more))


class _OneScraper:
    """A catalogue that holds only the chosen scraper."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def refresh(self) -> None: ...

    def resolve(self, wanted: str, digest: str = "") -> Scraper:  # noqa: ARG002  the port's signature
        return self._scraper

    async def obtain(self, wanted: str, digest: str = "") -> Scraper:
        return self.resolve(wanted, digest)

    async def verify(self, scraper: Scraper) -> bool:  # noqa: ARG002  it was copied a moment ago
        return True

    def listings(self) -> tuple[Listing, ...]:
        return (Listing(id=self._scraper.ref.id, version=self._scraper.ref.version, scraper=self._scraper),)

    def sources(self) -> tuple[SourceState, ...]:
        return ()

    def channels(self, scraper_id: str) -> Mapping[str, str]:  # noqa: ARG002  the port's signature
        return {}

    def move_channels(self, moved: Mapping[str, Mapping[str, str]]) -> None:
        """There are none."""


def _run_of(delivery: Delivery, outcome: Outcome) -> Run:
    run = Run(
        id=delivery.run_id,
        status=RunStatus.RUNNING,
        scraper=delivery.scraper,
        input=delivery.input,
        max_attempts=delivery.max_attempts,
        timeout_seconds=delivery.timeout_seconds,
        created_at=delivery.created_at,
        queued_at=delivery.queued_at,
        fetching=delivery.fetching,
    )
    return settle(run, outcome)
