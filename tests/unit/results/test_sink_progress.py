"""Progress of deliveries to sinks: a set of items that grows in any order, stored in a few bytes."""

from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.results.sinks import progress
from scrapeyard.results.sinks.progress import ItemNumbers, Passing, SinkProgress

numbers = st.lists(st.integers(0, 300), max_size=60)


@given(numbers, st.integers(0, 50))
def test_a_set_is_stored_and_read_back(given_numbers: list[int], at: int) -> None:
    ahead = {number for number in given_numbers if number >= at}
    stored = ItemNumbers.of(at, ahead)
    assert stored.set_bits() == ahead
    for number in range(400):
        assert (number in stored) == (number < at or number in ahead)
    kept = progress.decode(progress.encode(SinkProgress(passed=stored, number=3)))
    assert (kept.passed, kept.number) == (stored, 3)


@given(st.lists(numbers, max_size=6), st.integers(0, 100))
def test_what_is_passed_stays_passed_in_whatever_order_it_came(pieces: list[list[int]], skipped: int) -> None:
    passing, known = Passing(ItemNumbers()), set[int]()
    for piece in pieces:
        passing.add(piece)
        known |= set(piece)
        passing = Passing(passing.numbers())  # another process reads it
    passing.skip_to(skipped)
    known |= set(range(skipped))
    assert all((number in passing) == (number in known) for number in range(400))
    assert passing.at not in known, "below it all are passed, and it is not"


def test_after_a_redrive_only_what_ended_before_it_is_unchanged() -> None:
    before = SinkProgress(seen_at=1000.0, passed=ItemNumbers.of(10, {12}), number=4)
    after = before.after_redrive(1)
    assert (after.redrives, after.passed, after.number) == (1, ItemNumbers(), 4)
    assert after.is_unchanged(5, 900.0)
    assert after.is_unchanged(12, 900.0)
    assert not after.is_unchanged(11, 900.0), "it was not delivered before"
    assert not after.is_unchanged(5, 990.0), "clocks may differ by a minute"


def test_a_second_redrive_forgets_nothing_of_the_first() -> None:
    first = SinkProgress(seen_at=1000.0, passed=ItemNumbers.of(10, ())).after_redrive(1)
    second = SinkProgress(
        redrives=1,
        seen_at=5000.0,
        passed=ItemNumbers.of(3, ()),
        before=first.before,
        unchanged_until=first.unchanged_until,
    ).after_redrive(2)
    assert second.is_unchanged(7, 900.0)
    assert not second.is_unchanged(7, 2000.0), "it ran again after the first redrive, and was not delivered since"
