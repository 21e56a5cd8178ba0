"""Numbers in short texts."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard_sdk.extract import parse_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234 reviews", "1234"),
        ("4.5 out of 5", "4.5"),
        ("4,5 von 5", "4.5"),
        ("1.234,5", "1234.5"),
        ("1,234.5", "1234.5"),
        ("1 234 567 views", "1234567"),
        ("1'234.50", "1234.50"),
        ("0.125 l", "0.125"),
        ("-3 °C", "-3"),
        ("−3,5 °C", "-3.5"),
        ("Balance: -12.30", "-12.30"),
        ("5-10 pieces", "5"),
        ("(42)", "42"),
        ("12 %", "12"),
        ("1.2k", "1200"),
        ("1.2K followers", "1200"),
        ("3,4 Mio. Einwohner", "3400000"),
        ("3 M", "3"),
        ("5 Minuten", "5"),
        ("1.5만", "15000"),
        ("조회수 3.2억회", "320000000"),
        ("1.2 million views", "1200000"),
        ("10 minutes", "10"),
        ("2 millionaires", "2"),
        ("１２３", "123"),
        ("١٢٣٫٥", "123.5"),
        ("1\u00a0234\u202f567", "1234567"),
    ],
)
def test_a_number_is_read_as_a_reader_reads_it(text: str, number: str) -> None:
    assert parse_number(text) == Decimal(number)


@pytest.mark.parametrize("text", [None, "", "none", "—", "."])
def test_no_number_is_none(text: str | None) -> None:
    assert parse_number(text) is None


def test_the_decimal_sign_settles_three_digits() -> None:
    assert parse_number("1.234") == 1234
    assert parse_number("1.234", decimal=".") == Decimal("1.234")
    assert parse_number("1,234", decimal=".") == 1234
    assert parse_number("1,234", decimal=",") == Decimal("1.234")
    assert parse_number("1.234,5", decimal=",") == Decimal("1234.5")
    with pytest.raises(ValueError, match="decimal"):
        parse_number("1", decimal=";")


@given(st.text(max_size=60))
def test_any_text_gives_a_finite_number_or_none(text: str) -> None:
    number = parse_number(text)
    assert number is None or number.is_finite()


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=2))
def test_a_number_as_english_and_german_write_it(number: Decimal) -> None:
    english = f"{number:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert parse_number(english) == parse_number(german) == number
