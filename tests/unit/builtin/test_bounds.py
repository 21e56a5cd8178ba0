"""The cheap check before the estimate never lets a page pass that the estimate would cut."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.builtin.pages import bounds

PIECES = (
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<B class=x>",
    "<i",
    "</I>",
    "<big>",
    "<div ",
    " a=1" * 60,
    ">",
    "<br>",
    "<",
    "x",
)


@pytest.fixture(scope="module", autouse=True)
def _small_budgets() -> Iterator[None]:
    """So that short pages spend them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, budget in (("_DEPTH_BUDGET", 40), ("_ATTRIBUTE_BUDGET", 5000), ("_REOPEN_BUDGET", 12)):
            patch.setattr(bounds, name, budget)
        yield


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_the_check_is_no_milder_than_the_estimate(html: str) -> None:
    if bounds._is_surely_within(html):
        assert bounds._Reckoning().end_of(html) == len(html)
