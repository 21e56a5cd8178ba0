"""Ranges of versions: what npm's words mean, held against their definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.errors import BadRequest
from scrapeyard.repository.manifest.semver import (
    MAX_RANGE_LENGTH,
    exact_version,
    looks_like_range,
    parse_range,
    precedence,
)

NUMBER = st.integers(0, 12)
TRIPLE = st.tuples(NUMBER, NUMBER, NUMBER)
PRE = st.sampled_from(["0", "1", "alpha", "alpha.1", "beta.2", "rc.1"])


def holds(text: str, version: str) -> bool:
    return parse_range(text).holds(precedence(version))


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("^1.4", "1.4.0 1.4.7 1.10.0", "1.3.9 2.0.0 2.0.0-rc.1 1.5.0-rc.1 0.9.0"),
        ("^1.4.2", "1.4.2 1.5.0", "1.4.1 2.0.0"),
        ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0 1.0.0"),
        ("^0.0.3", "0.0.3", "0.0.2 0.0.4 0.1.0"),
        ("^0.0", "0.0.0 0.0.9", "0.1.0"),
        ("^0", "0.0.1 0.9.9", "1.0.0"),
        ("^1", "1.0.0 1.9.9", "0.9.9 2.0.0"),
        ("^1.x", "1.0.0 1.9.9", "2.0.0"),
        ("~1.4", "1.4.0 1.4.9", "1.3.9 1.5.0"),
        ("~1.4.2", "1.4.2 1.4.9", "1.4.1 1.5.0"),
        ("~1", "1.0.0 1.9.0", "2.0.0"),
        ("~0.2", "0.2.0 0.2.9", "0.3.0"),
        ("1.x", "1.0.0 1.9.9", "0.9.9 2.0.0"),
        ("1.X", "1.0.0", "2.0.0"),
        ("1.*", "1.0.0 1.9.9", "2.0.0"),
        ("1", "1.0.0 1.9.9", "2.0.0"),
        ("1.4.x", "1.4.0 1.4.9", "1.5.0"),
        ("1.4", "1.4.0 1.4.9", "1.5.0"),
        ("*", "0.0.0 9.9.9", "1.0.0-rc.1"),
        ("x", "0.0.0", "1.0.0-rc.1"),
        (">=1.2 <2", "1.2.0 1.99.0", "1.1.9 2.0.0 2.0.0-rc.1"),
        (">1.2", "1.3.0", "1.2.0 1.2.9"),
        (">1", "2.0.0", "1.9.9"),
        ("<=1.2", "1.2.9 0.1.0", "1.3.0"),
        ("<1.2", "1.1.9", "1.2.0 1.2.0-rc.1"),
        (">1.2.3", "1.2.4", "1.2.3"),
        ("=1.4.2", "1.4.2 1.4.2+build", "1.4.3"),
        (">=2.0.0-rc.1", "2.0.0-rc.1 2.0.0-rc.2 2.0.0 3.0.0", "2.0.0-beta.1 2.0.1-rc.1 3.0.0-rc.1"),
        (">=2.0.0-alpha <2.0.0", "2.0.0-alpha 2.0.0-rc.1", "2.0.0 1.9.9"),
        ("^1.2.3-beta.2", "1.2.3-beta.2 1.2.3-rc.1 1.2.3 1.9.0", "1.2.3-beta.1 1.2.4-beta.3 2.0.0-0 2.0.0"),
        ("~1.2.3-beta.2", "1.2.3-beta.4 1.2.9", "1.2.4-beta.3 1.3.0"),
        ("^0.0.1-beta", "0.0.1-beta 0.0.1", "0.0.2"),
        ("^1.4 <1.6", "1.4.0 1.5.9", "1.6.0"),
        (">*", "", "0.0.0 1.0.0"),
        ("<*", "", "0.0.0 1.0.0"),
        (">=*", "0.0.0 1.0.0", "1.0.0-rc.1"),
        (">= 1.2 <  2", "1.2.0 1.9.9", "1.1.9 2.0.0"),
        ("^ 1.4", "1.4.0 1.9.9", "2.0.0"),
        ("~ 1.4.2", "1.4.2", "1.5.0 1.4.1"),
        ("= 1.4.2", "1.4.2", "1.4.3"),
        ("~>1.4", "1.4.0 1.4.9", "1.5.0"),
        ("~> 1", "1.9.0", "2.0.0"),
        (" 1  <1.5 ", "1.4.9", "1.5.0 2.0.0"),
        ("v1.4.2", "1.4.2", "1.4.3"),
        ("v1", "1.0.0 1.9.9", "2.0.0"),
        ("=v1.4", "1.4.9", "1.5.0"),
        ("^v1.4 >=v1.6", "1.6.0", "1.5.9 2.0.0"),
        ("~v1.2.3-beta", "1.2.3-rc 1.2.9", "1.2.3-alpha 1.2.4-rc 1.3.0"),
        ("1.2 - 1.4", "1.2.0 1.4.9", "1.1.9 1.5.0 1.5.0-rc.1"),
        ("1.2.3  -  2", "1.2.3 2.9.9", "1.2.2 3.0.0"),
        ("1.2.3 - 1.4.5", "1.2.3 1.4.5", "1.4.6"),
        ("1.2.3-rc.1 - 2.0.0-rc.2", "1.2.3-rc.1 1.2.3 2.0.0-rc.2", "1.2.3-beta 2.0.0-rc.3 2.0.0 1.9.0-rc.1"),
        ("1.2.3+a - 2.0.0+b", "1.2.3 2.0.0+c", "2.0.1 2.0.0-rc.1"),
        ("* - 1.4", "0.0.0 1.4.9", "1.5.0"),
        ("1.4 - x", "1.4.0 9.0.0", "1.3.9"),
        ("^1.4 || ^3", "1.4.0 1.9.9 3.9.9", "1.3.9 2.0.0 4.0.0"),
        ("1.2.3||2.0.0", "1.2.3 2.0.0", "1.2.4"),
        ("<1 || 2.0 - 2.2 || >= 5", "0.9.9 2.2.9 5.0.0", "1.0.0 2.3.0 4.9.9"),
        ("1.0.0-rc.1 || >2", "1.0.0-rc.1 3.0.0", "1.0.0-rc.2 3.0.0-rc.1"),
        ("||", "0.0.0 9.9.9", "1.0.0-rc.1"),
        ("1.2 || ", "1.2.0 9.9.9", "1.0.0-rc.1"),
    ],
)
def test_what_is_in_a_range(text: str, inside: str, outside: str) -> None:
    assert [version for version in inside.split() if not holds(text, version)] == []
    assert [version for version in outside.split() if holds(text, version)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "^", "latest", "vv1", "v", "1.2.3.4", ">= >= 1.2", "1|2", "1 -2", "1 -", "- 1", "01.2", "1.02.3"),
        *("^^1", "1.x-rc.1", "1.2-rc.1", "1.2.3-01", "1.2.3-", "==1", "1,2", "1\n", "1\t2", "\u0661.2"),
        *("1 - 2 - 3", ">1 - 2", "1 - ^2", "1 - 2 3", "1 || latest", "1 ||| 2", "^ || 1", "1 || v"),
        *("1" * 20, "1 " * 100 + "1"),
    ],
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(BadRequest, match="range") as caught:
        parse_range(text)
    assert len(caught.value.message) < 300


@given(st.text(max_size=MAX_RANGE_LENGTH + 5) | st.text("0129.xv^~<>=*|- -+rc", max_size=40))
def test_any_text_is_a_range_or_refused(text: str) -> None:
    try:
        parse_range(text)
    except BadRequest:
        return
    assert 0 < len(text) <= MAX_RANGE_LENGTH


@given(TRIPLE, TRIPLE)
def test_a_caret_keeps_the_leftmost_number_that_is_not_zero(low: tuple[int, int, int], other: tuple[int, ...]) -> None:
    kept = next((place for place, number in enumerate(low) if number), 2) + 1
    expected = other >= low and other[:kept] == low[:kept]
    assert holds(f"^{dotted(low)}", dotted(other)) is expected


@given(TRIPLE, TRIPLE)
def test_a_tilde_keeps_the_minor(low: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert holds(f"~{dotted(low)}", dotted(other)) is (other >= low and other[:2] == low[:2])


@given(TRIPLE, TRIPLE, st.sampled_from([".x", ".*", "", ".X"]), st.integers(1, 2))
def test_what_is_left_open_is_any(
    low: tuple[int, int, int], other: tuple[int, int, int], mark: str, given_numbers: int
) -> None:
    text = dotted(low[:given_numbers]) + mark
    assert holds(text, dotted(other)) is (other[:given_numbers] == low[:given_numbers])


@given(TRIPLE, TRIPLE, TRIPLE)
def test_a_space_means_and(low: tuple[int, int, int], high: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert holds(f">={dotted(low)} <{dotted(high)}", dotted(other)) is (low <= other < high)


@given(TRIPLE, st.one_of(st.none(), PRE), TRIPLE, PRE, st.sampled_from(["^", "~", ">=", "<=", ">", "<", "="]))
def test_a_prerelease_is_in_only_where_the_range_names_one_of_the_same_numbers(
    low: tuple[int, int, int], pre: str | None, other: tuple[int, int, int], other_pre: str, sign: str
) -> None:
    text = sign + dotted(low) + (f"-{pre}" if pre else "")
    if holds(text, f"{dotted(other)}-{other_pre}"):
        assert pre
        assert other == low


@given(TRIPLE, TRIPLE)
def test_build_metadata_does_not_matter(low: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert holds(f"^{dotted(low)}", dotted(other)) is holds(f"^{dotted(low)}", f"{dotted(other)}+build.7")


RANGES = st.sampled_from(["^1.2", "~0.3", ">=2 <4", "1.x", "3.1.4", "2 - 5.1", "1.2.3-rc.1", ">=2.0.0-beta <3", "*"])


@given(RANGES, RANGES, TRIPLE, st.one_of(st.none(), PRE), st.sampled_from(["||", " || ", "  ||  "]))
def test_two_bars_mean_or(one: str, other: str, numbers: tuple[int, int, int], pre: str | None, bars: str) -> None:
    version = dotted(numbers) + (f"-{pre}" if pre else "")
    assert holds(f"{one}{bars}{other}", version) is (holds(one, version) or holds(other, version))


@given(TRIPLE, st.integers(1, 3), TRIPLE, st.integers(1, 3), TRIPLE)
def test_a_hyphen_means_from_and_up_to(
    low: tuple[int, ...], low_parts: int, high: tuple[int, ...], high_parts: int, other: tuple[int, ...]
) -> None:
    low, high = low[:low_parts], high[:high_parts]
    expected = other >= (*low, 0, 0)[:3] and other[:high_parts] <= high
    assert holds(f"{dotted(low)} - {dotted(high)}", dotted(other)) is expected


@given(TRIPLE, TRIPLE, st.sampled_from(["^", "~", ">=", "<=", ">", "<", "="]), st.integers(1, 3), st.integers(0, 3))
def test_blanks_after_an_operator_and_a_v_change_nothing(
    low: tuple[int, int, int], other: tuple[int, int, int], sign: str, parts: int, blanks: int
) -> None:
    plain = holds(sign + dotted(low[:parts]), dotted(other))
    assert holds(sign + " " * blanks + dotted(low[:parts]), dotted(other)) is plain
    assert holds(f"{sign}{' ' * blanks}v{dotted(low[:parts])}", dotted(other)) is plain
    assert sign != "~" or holds(f"~>{dotted(low[:parts])}", dotted(other)) is plain


@pytest.mark.parametrize("text", ["1.4.2", "v1.4.2", "=1.4.2", "=v1.4.2", "= v1.4.2", " 1.4.2 "])
def test_a_single_version_may_be_written_in_several_ways(text: str) -> None:
    assert exact_version(text) == "1.4.2"


@pytest.mark.parametrize("text", ["1.4", "v1", "^1.4.2", ">=1.4.2", "1.4.2 || 1.4.3", "latest", ""])
def test_a_range_is_no_single_version(text: str) -> None:
    assert exact_version(text) == ""


def test_ranges_and_channels_are_told_apart() -> None:
    assert all(looks_like_range(text) for text in ("^1.4", "1.x", "*", "x", "X", ">=1"))
    assert not any(looks_like_range(text) for text in ("stable", "beta", "next", "latest", "v1", "v"))
