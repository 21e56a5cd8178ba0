"""Where a run's time went, what it used of its limits, and what to do about it."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from scrapeyard.gateway.http.problems import remedy_of
from scrapeyard.model import (
    BudgetLimits,
    ExitReason,
    FetchTrace,
    Limits,
    Run,
    RunError,
    RunStatus,
    Timing,
    Usage,
    may_help_later,
)
from scrapeyard.model.instants import instant

SLOW_QUEUE_MS = 500.0
TIGHT_PERCENT = 80.0


class PhaseDocument(Struct, frozen=True, kw_only=True):
    """One stretch of a run's time."""

    name: str
    ms: float
    percent: float


class LimitDocument(Struct, frozen=True, kw_only=True):
    """What was used of what was allowed."""

    name: str
    used: float
    allowed: float
    percent: float


class Explanation(Struct, frozen=True, kw_only=True):
    """Where the time went, what was tried and why it ended so."""

    id: str
    status: RunStatus
    scraper: str
    version: str | None
    exit_reason: ExitReason | None
    retryable: bool
    attempt: int
    max_attempts: int
    worker: str | None
    total_ms: float
    phases: list[PhaseDocument]
    forked_ahead: bool
    fetches: tuple[FetchTrace, ...]
    requests: Annotated[int, Meta(description="What the fetches took of the web.")]
    bytes_by_class: Annotated[dict[str, int], Meta(description="Received, by what it came through.")]
    limits: list[LimitDocument]
    error: RunError | None
    summary: Annotated[list[str], Meta(description="A few plain sentences: where the time went and what to do.")]


def explain(run: Run, allowed: Limits, now: float, *, has_worker: bool = True) -> Explanation:
    """The explanation. `allowed` are the limits in force for this run; `now` ends the total of an unfinished run."""
    total = 1000 * max(0.0, (run.finished_at or now) - run.created_at)
    phases = _phases(run, total)
    limits = _limits(run.usage or Usage(), allowed, run.fetching.budget)
    return Explanation(
        id=run.id,
        status=run.status,
        scraper=run.scraper.partition("@")[0],
        version=run.resolved.version if run.resolved else None,
        exit_reason=run.exit_reason,
        retryable=_may_help_later(run),
        attempt=run.attempt,
        max_attempts=run.max_attempts,
        worker=run.worker_id or None,
        total_ms=round(total, 3),
        phases=phases,
        forked_ahead=run.timing.forked_ahead if run.timing else False,
        fetches=run.fetches,
        requests=run.usage.requests if run.usage else 0,
        bytes_by_class=run.usage.bytes_by_class if run.usage else {},
        limits=limits,
        error=run.error,
        summary=[*_where(run, total, phases, has_worker=has_worker), *_fetching(run), *_tight(limits), *_ending(run)],
    )


def _may_help_later(run: Run) -> bool:
    return run.exit_reason is not None and may_help_later(run.exit_reason, run.error.site_status if run.error else None)


def _phases(run: Run, total: float) -> list[PhaseDocument]:
    """Phases in order. Fetching is part of the script's time, but is listed separately."""
    timing = run.timing or Timing()
    own = max(0.0, timing.script_ms - timing.fetch_ms)
    spent = {
        "queue": timing.queue_ms,
        "resolve": timing.resolve_ms,
        "environment": timing.environment_ms,
        "child_start": timing.child_start_ms,
        "fetch": min(timing.fetch_ms, timing.script_ms) if timing.script_ms else timing.fetch_ms,
        "script": own,
        "record": timing.record_ms,
    }
    if run.attempt > 1 and run.timing is not None:
        spent = {"earlier_attempts": max(0.0, total - sum(spent.values())), **spent}
    return [PhaseDocument(name=name, ms=round(ms, 3), percent=_percent(ms, total)) for name, ms in spent.items()]


def _limits(usage: Usage, allowed: Limits, budget: BudgetLimits) -> list[LimitDocument]:
    pairs: dict[str, tuple[float, float | None]] = {
        "wall_seconds": (usage.wall_ms / 1000, allowed.wall_seconds),
        "cpu_seconds": (usage.cpu_ms / 1000, allowed.cpu_seconds),
        "memory_mb": (usage.memory_mb, allowed.memory_mb),
        "output_mb": (usage.output_bytes / 2**20, allowed.output_mb),
        "log_kb": (usage.log_bytes / 2**10, allowed.log_kb),
        "fetches": (usage.fetches, allowed.fetches),
        "budget.requests": (usage.requests, budget.requests),
        "budget.megabytes": (usage.bytes_received / 2**20, budget.megabytes),
    }
    return [
        LimitDocument(name=name, used=round(used, 3), allowed=most, percent=_percent(used, most))
        for name, (used, most) in pairs.items()
        if most is not None
    ]


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole > 0 else 0.0


def _where(run: Run, total: float, phases: list[PhaseDocument], *, has_worker: bool) -> list[str]:
    if run.status is RunStatus.QUEUED and run.not_before is not None:
        why = f": {run.error.message}" if run.error else ""
        return [f"It is put back until {instant(run.not_before)}, when attempt {run.attempt} begins{why}"]
    if run.status is RunStatus.QUEUED:
        words = [f"It has waited {total / 1000:.1f} s in lane {run.lane} at priority {run.priority.value}."]
        name = run.scraper.partition("@")[0]
        untaken = f"No worker takes {name}: none takes from lane {run.lane}, by worker.lanes or worker.takes."
        return words if has_worker else [*words, untaken]
    if run.status is RunStatus.RUNNING:
        return [f"It runs on worker {run.worker_id or '?'}, attempt {run.attempt} of {run.max_attempts}."]
    if run.timing is None:
        return [f"It ended after {total:.0f} ms without having run."]
    most = max(phases, key=lambda phase: phase.ms)
    share = f"{most.ms:.0f} ms ({most.percent:g} %)"
    words = [f"It took {total:.0f} ms; most of it, {share}, went to {_NAMES[most.name]}."]
    if run.timing.queue_ms > SLOW_QUEUE_MS:
        words.append(f"It waited {run.timing.queue_ms:.0f} ms for a worker: add workers or slots to lane {run.lane}.")
    return words


_NAMES = {
    "earlier_attempts": "earlier attempts and the waits between them",
    "queue": "waiting for a free worker",
    "resolve": "finding the scraper",
    "environment": "waiting for its packages to be installed",
    "child_start": "starting its child",
    "fetch": "fetching pages",
    "script": "the script's own work",
    "record": "keeping results and artifacts",
}


def _fetching(run: Run) -> list[str]:
    if not run.fetches:
        return []
    slowest = max(run.fetches, key=lambda fetch: fetch.ms)
    failed = sum(1 for fetch in run.fetches if fetch.error or (fetch.status or 0) >= 400)
    many = "1 fetch" if len(run.fetches) == 1 else f"{len(run.fetches)} fetches"
    words = f"{many}, {failed} of them without a good answer; the slowest took {slowest.ms:.0f} ms"
    return [f"{words}: {slowest.url[:200]}.", *_refusals(run.fetches), *_received(run.usage)]


def _refusals(fetches: Sequence[FetchTrace]) -> list[str]:
    """About the last fetch that tried several ways, or failed with one."""
    told = next((fetch for fetch in reversed(fetches) if fetch.tried), None)
    if told is None:
        return []
    names = ", ".join(dict.fromkeys(str(each.get("way", "")) for each in told.tried))
    why = told.tried[-1].get("reason", "")
    end = f"{told.way} brought the page" if told.way and told.status not in _REFUSALS else "none brought the page"
    return [f"Ways that were refused or failed: {names} ({why}); {end}."]


_REFUSALS = (401, 403, 429, 503)


def _received(usage: Usage | None) -> list[str]:
    """Traffic by proxy class, if not everything was fetched directly."""
    if usage is None or not usage.bytes_by_class.keys() - {"direct"}:
        return []
    parts = [f"{size / 2**20:.2f} MB {_THROUGH.get(name, name)}" for name, size in usage.bytes_by_class.items()]
    return [f"It took {usage.requests} requests and received {', '.join(parts)}."]


_THROUGH = {
    "direct": "directly",
    "datacenter": "through datacenter proxies",
    "residential": "through residential proxies",
    "unlocker": "through an unlocker",
}


def _tight(limits: list[LimitDocument]) -> list[str]:
    return [f"It used {limit.percent:g} % of its {limit.name}." for limit in limits if limit.percent >= TIGHT_PERCENT]


def _ending(run: Run) -> list[str]:
    if run.exit_reason is None:
        return []
    tries = f" after {run.attempt} attempts" if run.attempt > 1 else ""
    words = f"It ended as {run.exit_reason.value}{tries}."
    return [words] if run.status is RunStatus.SUCCEEDED else [words, remedy_of(run.exit_reason)]
