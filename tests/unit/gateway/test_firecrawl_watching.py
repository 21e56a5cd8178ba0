"""What a watcher of the Firecrawl door was told already."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.gateway.doors.firecrawl.watching import Numbers, _reason


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


@pytest.mark.parametrize("words", ["the key was withdrawn", "x" * 200, '"' * 90, "\n" * 90, "이" * 90])
def test_a_reason_fits_the_frame_that_closes_a_connection(words: str) -> None:
    reason = _reason(words)
    assert len(reason.encode()) <= 123
    told = json.loads(reason)
    assert told["type"] == "error"
    assert words.startswith(told["error"])
    assert len(told["error"]) > 15
    assert _reason("") == "{}"
