"""What a watcher of the Firecrawl door was told already."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.gateway.doors.firecrawl.watching import Numbers


@given(st.lists(st.integers(0, 300)))
def test_each_number_is_new_once(numbers: list[int]) -> None:
    told, seen = Numbers(), set[int]()
    for number in numbers:
        assert told.add(number) is (number not in seen)
        seen.add(number)


def test_a_million_items_take_little_memory() -> None:
    tracemalloc.start()
    try:
        told = Numbers()
        assert all(told.add(number) for number in range(1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
