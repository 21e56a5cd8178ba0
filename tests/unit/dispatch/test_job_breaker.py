"""What the breaker of a job hears, beside a plain model of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.model import ExitReason
from scrapeyard.model.breaker import closed, half_opened, heard, letters
from scrapeyard.model.job import BreakerPolicy, BreakerState, ItemOutcome

POLICY = BreakerPolicy()
CLOSED = BreakerState()


def test_twenty_in_a_row_open_it() -> None:
    assert heard(POLICY, CLOSED, "e" * 19 + "s" + "e" * 19, 5.0).state == "closed"
    state = heard(POLICY, CLOSED, "s" * 40 + "e" * 20, 5.0)
    assert (state.state, state.opened_at, state.trips) == ("open", 5.0, 1)
    assert "20 attempts in a row" in state.reason


def test_half_of_a_full_window_opens_it() -> None:
    assert heard(POLICY, CLOSED, "es" * 24, 5.0).state == "closed"
    assert heard(POLICY, CLOSED, "es" * 25, 5.0).state == "open"
    assert heard(POLICY, CLOSED, "ess" * 50, 5.0).state == "closed"


def test_a_single_probe_that_succeeds_closes_it() -> None:
    probed = half_opened(POLICY, heard(POLICY, CLOSED, "e" * 20, 5.0))
    assert (probed.state, probed.probing) == ("half_open", 3)
    state = heard(POLICY, probed, "ees", 400.0)
    assert (state.state, state.in_a_row, state.recent, state.trips) == ("closed", 0, "s", 1)


def test_it_opens_again_when_every_probe_failed() -> None:
    probed = half_opened(POLICY, heard(POLICY, CLOSED, "e" * 20, 5.0))
    assert heard(POLICY, probed, "ee", 400.0).state == "half_open"
    state = heard(POLICY, heard(POLICY, probed, "ee", 400.0), "e", 401.0)
    assert (state.state, state.opened_at, state.trips) == ("open", 401.0, 2)


def test_what_ends_late_does_not_move_an_open_one() -> None:
    state = heard(POLICY, CLOSED, "e" * 20, 5.0)
    assert heard(POLICY, state, "sse", 6.0) == state


def test_one_that_is_switched_off_hears_nothing() -> None:
    assert heard(BreakerPolicy(enabled=False), CLOSED, "e" * 100, 5.0) == CLOSED


def test_closing_keeps_how_often_it_opened() -> None:
    assert closed(BreakerState(state="open", trips=3, in_a_row=9, recent="e")) == BreakerState(trips=3)


@pytest.mark.parametrize(
    ("reason", "postponed", "told"),
    [
        (ExitReason.SUCCEEDED, False, "s"),
        (ExitReason.SKIPPED, False, "s"),
        (ExitReason.FETCH_STATUS, False, "e"),
        (ExitReason.FETCH_RATE_LIMITED, True, ""),
        (ExitReason.CANCELLED, False, ""),
        (ExitReason.FETCH_BUDGET, False, ""),
        (ExitReason.FETCH_ROBOTS, False, ""),
        (ExitReason.LOST_WORKER, False, ""),
    ],
)
def test_what_is_heard_of_an_attempt(reason: ExitReason, postponed: bool, told: str) -> None:
    outcome = ItemOutcome(
        seq=0, attempt=1, exit_reason=reason, started_at=0, finished_at=1, not_before=9 if postponed else None,
        postponed=postponed,
    )  # fmt: skip
    assert letters([outcome]) == told


@given(
    st.lists(st.text("se", max_size=30), max_size=20),
    st.integers(1, 8),
    st.integers(1, 12),
    st.sampled_from([0.1, 0.5, 0.9, 1.0]),
)
def test_however_records_are_cut_it_opens_at_the_same_attempt(
    pieces: list[str], failures: int, window: int, ratio: float
) -> None:
    policy = BreakerPolicy(failures=failures, window=window, ratio=ratio)
    state = CLOSED
    for piece in pieces:
        state = heard(policy, state, piece, 1.0)
    ends = "".join(pieces)
    trip = next((at for at in range(1, len(ends) + 1) if opens(policy, ends[:at])), None)
    assert (state.state == "open") == (trip is not None)
    if trip is not None:
        assert state.recent == ends[:trip][-window:]


def opens(policy: BreakerPolicy, ends: str) -> bool:
    """The rule in other words."""
    recent = ends[-policy.window :]
    full = len(recent) == policy.window
    return ends.endswith("e" * policy.failures) or (full and recent.count("e") / policy.window >= policy.ratio - 1e-12)
