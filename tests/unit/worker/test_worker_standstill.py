"""A process that stood still for a lease is not certain of its runs until the store was asked."""

from scrapeyard.worker.heartbeat import StallDetector


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_that_passes_between_looks_is_no_standstill() -> None:
    clock = Clock()
    standstill = StallDetector(3, clock)
    for _ in range(10):
        clock.now += 2.9
        assert standstill.is_over


def test_a_gap_of_more_than_a_lease_makes_uncertain_until_the_store_was_asked() -> None:
    clock = Clock()
    standstill = StallDetector(3, clock)
    clock.now += 3.1
    assert not standstill.is_over
    assert not standstill.is_over
    standstill.asked(standstill.look())
    assert standstill.is_over


def test_an_answer_from_before_the_gap_proves_nothing() -> None:
    clock = Clock()
    standstill = StallDetector(3, clock)
    stops = standstill.look()
    clock.now += 4
    standstill.look()
    standstill.asked(stops)
    assert not standstill.is_over
