"""One attempt at a run, or at an item of a job: run the script, serve its fetches, judge its end, save what it leaves.

Both take this path. `RunAttempt` and `ItemAttempt` say where results, logs and artifacts go and how the end is told.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from msgspec import Raw, convert, to_builtins
from msgspec.structs import replace

from scrapeyard.blobs.keys import SCREENSHOT
from scrapeyard.builtin import EXTRACT
from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser.operations import AnyOperation
from scrapeyard.engines.browser.port import ContextOptions, Done
from scrapeyard.engines.browser.widgets import no_captchas
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.models.port import ModelAnswer, ModelFailed, Question
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed, Unavailable
from scrapeyard.model import (
    Artifact,
    ExitReason,
    LogLine,
    RunError,
    RunProgress,
    Usage,
)
from scrapeyard.repository.trust.secrets import redact, redact_json
from scrapeyard.results.masking import Masker
from scrapeyard.sandbox.port import Verdict, Work
from scrapeyard.worker.attempts.browsing import OpenBrowsers
from scrapeyard.worker.attempts.parts import AttemptParts, AttemptPlan
from scrapeyard.worker.attempts.retrying import NextAttempt, postponement
from scrapeyard.worker.attempts.steps import (
    as_value,
    checked,
    fetched,
    refused,
    run_builtin,
    unsaved,
    usage_of,
    without_secrets,
)
from scrapeyard.worker.attempts.waiting import too_long

OutcomeT = TypeVar("OutcomeT")


class ScrapeAttempt(ABC, Generic[OutcomeT]):
    """One attempt. Serves its child, or its built-in, while it runs. Most parts are created on first use, because most
    items of a large job need hardly any."""

    def __init__(self, parts: AttemptParts, plan: AttemptPlan, name: str, number: int, given: Raw) -> None:
        self.parts = parts
        self.plan = plan
        self.name = name
        self.number = number
        self.given = given
        self.started_at = time.time()
        self.finished_at = 0.0
        self.fetches = 0
        self.first_url = ""
        """Of the first page that it fetched."""
        self.bytes_received = 0
        self.logs: list[LogLine] = []
        self.artifacts: dict[str, Artifact] = {}
        self.told: RunProgress | None = None
        """How far the script said it was, the last time."""
        self.result_bytes = 0
        self.result_key = ""
        """Where the result was saved; empty if the outcome carries it."""
        self.began = time.perf_counter()
        self._caller: Caller | None = None
        self._browsers: OpenBrowsers | None = None
        self._masker = parts.masking.of(plan.caller.policy) if parts.masking is not None else None
        self._turn_in: float | None = None
        """Seconds until the last site that was too busy has a turn; None if every site had one in time."""

    async def run(self) -> OutcomeT:
        """Run to the outcome. Raises only CancelledError; the child is gone by then."""
        verdict = await self._verdict()
        self.finished_at = time.time()
        self.result_bytes = 0 if verdict.result is None else len(bytes(verdict.result))
        retry = None if verdict.exit_reason.is_good else self._retry(verdict)
        if retry is not None:
            verdict, self.result_bytes = replace(verdict, result=None), 0
        else:
            try:
                await self._save(verdict)
            except Unavailable as error:
                verdict, self.result_bytes = unsaved(verdict, error), 0
                retry = self._retry(verdict)
        if retry is None and self.parts.meters is not None:
            self.parts.meters.count_run(self._caller or self.plan.caller)
        self._watch(verdict)
        return self._outcome(verdict, retry)

    def _watch(self, verdict: Verdict) -> None:
        """Note the fields of a script's result. Those of built-ins differ from page to page."""
        drift, scraper = self.parts.drift, self.plan.prepared.scraper
        if drift is None or scraper.is_builtin or verdict.result is None or not verdict.exit_reason.is_good:
            return
        drift.note_result(scraper.ref.id, str(scraper.ref.version), self.first_url, verdict.result)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Through the engine. Raises FetchFailed."""
        started = time.perf_counter()
        self.fetches += 1
        self.first_url = self.first_url or request.url
        wait = self.plan.site_wait
        try:
            if (settling := wait.begin()) is not None:
                await settling
            try:
                response = await self.parts.engine.fetch(request, self._caller or self._make_caller())
            finally:
                if (settling := wait.end()) is not None:
                    await settling
        except FetchFailed as error:
            self._turn_in = self._turn_after(error)
            self._on_fetched(request, started, error)
            raise
        self.bytes_received += response.bytes_received
        self._on_fetched(request, started, response)
        return response

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        """As `fetch`, but streams the page into an artifact. Raises FetchFailed or BlobsUnavailable."""

        async def keep(pieces: AsyncIterator[bytes], content_type: str) -> int:
            kind = content_type[:200] or "application/octet-stream"
            masked = pieces if self._masker is None else self._masker.stream(pieces, kind)
            self.artifacts[name] = await self._put_stream(name, kind, masked)
            return self.artifacts[name].size

        page = await self.fetch(replace(request, keep=keep))
        if page.kept is not None or not 200 <= page.status < 300:
            return page
        kept = await keep(_whole(page.body), dict(page.headers).get("content-type", ""))  # from a replay engine
        return replace(page, body=b"", kept=kept)

    async def open_browser(self, options: ContextOptions) -> int:
        """Open a context in a browser. Raises FetchFailed."""
        return await self._browsing().open_browser(options)

    async def browse(self, number: int, operation: AnyOperation, raw: bytes = b"") -> Done:
        """Perform a step in an open context. Raises FetchFailed."""
        return await self._browsing().browse(number, operation, raw)

    async def solve_widget(self, number: int, tab: int, seconds: float | None) -> str:
        """Solve the captcha of a page; its token. Raises FetchFailed."""
        return await self._browsing().solve_widget(number, tab, seconds)

    async def solve_image(self, image: bytes) -> str:
        """The text in a picture. Raises FetchFailed."""
        if self.parts.captchas is None:
            raise no_captchas()
        return (await self.parts.captchas.solve_image(image, self._caller or self._make_caller())).text

    async def close_browser(self, number: int) -> None:
        """Close a context and save what it leaves."""
        await self._browsing().close_browser(number)

    def _browsing(self) -> OpenBrowsers:
        if self._browsers is None:
            caller, parts = self._caller or self._make_caller(), self.parts
            self._browsers = OpenBrowsers(
                parts.browser,
                parts.browser_contexts,
                caller,
                self,
                self.plan.site_wait,
                live=parts.live,
                captchas=parts.captchas,
            )
        return self._browsers

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Save an artifact. Raises BlobsUnavailable."""
        if self._masker is not None:
            data = await self._masker.artifact(data, content_type)
        self.artifacts[name] = await self._put(name, content_type, data)

    @property
    def artifact_room(self) -> int:
        """Bytes that artifacts may still take."""
        return int(self.plan.limits.artifact_mb * 1024 * 1024) - sum(each.size for each in self.artifacts.values())

    def log(self, line: LogLine) -> None:
        """Add a line of the script, without secret values."""
        self._add_line(replace(line, text=self._hide(line.text), fields=self._hide(line.fields)))

    def _hide(self, value: Any) -> Any:
        """A value without secrets, and with personal data masked."""
        hidden = self.plan.prepared.hidden
        shown = redact(value, hidden) if hidden else value
        return shown if self._masker is None else self._masker.logged(shown)

    def progress(self, progress: RunProgress) -> None:
        """Take note of how far the script is."""
        self.told = replace(progress, message=self._hide(progress.message))

    def enqueue(self, given: bytes, item_id: str) -> None:
        """Raises BadRequest: a run that belongs to no job has nowhere to put items."""
        del given, item_id
        raise BadRequest("ctx.enqueue adds items to a job, and this run belongs to none; create a job instead")

    async def read_state(self, key: str) -> bytes | None:
        """A value of the scraper's state. Raises StoreUnavailable."""
        return await self.parts.state.read(self.plan.prepared.scraper.ref.id, key)

    async def change_state(self, key: str, value: bytes | None, old: bytes | None, compare: bool) -> bool:
        """Write or remove a value; with `compare`, only if the present one is `old`, whatever its spelling."""
        only_if = (lambda present: as_value(present) == as_value(old)) if compare else None
        scraper_id = self.plan.prepared.scraper.ref.id
        return await self.parts.state.change(scraper_id, key, value, time.time(), only_if=only_if)

    async def pause(self, seconds: float) -> None:
        """Wait for a site's turn. Raises FetchFailed at once if the attempt would time out before that."""
        if seconds >= self.began + self.plan.limits.wall_seconds - time.perf_counter():
            raise too_long(seconds, "the site's turn comes after the run's time is over")
        await self.plan.site_wait.pause(seconds)

    def _on_wait(self, site: str, seconds: float) -> None:
        """It waits for a site's turn from now on."""

    def usage(self, verdict: Verdict) -> Usage:
        """What it used."""
        usage = usage_of(verdict)
        if self._masker is not None:
            usage = replace(usage, masked=dict(self._masker.found))
        if self._caller is None:
            return usage
        return fetched(usage, self._caller.ledger, self.fetches, self.bytes_received)

    async def _verdict(self) -> Verdict:
        try:
            verdict = self._check_input() or await self._perform()
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the attempt, never the worker
            verdict = replace(refused(self.name, error), exit_reason=ExitReason.INTERNAL_ERROR)
        finally:
            if self._browsers is not None:
                await self._browsers.close()
        hidden = self.plan.prepared.hidden
        if hidden and verdict.error is not None:
            verdict = replace(verdict, error=without_secrets(verdict.error, hidden))
        if hidden and verdict.result is not None:
            verdict = replace(verdict, result=Raw(redact_json(bytes(verdict.result), hidden)))
        return verdict if self._masker is None else await _masked(verdict, self._masker)

    async def _perform(self) -> Verdict:
        parts, plan, prepared = self.parts, self.plan, self.plan.prepared
        scraper = prepared.scraper
        if scraper.is_builtin:
            return await run_builtin(parts.builtins[scraper.ref.id], self._services(), self.given, plan.limits)
        work = Work(
            run_id=self.name,
            attempt=self.number,
            input=self.given,
            limits=plan.limits,
            config=prepared.config,
            nan=scraper.nan,
            environment=prepared.environment,
            warm=plan.warm,
        )
        if plan.series is None:
            verdict = await parts.sandbox.run(scraper, work, self)
        else:
            verdict = await plan.series.run(work, self)
        return checked(parts.checker, scraper, verdict)

    async def _fetch_shown(self, request: FetchRequest) -> FetchResponse:
        """With the picture that the input asked for among the artifacts. Raises FetchFailed or BlobsUnavailable."""
        response = await self._fetch_page(request)
        if response.screenshot:
            await self.artifact(SCREENSHOT, "image/png", response.screenshot)
        return response

    def _services(self) -> Services:
        """For a built-in."""
        return Services(
            fetch=self._fetch_shown,
            open_browser=lambda options: self._browsing().lent(options, self.plan.caller.client),
            artifact=self.artifact,
            progress=self.progress,
            solve_image=self.solve_image,
            solve_widget=lambda *given: self._browsing().solve_in(*given),
            ask=self._ask,
            room=self._room,
            search=self.parts.search,
            client=self.plan.caller.client,
        )

    async def _ask(self, question: Question) -> ModelAnswer:
        """A model. Raises ModelFailed."""
        if self.parts.models is None:
            raise ModelFailed("no_model", "there is no model here; set ai.providers")
        return await self.parts.models.ask(question, self._caller or self._make_caller())

    def _room(self, provider: str, model: str) -> int:
        """Characters that a question may have; 0 if there is no such model."""
        try:
            return self.parts.models.room(provider, model) if self.parts.models is not None else 0
        except ModelFailed:
            return 0

    async def extract(self, given: dict[str, Any]) -> dict[str, Any]:
        """Data of a page that the script has. Raises FetchFailed or BadRequest."""
        builtin = self.parts.builtins[EXTRACT]
        if faults := self.parts.checker.errors(builtin.scraper, given):
            raise BadRequest(f"ctx.extract: {faults[0]['path'] or 'the call'}: {faults[0]['message']}")
        return await builtin.run(self._services(), given)

    def _retry(self, verdict: Verdict) -> NextAttempt | None:
        later = postponement(verdict, self._turn_in, self._latest_turn() - self.finished_at)
        return later or self.plan.retries.after(verdict, self.number)

    def _make_caller(self) -> Caller:
        self._caller = replace(
            self.plan.caller, run_id=self.name, ledger=Ledger(self._warn), pause=self.pause, on_wait=self._on_wait
        )
        return self._caller

    def _warn(self, words: str) -> None:
        self.say(words, "warning", **{"from": "budget"})

    def stepped(self, name: str, started: float, error: str) -> None:
        """Note a step in a browser; only a run's trace tells of it."""

    def say(self, words: str, level: str, **fields: str) -> None:
        """Add a line of the platform to the script's log."""
        at_ms = round((time.perf_counter() - self.began) * 1000, 2)
        self.log(LogLine(at_ms=at_ms, stream="log", text=words, level=level, fields=fields))

    def _check_input(self) -> Verdict | None:
        """The verdict on an invalid input; None if it is valid, or was checked before."""
        return None

    def _turn_after(self, error: FetchFailed) -> float | None:
        """Seconds after which the same attempt may begin anew, if it failed only because it was not its turn."""
        if error.reason is ExitReason.FETCH_RATE_LIMITED and error.site_status is None:
            return error.details.get("retry_after")
        return None

    @abstractmethod
    async def _fetch_page(self, request: FetchRequest) -> FetchResponse:
        """For built-in scrapers, which take any page for data: `fetch`, but an error status may fail or be retried."""

    @abstractmethod
    def _latest_turn(self) -> float:
        """The Unix time until which it may be put back for a busy site, at the same attempt."""

    @abstractmethod
    def _on_fetched(self, request: FetchRequest, started: float, answer: FetchResponse | FetchFailed) -> None:
        """Note how a fetch went, that began at `started` by the performance counter."""

    @abstractmethod
    def _add_line(self, line: LogLine) -> None:
        """Add a line to `logs`."""

    @abstractmethod
    async def _put(self, name: str, content_type: str, data: bytes) -> Artifact:
        """Store an artifact of the script. Raises BlobsUnavailable."""

    @abstractmethod
    async def _put_stream(self, name: str, content_type: str, pieces: AsyncIterator[bytes]) -> Artifact:
        """As `_put`, for one that arrives in pieces."""

    @abstractmethod
    async def _save(self, verdict: Verdict) -> None:
        """Store what the outcome does not carry; sets `result_key` if that is the result. Called only if no attempt
        follows. Raises Unavailable; nothing is set then."""

    @abstractmethod
    def _outcome(self, verdict: Verdict, retry: NextAttempt | None) -> OutcomeT:
        """How it ended."""


async def _masked(verdict: Verdict, masker: Masker) -> Verdict:
    error, result = verdict.error, verdict.result
    if error is not None:
        error = convert(masker.logged(to_builtins(error)), RunError)
    if result is not None:
        result = Raw(await masker.result(bytes(result)))
    return replace(verdict, error=error, result=result)


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
