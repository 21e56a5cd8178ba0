"""Dates in short texts."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard_sdk.extract import parse_date

_NOW = datetime(2024, 5, 10, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01",
        "20240501",
        "2024/5/1",
        "2024. 5. 1.",
        "2024년 5월 1일",
        "2024年5月1日",
        "1 May 2024",
        "1. Mai 2024",
        "1er mai 2024",
        "1 de mayo de 2024",
        "1º de maio de 2024",
        "1 maggio 2024",
        "1 mei 2024",
        "1 maja 2024",
        "1 мая 2024 г.",
        "1 Mayıs 2024",
        "May 1, 2024",
        "May 1st 2024",
        "Posted on Wednesday, May 1st, 2024 by Ann",
        "01-May-2024",
        "2024 May 1",
        "01.05.2024",
        "Stand: 1.5.2024",
    ],
)
def test_a_day_is_read_in_many_forms(text: str) -> None:
    found = parse_date(text)
    assert found == date(2024, 5, 1)
    assert not isinstance(found, datetime)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T10:20:30Z", datetime(2024, 5, 1, 10, 20, 30, tzinfo=UTC)),
        ("2024-05-01T10:20:30.25+09:00", datetime(2024, 5, 1, 10, 20, 30, 250_000, timezone(timedelta(hours=9)))),
        ("2024-05-01 10:20", datetime(2024, 5, 1, 10, 20)),
        ("Wed, 01 May 2024 10:20:30 GMT", datetime(2024, 5, 1, 10, 20, 30, tzinfo=UTC)),
        ("Wed, 01 May 2024 10:20:30 -0500", datetime(2024, 5, 1, 10, 20, 30, tzinfo=timezone(-timedelta(hours=5)))),
        ("May 1, 2024 at 3:04 p.m.", datetime(2024, 5, 1, 15, 4)),
        ("May 1, 2024, 12:04 AM", datetime(2024, 5, 1, 0, 4)),
        ("1. Mai 2024 um 15:04 Uhr", datetime(2024, 5, 1, 15, 4)),
        ("2024. 5. 1. 오후 3:04", datetime(2024, 5, 1, 15, 4)),
        ("15:04, 1 May 2024", datetime(2024, 5, 1, 15, 4)),
        ("2024-05-01 24:00", datetime(2024, 5, 2)),
        ("1714558830", datetime(2024, 5, 1, 10, 20, 30, tzinfo=UTC)),
        ("1714558830000", datetime(2024, 5, 1, 10, 20, 30, tzinfo=UTC)),
    ],
)
def test_a_time_beside_the_day_makes_a_moment(text: str, moment: datetime) -> None:
    found = parse_date(text)
    assert isinstance(found, datetime)
    assert (found, found.tzinfo) == (moment, moment.tzinfo)


def test_day_and_month_are_never_guessed() -> None:
    assert parse_date("03/04/2024") is None
    assert parse_date("03/04/2024", order="dmy") == date(2024, 4, 3)
    assert parse_date("03/04/2024", order="mdy") == date(2024, 3, 4)
    assert parse_date("23/04/2024") == date(2024, 4, 23)
    assert parse_date("04/23/2024") == date(2024, 4, 23)
    assert parse_date("04/04/2024") == date(2024, 4, 4)
    assert parse_date("24.05.12") is None
    assert parse_date("24.05.12", order="ymd") == date(2024, 5, 12)
    assert parse_date("05/12/98", order="mdy") == date(1998, 5, 12)
    with pytest.raises(ValueError, match="order"):
        parse_date("1", order="ydm")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3 days ago", date(2024, 5, 7)),
        ("a week ago", date(2024, 5, 3)),
        ("2 hours ago", datetime(2024, 5, 10, 10, 30, tzinfo=UTC)),
        ("3일 전", date(2024, 5, 7)),
        ("Yesterday", date(2024, 5, 9)),
        ("어제", date(2024, 5, 9)),
        ("Today at 9:15", datetime(2024, 5, 10, 9, 15)),
    ],
)
def test_a_relative_date_counts_from_now(text: str, found: date) -> None:
    assert parse_date(text, now=_NOW) == found


@pytest.mark.parametrize(
    "text", [None, "", "May 2024", "May 5", "2024-13-01", "31.02.2024", "soon", "1.2.3.4", "12345"]
)
def test_what_is_no_whole_date_is_none(text: str | None) -> None:
    assert parse_date(text) is None


@given(st.text(max_size=60))
def test_any_text_gives_a_date_or_none(text: str) -> None:
    found = parse_date(text, order="dmy")
    assert found is None or isinstance(found, date)


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2099, 1, 1), timezones=st.just(UTC)))
def test_an_iso_moment_comes_back(moment: datetime) -> None:
    assert parse_date(moment.isoformat()) == moment
