"""When schedules are due: fields, names, time zones, clocks that go forward and back."""

from datetime import UTC, datetime
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.dispatch.schedules.timetable import at, coming, next_due, passed, read_cron, read_zone, times_after
from scrapeyard.errors import BadRequest
from scrapeyard.model.schedule import Schedule, jitter_of, subject_id

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Seoul", "Africa/Casablanca")
CRONS = ("30 2 * * *", "0 * * * *", "*/10 * * * *", "0,30 2 * * *", "15 1-3 * * *", "0 2-4 * * sun", "*/20 1-3 * * *")
TURNS = (
    datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC), datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
)  # fmt: skip
"""When clocks are changed in one of these zones."""


def a_schedule(cron: str = "", zone: str = "UTC", **given: Any) -> Schedule:
    plain: dict[str, Any] = {"id": "schedule_1", "target": "job", "template": Raw(b"{}"), "anchor": 0.0}
    return Schedule(cron=cron, time_zone=zone, created_at=0.0, updated_at=0.0, **(plain | given))


def local(cron: str, zone: str, begin: str, count: int) -> list[str]:
    """The next times after a local one, as a clock on the wall there shows them."""
    after = datetime.fromisoformat(begin).replace(tzinfo=ZoneInfo(zone)).timestamp()
    due = coming(a_schedule(cron, zone), after, count)
    return [datetime.fromtimestamp(each, ZoneInfo(zone)).isoformat(timespec="minutes") for each in due]


class TestCron:
    @pytest.mark.parametrize(
        ("text", "plain"),
        [
            ("0 3 * * *", "0 3 * * *"),
            ("  */5  8-18\t* jan-mar MON-fri ", "*/5 8-18 * jan-mar MON-fri"),
            ("@daily", "0 0 * * *"),
            ("@Weekly", "0 0 * * 0"),
            ("0 0 L * *", "0 0 L * *"),
        ],
    )
    def test_what_is_understood(self, text: str, plain: str) -> None:
        assert read_cron(text) == plain

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "five fields"),
            ("* * * *", "five fields"),
            ("0 0 3 * * *", "five fields"),
            ("@reboot", "five fields"),
            ("61 * * * *", "bad minute"),
            ("* 24 * * *", "bad hour"),
            ("* * 0 * *", "bad day-of-month"),
            ("* * * foo *", "bad month"),
            ("* * * * 8", "bad day-of-week"),
            ("*/0 * * * *", "bad minute"),
            ("0 0 31 2 *", "bad day-of-month"),
            ("0 0 */30 2 mon#5", "fifty years"),
            ("٣ * * * *", "five fields"),
            ("0 " * 150, "five fields"),
        ],
    )
    def test_what_is_refused(self, text: str, words: str) -> None:
        with pytest.raises(BadRequest, match=words):
            read_cron(text)

    @given(st.text(max_size=40))
    def test_any_text_is_understood_or_refused(self, text: str) -> None:
        try:
            cron = read_cron(text)
        except BadRequest:
            return
        assert next_due(a_schedule(cron), 1.8e9) is not None

    @pytest.mark.parametrize("name", ["", "Nowhere/Land", "../../etc/passwd", "/etc/localtime", "\0", "a" * 5000, "."])
    def test_unknown_time_zones_are_refused(self, name: str) -> None:
        with pytest.raises(BadRequest, match="time_zone"):
            read_zone(name)


class TestClocks:
    def test_a_time_that_does_not_exist_is_due_after_the_gap(self) -> None:
        assert local("30 2 * * *", "Europe/Berlin", "2026-03-28T03:00", 2) == [
            "2026-03-29T03:00+02:00",
            "2026-03-30T02:30+02:00",
        ]

    def test_a_time_that_comes_twice_is_due_once(self) -> None:
        assert local("30 2 * * *", "Europe/Berlin", "2026-10-24T03:00", 2) == [
            "2026-10-25T02:30+02:00",
            "2026-10-26T02:30+01:00",
        ]

    def test_hours_counted_one_by_one_are_real_hours(self) -> None:
        assert local("0 * * * *", "Europe/Berlin", "2026-03-29T00:30", 3) == [
            "2026-03-29T01:00+01:00",
            "2026-03-29T03:00+02:00",
            "2026-03-29T04:00+02:00",
        ]
        assert local("0 * * * *", "Europe/Berlin", "2026-10-25T01:30", 3) == [
            "2026-10-25T02:00+02:00",
            "2026-10-25T02:00+01:00",
            "2026-10-25T03:00+01:00",
        ]

    def test_a_time_of_the_first_hour_is_not_due_again_in_the_second(self) -> None:
        zone = ZoneInfo("Europe/Berlin")
        second = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=zone).timestamp()
        due = next_due(a_schedule("30 2 * * *", "Europe/Berlin"), second)
        assert due == datetime(2026, 10, 26, 2, 30, tzinfo=zone).timestamp()

    @given(
        st.sampled_from(CRONS), st.sampled_from(ZONES), st.sampled_from(TURNS), st.floats(-90_000, 90_000),
        st.floats(0, 200_000), st.sampled_from([0.0, 30.0, 7200.0]),
    )  # fmt: skip
    def test_what_passed_is_what_was_coming(
        self, cron: str, zone: str, turn: datetime, before: float, span: float, jitter: float
    ) -> None:
        begin = turn.timestamp() + before
        schedule = a_schedule(cron, zone, jitter_seconds=jitter)
        ahead = list(takewhile(lambda due: due <= begin + span, times_after(schedule, begin)))
        assert ahead == sorted(set(ahead))
        assert all(due > begin for due in ahead)
        came = list(takewhile(lambda due: at(schedule, due) <= begin + span, ahead))
        first = next_due(schedule, begin)
        assert passed(replace(schedule, next_due=first), begin + span, 100_000) == came
        assert passed(replace(schedule, next_due=first), begin + span, 3) == came[-3:]


class TestIntervals:
    @given(st.floats(0, 2e9), st.floats(10, 1e6), st.floats(-1e6, 1e7))
    def test_every_so_many_seconds_from_the_anchor(self, anchor: float, every: float, beyond: float) -> None:
        schedule = a_schedule(every_seconds=every, anchor=anchor)
        after = anchor + beyond
        due = coming(schedule, after, 3)
        assert due[0] > max(after, anchor)
        assert due[0] - max(after, anchor) <= every * 1.000001
        assert due[1] - due[0] == pytest.approx(every, rel=1e-6)
        assert passed(replace(schedule, next_due=due[0]), due[2], 10) == due

    def test_clocks_do_not_matter(self) -> None:
        day = a_schedule(every_seconds=86_400.0, anchor=datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp())
        due = next_due(day, day.anchor)
        assert due == day.anchor + 86_400


class TestJitter:
    @given(st.text(min_size=1, max_size=40), st.floats(0, 4e9), st.floats(0, 86_400))
    def test_it_follows_from_the_time_and_stays_within(self, schedule_id: str, due: float, jitter: float) -> None:
        late = jitter_of(schedule_id, due, jitter)
        assert 0 <= late <= jitter
        assert late == jitter_of(schedule_id, due, jitter)

    def test_it_is_spread(self) -> None:
        late = [jitter_of(f"schedule_{number}", 1.8e9, 100.0) for number in range(1000)]
        assert 45 < sum(late) / 1000 < 55
        assert min(late) < 2
        assert max(late) > 98

    def test_ids_of_what_is_started_fit_and_sort_by_time(self) -> None:
        ids = [subject_id("job", "schedule_1", due) for due in (1.8e9, 1.8e9 + 0.5, 1.9e9)]
        assert ids == sorted(set(ids))
        assert all(len(each) == len("job_") + 32 for each in ids)
        assert subject_id("scrape", "schedule_1", 1.8e9).startswith("run_")
        assert subject_id("job", "schedule_2", 1.8e9) != ids[0]
