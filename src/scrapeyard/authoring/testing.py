"""Runs a case against its cassette, and tells what is not as it was recorded."""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.authoring.cases import REPLAYABLE, Case, Options, case_folders, read_case, write_outcome
from scrapeyard.authoring.comparing import difference, masked
from scrapeyard.authoring.redaction import without_secrets
from scrapeyard.authoring.replay import ReplayEngine
from scrapeyard.authoring.runner import Runner
from scrapeyard.errors import BadRequest, InputInvalid, ScraperInvalid
from scrapeyard.model import ExitReason, Outcome, Scraper


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

    `scraper` comes from `offline`. With `update`, what the run did becomes what is expected, unless it asked for
    something that is not on the cassette.
    """
    try:
        case = read_case(folder)
        runner.check(scraper, case.input)
    except (ScraperInvalid, InputInvalid) as error:
        return CaseReport(name=folder.name, faults=(error.message,))
    engine = ReplayEngine(case.pages)
    _, outcome = await runner.run(scraper, case.input, engine=engine)
    result = json.loads(await runner.result(outcome))
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
