"""Policies over one another, and the waits between attempts."""

from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.model import Backoff, BudgetLimits, FetchPolicy

_POLICIES = st.builds(
    FetchPolicy,
    robots=st.sampled_from(["", "ignore", "obey"]),
    proxy=st.sampled_from(["", "none", "home"]),
    escalate=st.sampled_from([None, True, False]),
    max_age_seconds=st.sampled_from([None, 0.0, 5.0]),
    budget=st.builds(BudgetLimits, requests=st.sampled_from([None, 1, 2]), seconds=st.sampled_from([None, 1.0])),
    backoff=st.builds(Backoff, kind=st.sampled_from(["", "linear"]), first_seconds=st.sampled_from([None, 0.0])),
)


@given(_POLICIES, _POLICIES)
def test_the_stronger_wins_where_it_says_something(strong: FetchPolicy, weak: FetchPolicy) -> None:
    both, silent = strong.over(weak), FetchPolicy()
    for name in ("robots", "proxy", "escalate", "max_age_seconds"):
        own = getattr(strong, name)
        assert getattr(both, name) == (getattr(weak, name) if own == getattr(silent, name) else own)
    assert both.budget == strong.budget.over(weak.budget)
    assert both.backoff == strong.backoff.over(weak.backoff)


@given(_POLICIES, _POLICIES, _POLICIES)
def test_it_does_not_matter_which_two_are_put_together_first(a: FetchPolicy, b: FetchPolicy, c: FetchPolicy) -> None:
    assert a.over(b).over(c) == a.over(b.over(c))
    assert a.over(FetchPolicy()) == a == FetchPolicy().over(a)


def test_false_and_zero_are_wishes() -> None:
    strong = FetchPolicy(escalate=False, max_age_seconds=0)
    assert strong.over(FetchPolicy(escalate=True, max_age_seconds=60)) == strong


def test_waits_grow_as_the_kind_says_up_to_the_cap() -> None:
    assert [Backoff().seconds(attempt) for attempt in (1, 2, 3, 4, 50)] == [5, 10, 20, 40, 300]
    linear = Backoff(kind="linear", first_seconds=3, cap_seconds=10)
    assert [linear.seconds(attempt) for attempt in (1, 2, 3, 4, 5)] == [3, 6, 9, 10, 10]
    assert Backoff(first_seconds=0).seconds(9) == 0
