"""The browser of an attempt: opened in its turn, closed with it whatever happens, and what it leaves is kept."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.authoring.recording import UnrecordedBrowser
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.builtin.registry import Builtin
from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser.operations import Click, Evaluate, Goto, NewTab, Operation
from scrapeyard.engines.browser.port import ContextEnd, ContextOptions, Done, KeptFile, LogMessage
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import Delivery, ExitReason, Limits, Outcome, RunError, Scraper, ScraperRef
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.sandbox.port import ChildServices, Verdict, Work
from scrapeyard.worker.attempts.browsing import MAX_MESSAGES
from scrapeyard.worker.attempts.environments import Prepared
from scrapeyard.worker.attempts.parts import AttemptParts
from scrapeyard.worker.attempts.slots import ParkedRuns, SlotLease, Slots, share_out
from scrapeyard.worker.runs import Executor
from tests.contract.sandboxes import eventually

SCRAPER = Scraper(
    ref=ScraperRef(id="test/script", version="1.0.0"), folder=Path("/nowhere"), limits=Limits(artifact_mb=1)
)
PREPARED = Prepared(scraper=SCRAPER, config={}, hidden=("s3cret",), environment=None, environment_ms=0.0)
OPTIONS = ContextOptions()
Script = Callable[[ChildServices], Awaitable[Any]]


class Context:
    """A context that does what the test says."""

    def __init__(self, browser: "Browser") -> None:
        self.end: ContextEnd | None = None
        self._browser = browser

    def messages(self) -> list[LogMessage]:
        told, self._browser.told = self._browser.told, []
        return told

    async def perform(self, operation: Operation, raw: bytes = b"") -> Done:
        self._browser.performed.append(operation)
        match operation:
            case Goto():
                value = {"url": operation.url, "status": 200, "headers": {"a": "b"}}
                return Done(Raw(msgspec.json.encode(value)))
            case Click():
                raise FetchFailed(ExitReason.BROWSER_TIMEOUT, "no such thing")
            case Evaluate(expression="forever"):
                await asyncio.Event().wait()
        return Done(raw=raw)


class Browser:
    """A browser engine."""

    def __init__(self) -> None:
        self.open_now = 0
        self.opened = 0
        self.sessions: list[str] = []
        self.performed: list[Operation] = []
        self.told: list[LogMessage] = []
        self.files: tuple[KeptFile, ...] = ()
        self.free = asyncio.Event()
        self.free.set()
        self.fault: Exception | None = None
        self.given_up = False

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    @asynccontextmanager
    async def open(self, options: ContextOptions, caller: Caller, **_: Any) -> AsyncIterator[Context]:
        assert (replace(options, session=""), caller.run_id) == (OPTIONS, "run_1")
        self.sessions.append(options.session)
        self.opened += 1
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            for _ in range(20):
                await asyncio.sleep(0)  # a real one takes a while to end what it began
            self.given_up = True
            raise
        if self.fault is not None:
            raise self.fault
        context = Context(self)
        self.open_now += 1
        async with asyncio.timeout(600):  # as a real one may: it must end in the task that began it
            try:
                yield context
            finally:
                self.open_now -= 1
                context.end = ContextEnd(files=self.files)


class Engine:
    """Opens pages where the request says."""

    async def fetch(self, request: FetchRequest, _: Caller) -> FetchResponse:
        assert request.via is not None
        assert request.engine == "browser"
        return await request.via()


class Sandbox:
    """Runs a coroutine in place of a child."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def run(self, _: Scraper, __: Work, services: ChildServices) -> Verdict:
        """Each request of a child is served by a task of its own."""
        try:
            result = await self._script(services)
        except FetchFailed as error:
            return Verdict(exit_reason=error.reason, error=RunError(message=error.message))
        return Verdict(exit_reason=ExitReason.SUCCEEDED, result=Raw(msgspec.json.encode(result)))


async def intact(_: Scraper) -> bool:
    return True


def executor(
    script: Script,
    browser: Browser | UnrecordedBrowser | None,
    folder: Path,
    contexts: int = 1,
    builtin: Builtin | None = None,
) -> Executor:
    unused: Any = None
    sandbox: Any = Sandbox(script)
    engine: Any = Engine()
    scraper = builtin.scraper if builtin else SCRAPER
    prepared = replace(PREPARED, scraper=scraper)

    async def prepare(*_: Any) -> Prepared:
        return prepared

    catalogue: Any = SimpleNamespace(resolve=lambda *_: scraper, verify=intact)
    preparer: Any = SimpleNamespace(prepare=prepare)
    parts = AttemptParts(
        catalogue=catalogue,
        preparer=preparer,
        sandbox=sandbox,
        engine=engine,
        blobs=ObjectBlobs.in_folder(folder),
        builtins={builtin.scraper.ref.id: builtin} if builtin else {},
        checker=InputChecker(),
        state=unused,
        browser=browser,
        browser_contexts=contexts,
    )
    return Executor(parts, MemoryQueue(), "worker_1")


def seat() -> tuple[SlotLease, Slots]:
    (share,) = share_out(1, 0)
    share.hold("run_1")
    return SlotLease("run_1", share, ParkedRuns()), share


async def run(script: Script, browser: Browser | UnrecordedBrowser | None, folder: Path, contexts: int = 1) -> Outcome:
    delivery = Delivery(run_id="run_1", scraper="test/script", input=Raw(b"{}"), created_at=0, queued_at=0)
    return await executor(script, browser, folder, contexts).execute(delivery, seat()[0])


async def in_task(work: Awaitable[Any]) -> Any:
    """As the sandbox does: whoever opens a context is not who closes it."""

    async def waited() -> Any:
        return await work

    return await asyncio.create_task(waited())


async def test_pages_are_fetches_and_what_is_left_is_kept(tmp_path: Path) -> None:
    browser = Browser()
    browser.files = (KeptFile(name="failure.png", content_type="image/png", data=b"picture"),)

    async def script(services: ChildServices) -> Any:
        for _ in range(2):
            number = await in_task(services.open_browser(OPTIONS))
            done = await services.browse(number, Goto(url="http://a.test/"))
            browser.told = [LogMessage(kind="error", text="boom s3cret", url="http://a.test/")]
            await services.browse(number, NewTab())
            await in_task(services.close_browser(number))
            await services.close_browser(number)
        return msgspec.json.decode(done.value)["status"]

    outcome = await run(script, browser, tmp_path)
    assert (outcome.exit_reason, outcome.result) == (ExitReason.SUCCEEDED, Raw(b"200"))
    assert [(trace.url, trace.status, trace.way) for trace in outcome.fetches] == [
        ("http://a.test/", 200, "browser")
    ] * 2
    assert outcome.usage.fetches == 2, "an empty tab fetches nothing"
    assert [(line.text, line.level) for line in outcome.logs] == [("boom ***", "error")] * 2
    assert [(kept.name, kept.size) for kept in outcome.artifacts] == [("failure.png", 7), ("failure-2.png", 7)]
    assert (browser.open_now, browser.opened) == (0, 2)


async def test_a_session_of_a_built_in_belongs_to_the_client_that_named_it(tmp_path: Path) -> None:
    browser, scraper = Browser(), Scraper(ref=ScraperRef(id="builtin/actions", version="1.0.0"), folder=None)

    async def login(services: Services, _: dict[str, Any]) -> dict[str, Any]:
        async with services.open_browser(ContextOptions(session="login")):
            return {}

    for client in ("one", "two", "one", ""):
        made = executor(in_task, browser, tmp_path, builtin=Builtin(scraper=scraper, run=login))
        delivery = Delivery(
            run_id="run_1", scraper="builtin/actions", input=Raw(b"{}"), created_at=0, queued_at=0, owner=client
        )
        assert (await made.execute(delivery, seat()[0])).exit_reason is ExitReason.SUCCEEDED
    one, two, again, nobody = browser.sessions
    assert one == again
    assert len({one, two, nobody}) == 3
    assert nobody == "login"


async def test_a_worker_without_a_browser_tells_how_to_get_one(tmp_path: Path) -> None:
    outcome = await run(lambda services: services.open_browser(OPTIONS), None, tmp_path)
    assert outcome.exit_reason is ExitReason.BROWSER_UNAVAILABLE
    assert outcome.error is not None
    assert "pip install 'scrapeyard[browser]'" in outcome.error.message
    assert "scrapeyard browser install" in outcome.error.message


async def test_recorded_cases_have_no_browser(tmp_path: Path) -> None:
    outcome = await run(lambda services: services.open_browser(OPTIONS), UnrecordedBrowser(), tmp_path)
    assert outcome.exit_reason is ExitReason.BROWSER_UNAVAILABLE
    assert outcome.error is not None
    assert "recorded cases have no browser" in outcome.error.message


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (FetchFailed(ExitReason.BROWSER_UNAVAILABLE, "it does not start"), ExitReason.BROWSER_UNAVAILABLE),
        (RuntimeError("a bug"), ExitReason.BROWSER_CRASHED),
    ],
)
async def test_a_browser_that_does_not_open(tmp_path: Path, fault: Exception, reason: ExitReason) -> None:
    browser = Browser()
    browser.fault = fault
    outcome = await run(lambda services: services.open_browser(OPTIONS), browser, tmp_path)
    assert outcome.exit_reason is reason


async def test_what_the_script_leaves_open_is_closed(tmp_path: Path) -> None:
    browser = Browser()

    async def script(services: ChildServices) -> Any:
        await in_task(services.open_browser(OPTIONS))
        number = await in_task(services.open_browser(OPTIONS))
        assert browser.open_now == 2
        await services.browse(number, Click(selector="a"))

    outcome = await run(script, browser, tmp_path, contexts=2)
    assert (outcome.exit_reason, browser.open_now) == (ExitReason.BROWSER_TIMEOUT, 0)


async def test_a_cancelled_run_closes_its_browser(tmp_path: Path) -> None:
    browser = Browser()

    async def script(services: ChildServices) -> Any:
        number = await in_task(services.open_browser(OPTIONS))
        await services.browse(number, Evaluate(expression="forever"))

    running = asyncio.create_task(run(script, browser, tmp_path))
    await eventually(lambda: browser.performed)
    running.cancel()
    await asyncio.wait((running,))
    assert (running.cancelled(), browser.open_now) == (True, 0)


async def test_a_run_that_waits_for_a_browser_gives_up_its_slot(tmp_path: Path) -> None:
    browser = Browser()
    browser.free.clear()
    lease, share = seat()
    delivery = Delivery(run_id="run_1", scraper="test/script", input=Raw(b"{}"), created_at=0, queued_at=0)

    async def script(services: ChildServices) -> Any:
        await services.open_browser(OPTIONS)
        return share.held

    running = asyncio.create_task(executor(script, browser, tmp_path).execute(delivery, lease))
    await eventually(lambda: browser.opened and share.held == 0)
    browser.free.set()
    assert (await running).result == Raw(b"1")


async def test_a_run_that_is_cancelled_while_it_waits_for_a_browser(tmp_path: Path) -> None:
    """Nobody waits for the request of the script; the end of the run does."""
    browser, requests = Browser(), []
    browser.free.clear()

    async def script(services: ChildServices) -> Any:
        requests.append(asyncio.create_task(services.open_browser(OPTIONS)))
        try:
            await asyncio.Event().wait()
        finally:
            requests[0].cancel()

    running = asyncio.create_task(run(script, browser, tmp_path))
    await eventually(lambda: browser.opened)
    running.cancel()
    await asyncio.wait((running,))
    assert (running.cancelled(), browser.given_up) == (True, True)


async def test_contexts_of_a_run_are_bounded_and_local_files_are_refused(tmp_path: Path) -> None:
    browser, refused = Browser(), []

    async def script(services: ChildServices) -> Any:
        number = await services.open_browser(OPTIONS)
        for work in (
            services.open_browser(OPTIONS),
            services.browse(number, Goto(url="file:///etc/passwd")),
            services.browse(number, Goto(url="CHROME://settings")),
            services.browse(number + 1, NewTab()),
        ):
            with pytest.raises(FetchFailed) as caught:
                await work
            refused.append((caught.value.reason, caught.value.message))
        await services.browse(number, Goto(url="about:blank"))

    assert (await run(script, browser, tmp_path)).exit_reason is ExitReason.SUCCEEDED
    step, bad = ExitReason.BROWSER_STEP, ExitReason.FETCH_BAD_URL
    assert [reason for reason, _ in refused] == [step, bad, bad, step]
    assert "browser.contexts_per_run" in refused[0][1]
    assert browser.performed == [Goto(url="about:blank")]


async def test_messages_and_evidence_are_bounded(tmp_path: Path) -> None:
    browser = Browser()
    browser.files = (KeptFile(name="video.webm", content_type="video/webm", data=bytes(2 * 1024 * 1024)),)

    async def script(services: ChildServices) -> Any:
        number = await services.open_browser(OPTIONS)
        for _ in range(MAX_MESSAGES):
            browser.told = [LogMessage(kind="log", text="x" * 5000)] * 3
            await services.browse(number, NewTab())

    outcome = await run(script, browser, tmp_path)
    *lines, more, unkept = [line.text for line in outcome.logs]
    assert (len(lines), set(map(len, lines))) == (MAX_MESSAGES, {2000})
    assert "the rest is not logged" in more
    assert "limits.artifact_mb" in unkept
    assert outcome.artifacts == ()
