"""Is a scraper ready for release? Valid, tested on different inputs, the same each time, with room in its limits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from scrapeyard.authoring.cases import case_folders
from scrapeyard.authoring.comparing import difference, masked
from scrapeyard.authoring.findings import Finding, fail, is_good, ok, warn
from scrapeyard.authoring.runner import Runner
from scrapeyard.authoring.testing import CaseReport, run_case
from scrapeyard.authoring.validating import check_files, check_loading
from scrapeyard.model import ExitReason, Limits, Outcome, Scraper, Usage
from scrapeyard.repository.manifest.manifest import Manifest

INPUTS = 3
"""Minimum different inputs that a release is tested with."""
TIGHT = 80.0
"""A replay that uses more than this percentage of a limit leaves too little room for a slow day."""

_USED: dict[str, Callable[[Usage], float]] = {
    "wall_seconds": lambda usage: usage.wall_ms / 1000,
    "cpu_seconds": lambda usage: usage.cpu_ms / 1000,
    "memory_mb": lambda usage: usage.memory_mb,
    "output_mb": lambda usage: usage.output_bytes / (1 << 20),
    "log_kb": lambda usage: usage.log_bytes / 1024,
    "fetches": lambda usage: usage.fetches,
}


class Headroom(Struct, frozen=True, kw_only=True):
    """The most that any case used of one limit."""

    limit: str
    used: float
    allowed: float
    case: str

    @property
    def percent(self) -> float:
        """Of what is allowed."""
        return 100 * self.used / self.allowed

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "limit": self.limit,
            "used": round(self.used, 4),
            "allowed": self.allowed,
            "percent": round(self.percent, 2),
            "case": self.case,
        }


class Certificate(Struct, frozen=True, kw_only=True):
    """The report."""

    folder: Path
    scraper: Scraper | None
    """None when it could not be read."""
    findings: tuple[Finding, ...]
    headroom: tuple[Headroom, ...] = ()

    @property
    def is_granted(self) -> bool:
        """Whether the scraper may be released."""
        return is_good(self.findings)

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        ref = self.scraper.ref if self.scraper else None
        return {
            "folder": str(self.folder),
            "scraper": ref.id if ref else None,
            "version": ref.version if ref else None,
            "digest": ref.digest if ref else None,
            "certified": self.is_granted,
            "points": [finding.document() for finding in self.findings],
            "headroom": [each.document() for each in self.headroom],
        }


async def certify(runner: Runner, folder: Path, ceiling: Limits) -> Certificate:
    """Run every case twice and report. Never raises for what a scraper or its cases do."""
    manifest, found = check_files(folder, ceiling)
    if manifest is None or not is_good(found):
        return Certificate(folder=folder, scraper=None, findings=tuple(found))
    scraper, loading = await check_loading(runner, folder)
    found += loading
    if scraper is None or not is_good(found):
        return Certificate(folder=folder, scraper=scraper, findings=tuple(found))
    folders = case_folders(folder)
    first = [await run_case(runner, scraper, each) for each in folders]
    second = [await run_case(runner, scraper, each) for each in folders]
    room = headroom(scraper.limits, first + second)
    found = [finding for finding in found if finding.point != "tests"]
    found += [_passed(first), _used(first), _inputs(first), _schema(manifest, first), _same(first, second), _room(room)]
    return Certificate(folder=folder, scraper=scraper, findings=tuple(found), headroom=tuple(room))


def headroom(limits: Limits, reports: list[CaseReport]) -> list[Headroom]:
    """For each limit that a run's usage reports, the case that used most of it; empty if nothing ran."""
    ran = [(report.name, report.outcome) for report in reports if report.outcome is not None]
    return [_most(name, limits, ran) for name in _USED] if ran else []


def _most(name: str, limits: Limits, ran: list[tuple[str, Outcome]]) -> Headroom:
    case, outcome = max(ran, key=lambda each: _USED[name](each[1].usage))
    return Headroom(limit=name, used=_USED[name](outcome.usage), allowed=getattr(limits, name), case=case)


def _passed(reports: list[CaseReport]) -> Finding:
    failed = [report.name for report in reports if not report.passed]
    if failed:
        return fail(
            "cases", f"{len(failed)} of {len(reports)} fail: {', '.join(failed)}", "`scrapeyard test` shows how"
        )
    return ok("cases", f"{len(reports)} pass")


def _used(reports: list[CaseReport]) -> Finding:
    stale = [report.name for report in reports if report.warnings]
    if stale:
        detail = f"recorded pages that are never asked for: {', '.join(stale)}"
        return fail("cassettes", detail, "record these cases again with --force")
    return ok("cassettes", "every recorded page is used")


def _inputs(reports: list[CaseReport]) -> Finding:
    """Check the inputs. At least one case must have a result, because a case without data proves little."""
    good = [report for report in reports if report.case is not None]
    different = {json.dumps(report.case.input, sort_keys=True) for report in good if report.case is not None}
    remedy = "`scrapeyard record` another input"
    if len(different) < INPUTS:
        return fail("inputs", f"different inputs: {len(different)}; a release needs {INPUTS}", remedy)
    if not any(report.outcome and report.outcome.exit_reason is ExitReason.SUCCEEDED for report in good):
        return fail("inputs", "no case ends with a result", remedy)
    return ok("inputs", f"{len(different)} different inputs")


def _schema(manifest: Manifest, reports: list[CaseReport]) -> Finding:
    if manifest.output_schema is None:
        return fail("output schema", "none", "describe the result: [output] in the manifest")
    broken = [
        report.name for report in reports if report.outcome and report.outcome.exit_reason is ExitReason.BAD_RESULT
    ]
    if broken:
        return fail("output schema", f"broken by: {', '.join(broken)}", "mend the script or the schema")
    return ok("output schema", "satisfied by every result")


def _same(first: list[CaseReport], second: list[CaseReport]) -> Finding:
    changed = [one.name for one, other in zip(first, second, strict=True) if not _is_same(one, other)]
    if changed:
        remedy = "sort what has no order, and name what changes by nature in `ignore` of case.toml"
        return fail("deterministic", f"two runs differ: {', '.join(changed)}", remedy)
    return ok("deterministic", "two runs of each case give the same")


def _is_same(one: CaseReport, other: CaseReport) -> bool:
    masks = one.case.options.masks(one.name) if one.case else ()
    ends = [report.outcome.exit_reason if report.outcome else None for report in (one, other)]
    return ends[0] == ends[1] and not difference(masked(one.result, masks), masked(other.result, masks))


def _room(room: list[Headroom]) -> Finding:
    if not room:
        return fail("limits used", "no case ran", "`scrapeyard test` shows why")
    worst = max(room, key=lambda each: each.percent)
    shown = f"at most {worst.percent:.3g} %, of {worst.limit}"
    if worst.percent > 100:
        return fail("limits used", shown, "raise the limit in the manifest, or do less in one run")
    if worst.percent >= TIGHT:
        return warn("limits used", shown, "raise the limit in the manifest: a real site is slower than a replay")
    return ok("limits used", shown)
