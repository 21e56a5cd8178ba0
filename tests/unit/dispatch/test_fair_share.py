"""Shares of a lane between owners and jobs, whatever the sizes of their batches and however little room there is."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.dispatch.feeding.shares import WEIGHTS, Claim, FairShare
from scrapeyard.model import Priority

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


def claim(job_id: str, owner: str = "", priority: Priority = NORMAL) -> Claim:
    return Claim(job_id=job_id, owner=owner, priority=priority)


def hand_out(share: FairShare, claims: list[Claim], rounds: int, cost: dict[str, float] | None = None) -> Counter[str]:
    """One batch a round, as when there is room for one; the time that each job was given."""
    given: Counter[str] = Counter()
    for _ in range(rounds):
        share.heed(claims)
        chosen = share.choose({one.job_id for one in claims})
        assert chosen is not None
        seconds = (cost or {}).get(chosen.job_id, 1.0)
        share.charge(chosen, seconds)
        given[chosen.job_id] += seconds  # type: ignore[assignment]
    return given


def test_equal_jobs_share_evenly_though_one_has_larger_batches() -> None:
    given = hand_out(FairShare(), [claim("a"), claim("b")], 600, {"a": 1.0, "b": 0.1})
    assert abs(given["a"] - given["b"]) <= 1.0


def test_priorities_weigh_four_two_one_and_none_starves() -> None:
    given = hand_out(FairShare(), [claim("h", priority=HIGH), claim("n"), claim("l", priority=LOW)], 700)
    assert [round(given[name]) for name in "hnl"] == [400, 200, 100]


def test_an_owner_with_many_jobs_gets_no_more_than_one_with_a_single_job() -> None:
    many = [claim(f"m{number}", "many") for number in range(9)]
    given = hand_out(FairShare(), [*many, claim("one", "single")], 900)
    assert abs(given["one"] - 450) <= 1
    assert all(abs(given[one.job_id] - 50) <= 1 for one in many)


def test_a_newcomer_neither_waits_nor_takes_all() -> None:
    share = FairShare()
    hand_out(share, [claim("old")], 1000)
    given = hand_out(share, [claim("old"), claim("new")], 100)
    assert abs(given["old"] - given["new"]) <= 2


def test_a_job_that_could_not_use_its_share_catches_up_on_little() -> None:
    share, claims = FairShare(), [claim("held"), claim("free")]
    for _ in range(1000):
        share.heed(claims)
        chosen = share.choose({"free"})
        assert chosen is not None
        share.charge(chosen, 1.0)
    given = hand_out(share, claims, 100)
    assert 45 <= given["free"] <= 50


def test_leaving_for_a_moment_does_not_pay() -> None:
    share, stays, leaves = FairShare(), claim("stays"), claim("leaves")
    given: Counter[str] = Counter()
    for number in range(300):
        claims = [stays, leaves] if number % 3 else [stays]
        given.update(hand_out(share, claims, 1))
    assert given["leaves"] <= given["stays"] + 1


def test_nobody_able_means_nobody_chosen() -> None:
    share = FairShare()
    share.heed([claim("a")])
    assert share.choose(set()) is None
    share.heed([])
    assert share.choose({"a"}) is None


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([HIGH, NORMAL, LOW])), min_size=1, max_size=8),
    st.lists(st.integers(0, 255), min_size=100, max_size=100),
)
def test_who_is_always_able_is_served_within_a_bound(drawn: list[tuple[str, Priority]], presence: list[int]) -> None:
    """However others come and go, between two turns of a job they are given no more than a bound that does not grow."""
    share = FairShare()
    claims = [claim(f"j{number}", owner, priority) for number, (owner, priority) in enumerate(drawn)]
    watched, waited = claims[0], 0
    bound = 8 * sum(WEIGHTS[one.priority] for one in claims)
    for mask in presence:
        present = [one for number, one in enumerate(claims) if one is watched or mask & 1 << number]
        share.heed(present)
        chosen = share.choose({one.job_id for one in present})
        assert chosen is not None
        share.charge(chosen, 1.0)
        waited = 0 if chosen is watched else waited + 1
        assert waited <= bound
