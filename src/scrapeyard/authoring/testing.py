"""Runs a case against its cassette, with an engine that has only recorded pages, and reports differences."""

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.authoring.cases import REPLAYABLE, Case, Options, case_folders, read_case, write_outcome
from scrapeyard.authoring.cassette import RecordedPage, RecordedRequest, asked_of, nearest
from scrapeyard.authoring.comparing import difference, masked
from scrapeyard.authoring.redaction import Veil, placeholders, without_secrets
from scrapeyard.authoring.runner import Runner
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed, InputInvalid, ScraperInvalid
from scrapeyard.model import ExitReason, Outcome, Scraper
from scrapeyard.repository.trust.secrets import redact

MAX_UNKNOWN = 20
"""Maximum unknown requests reported; a script in a loop may send thousands."""


class ReplayEngine:
    """Answers each recorded request once, in the order in which equal ones were recorded.

    An unknown request, or one sent more often than recorded, fails in the script as `fetch_not_allowed` and is added to
    `unknown`: the case then fails, even if the script continues.
    """

    def __init__(self, pages: Sequence[RecordedPage]) -> None:
        self._known = tuple(page.entry.asked for page in pages)
        self._waiting: dict[RecordedRequest, deque[RecordedPage]] = defaultdict(deque)
        for page in pages:
            self._waiting[page.entry.asked].append(page)
        self._veil = Veil({})
        self.unknown: list[str] = []

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """The recorded answer, at once. Raises FetchFailed: as recorded, or because there is none."""
        asked = asked_of(request, caller.scraper, self._veil)
        waiting = self._waiting.get(asked)
        if not waiting:
            raise self._refuse(asked)
        page = waiting.popleft()
        entry = page.entry
        if entry.error is not None or entry.status is None:
            raise FetchFailed(entry.error or ExitReason.FETCH_PROTOCOL, entry.message, site_status=entry.site_status)
        if request.max_bytes is not None and len(page.body) > request.max_bytes:
            message = f"{entry.url[:200]} is larger than the {request.max_bytes} bytes that the script takes"
            raise FetchFailed(ExitReason.FETCH_TOO_LARGE, message)
        return _response(page, entry.status)

    def unused(self) -> tuple[RecordedRequest, ...]:
        """Recorded requests that were never sent, in the order recorded."""
        left = [page.entry.asked for waiting in self._waiting.values() for page in waiting]
        return tuple(sorted(left, key=self._known.index))

    def _refuse(self, asked: RecordedRequest) -> FetchFailed:
        message = f"{asked} {self._why(asked)}"
        if len(self.unknown) < MAX_UNKNOWN:
            self.unknown.append(message)
        return FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message[:2000])

    def _why(self, asked: RecordedRequest) -> str:
        times = self._known.count(asked)
        if times:
            return f"is asked more often than the {times} time{'s' if times > 1 else ''} that it is on the cassette"
        near = nearest(asked, self._known)
        return "is not on the cassette" + ("; nearest: " + str(near) if near else ", which is empty")


def _response(page: RecordedPage, status: int) -> FetchResponse:
    entry = page.entry
    return FetchResponse(
        url=entry.final_url or entry.url,
        status=status,
        headers=entry.headers,
        body=page.body,
        encoding=entry.encoding,
        elapsed_ms=0.0,
        redirects=entry.redirects,
        bytes_received=len(page.body),
    )


class CaseReport(Struct, frozen=True, kw_only=True):
    """How a replay went. It passed when there are no faults and no difference."""

    name: str
    faults: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    updated: bool = False
    outcome: Outcome | None = None
    """None when there was no run: the case or the scraper could not be read."""
    case: Case | None = None
    """None when it could not be read."""
    result: Any = None

    @property
    def passed(self) -> bool:
        """Whether the run did what was recorded."""
        return not self.faults and not self.diff

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        usage = self.outcome.usage if self.outcome else None
        return {
            "case": self.name,
            "passed": self.passed,
            "updated": self.updated,
            "faults": list(self.faults),
            "diff": list(self.diff),
            "warnings": list(self.warnings),
            "exit_reason": self.outcome.exit_reason.value if self.outcome else None,
            "usage": {name: getattr(usage, name) for name in usage.__struct_fields__} if usage else None,
        }


def offline(scraper: Scraper) -> Scraper:
    """The scraper as a test runs it: without a network of its own, and with a placeholder for each secret."""
    config = {key: without_secrets(value) for key, value in scraper.config.items()}
    return replace(scraper, network="engines", config=config)


def select_cases(folder: Path, name: str | None) -> list[Path]:
    """The folders of a scraper's cases, or of the one that is named. Raises BadRequest when there is no such case."""
    found = case_folders(folder)
    if name is None:
        return found
    chosen = [each for each in found if each.name == name]
    if not chosen:
        known = ", ".join(each.name for each in found) or "none"
        raise BadRequest(f"{folder}: no case {name[:100]!r}; there are: {known}")
    return chosen


async def run_case(runner: Runner, scraper: Scraper, folder: Path, *, update: bool = False) -> CaseReport:
    """Replay one case. Never raises for what a case or a script does; a case that cannot be read fails.

    `scraper` comes from `offline`. With `update`, the run's result becomes the expected one, unless the run requested
    something that is not on the cassette.
    """
    try:
        case = read_case(folder)
        runner.check(scraper, case.input)
    except (ScraperInvalid, InputInvalid) as error:
        return CaseReport(name=folder.name, faults=(error.message,))
    engine = ReplayEngine(case.pages)
    _, outcome = await runner.run(scraper, case.input, engine=engine)
    # A worker hides secrets in results, and so did the run that was recorded.
    result = redact(json.loads(await runner.result(outcome)), placeholders(scraper.config))
    case = replace(case, expected=redact(case.expected, placeholders(scraper.config)))
    report = _compare(case, engine, outcome, result)
    return _updated(report, case, outcome, result) if update and not report.passed else report


def _compare(case: Case, engine: ReplayEngine, outcome: Outcome, result: Any) -> CaseReport:
    faults = [f"asked for what was not recorded: {unknown}" for unknown in engine.unknown]
    if outcome.exit_reason is not case.options.ends:
        faults.append(f"ended as {outcome.exit_reason}, not as {case.options.ends}{_words(outcome)}")
    names = tuple(sorted(artifact.name for artifact in outcome.artifacts))
    if names != tuple(sorted(case.options.artifacts)):
        faults.append(f"kept the artifacts {_listed(names)}, not {_listed(case.options.artifacts)}")
    masks = case.options.masks(case.name)
    diff = difference(masked(case.expected, masks), masked(result, masks))
    return CaseReport(
        name=case.name,
        faults=tuple(faults),
        diff=tuple(diff),
        warnings=tuple(f"recorded and never asked for: {asked}" for asked in engine.unused()),
        outcome=outcome,
        case=case,
        result=result,
    )


def _updated(report: CaseReport, case: Case, outcome: Outcome, result: Any) -> CaseReport:
    if outcome.exit_reason not in REPLAYABLE or any(fault.startswith("asked for") for fault in report.faults):
        return report
    names = tuple(sorted(artifact.name for artifact in outcome.artifacts))
    options = Options(ends=outcome.exit_reason, ignore=case.options.ignore, artifacts=names)
    try:
        write_outcome(case.folder, result, options)
    except OSError as error:
        raise BadRequest(f"{error.filename or case.folder}: cannot be written: {error.strerror}") from None
    return replace(report, faults=(), diff=(), updated=True)


def _words(outcome: Outcome) -> str:
    if outcome.error is None or outcome.exit_reason is ExitReason.SUCCEEDED:
        return ""
    text = outcome.error.traceback or outcome.error.message
    return f": {outcome.error.message}" if text == outcome.error.message else f":\n{text}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "(none)"
