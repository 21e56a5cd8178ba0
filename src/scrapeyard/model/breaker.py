"""The breaker of a job: what it hears, when it opens, how it closes again.

    closed ──► open        so many failures in a row, or their share of the last outcomes
      ▲         │ cooldown
      └── half open ──► open again
       a success   every probe failed

It counts every attempt that a worker recorded, in the order of recording: `s` for a success, `e` for a failure, even if
the item will be retried. Attempts that only waited for their turn, were cancelled, hit the end of a budget, whose
worker was lost, whose scraper could not be had, or that robots.txt forbids do not count: they say nothing about how the
site is. The store updates the breaker in the same transaction as the records, so nothing is missed or counted twice,
whoever leads.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from scrapeyard.model.exit_reasons import ExitReason
from scrapeyard.model.job import BreakerPolicy, BreakerState, ItemOutcome

_SILENT = frozenset(
    {
        *(ExitReason.CANCELLED, ExitReason.FETCH_BUDGET, ExitReason.FETCH_ROBOTS),
        *(ExitReason.LOST_WORKER, ExitReason.SOURCE_UNAVAILABLE),
    }
)


def letters(outcomes: Iterable[ItemOutcome]) -> str:
    """The outcomes that the breaker counts, as `s` and `e`, in order."""
    return "".join(
        "s" if outcome.exit_reason.is_good else "e"
        for outcome in outcomes
        if not outcome.postponed and outcome.exit_reason not in _SILENT
    )


def heard(policy: BreakerPolicy, state: BreakerState, ends: str, now: float) -> BreakerState:
    """The breaker's state after these outcomes. Items that end while it is open do not change it."""
    if not policy.enabled or not ends or state.state == "open":
        return state
    if state.state == "half_open":
        return _probed(policy, state, ends, now)
    recent, in_a_row = state.recent, state.in_a_row
    if "e" not in ends and "e" not in recent:  # most parts of a large job: nothing can open it
        return replace(state, recent=(recent + ends)[-policy.window :], in_a_row=0)
    for end in ends:
        recent = (recent + end)[-policy.window :]
        in_a_row = in_a_row + 1 if end == "e" else 0
        if reason := _fault(policy, recent, in_a_row):
            return _opened(replace(state, recent=recent, in_a_row=in_a_row), reason, now)
    return replace(state, recent=recent, in_a_row=in_a_row)


def half_opened(policy: BreakerPolicy, state: BreakerState) -> BreakerState:
    """The cooldown is over: `in_a_row` now counts failed probes."""
    return replace(state, state="half_open", in_a_row=0, recent="", probing=policy.probes)


def closed(state: BreakerState) -> BreakerState:
    """A reset breaker; only the number of trips is preserved."""
    return BreakerState(trips=state.trips)


def _probed(policy: BreakerPolicy, state: BreakerState, ends: str, now: float) -> BreakerState:
    failed, success, rest = ends.partition("s")
    if success:
        return heard(policy, closed(state), success + rest, now)
    state = replace(state, in_a_row=state.in_a_row + len(failed))
    if state.in_a_row < policy.probes:
        return state
    return _opened(state, f"{state.in_a_row} probes after the cooldown failed", now)


def _fault(policy: BreakerPolicy, recent: str, in_a_row: int) -> str:
    if in_a_row >= policy.failures:
        return f"{in_a_row} attempts in a row failed"
    failed = recent.count("e")
    if len(recent) >= policy.window and failed >= policy.ratio * policy.window:
        return f"{failed} of the last {len(recent)} attempts failed"
    return ""


def _opened(state: BreakerState, reason: str, now: float) -> BreakerState:
    return replace(state, state="open", opened_at=now, reason=reason, probing=0, trips=state.trips + 1)
