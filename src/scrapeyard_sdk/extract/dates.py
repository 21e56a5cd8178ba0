"""Dates as people write them: `2024-05-01`, `1. Mai 2024`, `May 1st, 2024 3:04 pm`, `2024년 5월 1일`, `3 days ago`."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

from scrapeyard_sdk.extract.numbers import clean_text

ORDERS = ("dmy", "mdy", "ymd")
_NAMES = (
    "jan january januar janvier janv enero ene gennaio gen janeiro januari stycznia styczeń sty "
    "leden ledna ocak января янв",
    "feb february februar février fevrier févr fév febrero febbraio fevereiro fev februari lutego luty lut únor února "
    "şubat февраля фев",
    "mar march märz mär mrz mars marzo março marco maart mrt marca marzec březen března mart марта мар",
    "apr april avril avr abril abr aprile kwietnia kwiecień kwi duben dubna nisan апреля апр",
    "may mai mayo maggio mag maio mei maj maja květen května mayıs мая май",
    "jun june juni juin junio giugno giu junho czerwca czerwiec cze červen června haziran июня июн",
    "jul july juli juillet juil julio luglio lug julho lipca lipiec lip červenec července temmuz июля июл",
    "aug august août aout agosto ago augustus augusti sierpnia sierpień sie srpen srpna ağustos августа авг",
    "sep sept september septembre septiembre settembre set setembro września wrzesień wrz září eylül сентября сен",
    "oct october oktober okt octobre octubre ottobre ott outubro out października październik paź říjen října ekim "
    "октября окт",
    "nov november novembre noviembre novembro listopada listopad lis kasım ноября ноя",
    "dec december dezember dez décembre decembre déc diciembre dic dicembre dezembro grudnia grudzień gru prosinec "
    "prosince desember des aralık декабря дек",
)
_MONTH_OF = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
"""English, German, French, Spanish, Italian, Portuguese, Dutch, Nordic, Polish, Czech, Turkish, Russian."""
_WORD = r"([^\W\d_]{3,12})\.?"
_YEAR = r"((?:1[5-9]|2[01])\d\d)"
_DAY = r"(\d\d?)(?:st|nd|rd|th|er|º|ª|\.)?"
_ISO = re.compile(rf"(?<!\d){_YEAR}-(\d\d)-(\d\d)(?!\d)")
_COMPACT = re.compile(rf"(?<!\d){_YEAR}(\d\d)(\d\d)(?!\d)")
_EAST = re.compile(rf"(?<!\d){_YEAR}\s?[年년]\s?(\d\d?)\s?[月월]\s?(\d\d?)\s?[日일号]?(?!\d)")
_YEAR_FIRST = re.compile(rf"(?<!\d){_YEAR}\s?([./-])\s?(\d\d?)\s?\2\s?(\d\d?)(?!\d)")
_YEAR_LAST = re.compile(rf"(?<![\d.])(\d\d?)\s?([./-])\s?(\d\d?)\s?\2\s?{_YEAR}(?!\d)")
_SHORT = re.compile(r"(?<![\d.])(\d\d)\s?([./-])\s?(\d\d?)\s?\2\s?(\d\d)(?![\d.])")
_DAY_MONTH = re.compile(
    rf"(?<!\d){_DAY}[\s-]?(?:of |de |d')?\s?{_WORD},?[\s-]?(?:de |del )?{_YEAR}(?!\d)", re.IGNORECASE
)
_MONTH_DAY = re.compile(rf"(?<![^\W\d_]){_WORD}\s?{_DAY},?\s{_YEAR}(?!\d)", re.IGNORECASE)
_YEAR_MONTH_DAY = re.compile(rf"(?<!\d){_YEAR}[\s,-]{{1,2}}{_WORD}[\s-]{_DAY}(?!\d)", re.IGNORECASE)
_TIME = re.compile(
    r"(?<![\d:])(?P<half>오전|오후|上午|下午)?\s?(?P<h>[01]?\d|2[0-4])(?:[:h]|[시時]\s?)(?P<m>[0-5]\d)"
    r"(?::(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?)?(?![\d:])(?:[분分])?\s?(?P<pm>[ap]\.?m\b\.?)?"
    r"\s?(?:(?P<z>Z\b|UTC|GMT)?\s?(?P<o>[+-]\d\d:?\d\d)?)",
    re.IGNORECASE,
)
_GAP = re.compile(r"(?:T|[\s,.()|·–-]|\bat\b|\bum\b|\bà\b|[월화수목금토일](?:요일)?\)?){0,8}", re.IGNORECASE)
"""What stands between a day and its time."""
_AGO = re.compile(
    r"(?<![\w.,])(\d{1,4}|an?|one)\s?(second|sec|minute|min|hour|hr|day|week|초|분|시간|일|주)s?\s?(?:ago\b|전)",
    re.IGNORECASE,
)
_UNITS = {"second": 1, "sec": 1, "초": 1, "minute": 60, "min": 60, "분": 60, "hour": 3600, "hr": 3600, "시간": 3600}
_DAYS = {"day": 1, "일": 1, "week": 7, "주": 7}
_NAMED_DAYS = {"today": 0, "오늘": 0, "yesterday": 1, "어제": 1}
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?")


def parse_date(text: str | None, *, order: str | None = None, now: datetime | None = None) -> date | None:
    """The first date in a short text: a `datetime` if a time of day stands beside it, otherwise a `date`.

    None if there is no whole date, or if its day and month could be swapped: `03/04/2024` needs `order`, one of `dmy`,
    `mdy` and `ymd`, as does every year of two digits. With dots the day comes first. A `datetime` has the offset that
    the text gives, and none otherwise. `3 days ago` and `yesterday` count from `now` (default: now, in UTC).
    """
    if order is not None and order not in ORDERS:
        raise ValueError(f"order is one of {', '.join(ORDERS)}")
    line = clean_text(text)
    if _EPOCH.fullmatch(line):
        return datetime.fromtimestamp(int(line) / (1000 if len(line) == 13 else 1), UTC)
    found = _absolute(line, order)
    if found is None:
        return _relative(line, now or datetime.now(UTC))
    day, start, end = found
    clock = _clock(line, start, end)
    return day if clock is None else _joined(day, *clock)


_Found = tuple[date, int, int]
"""A day, and where its text begins and ends."""


def _absolute(line: str, order: str | None) -> _Found | None:
    """The date that stands first in the text; the more exact form wins where two begin at the same place."""
    found = [each for each in _forms(line, order) if each is not None]
    return min(found, key=lambda each: each[1], default=None)


def _forms(line: str, order: str | None) -> list[_Found | None]:
    return [
        _numeric(_ISO.search(line), 1, 2, 3),
        _numeric(_EAST.search(line), 1, 2, 3),
        _numeric(_YEAR_FIRST.search(line), 1, 3, 4),
        _year_last(_YEAR_LAST.search(line), order),
        _short(_SHORT.search(line), order) if order else None,
        _worded(_DAY_MONTH, line, day=1, month=2, year=3),
        _worded(_MONTH_DAY, line, day=2, month=1, year=3),
        _worded(_YEAR_MONTH_DAY, line, day=3, month=2, year=1),
        _numeric(_COMPACT.fullmatch(line[:8]) if not line[8:9].isdigit() else None, 1, 2, 3),
    ]


def _numeric(match: re.Match[str] | None, year: int, month: int, day: int) -> _Found | None:
    return _day(match, int(match[year]), int(match[month]), int(match[day])) if match else None


def _year_last(match: re.Match[str] | None, order: str | None) -> _Found | None:
    if match is None:
        return None
    one, two, year = int(match[1]), int(match[3]), int(match[4])
    if one > 12 or two > 12 or one == two:
        is_day_first = one > 12 or one == two
    elif order in ("dmy", "mdy"):
        is_day_first = order == "dmy"
    elif match[2] == ".":
        is_day_first = True
    else:
        return None
    return _day(match, year, *((two, one) if is_day_first else (one, two)))


def _short(match: re.Match[str] | None, order: str | None) -> _Found | None:
    if match is None or order is None:
        return None
    parts = dict(zip(order, (int(match[1]), int(match[3]), int(match[4])), strict=True))
    year = parts["y"] + (2000 if parts["y"] < 69 else 1900)
    return _day(match, year, parts["m"], parts["d"])


def _worded(pattern: re.Pattern[str], line: str, *, day: int, month: int, year: int) -> _Found | None:
    for match in pattern.finditer(line):
        number = _MONTH_OF.get(match[month].lower())
        if number is not None:
            return _day(match, int(match[year]), number, int(match[day]))
    return None


def _day(match: re.Match[str], year: int, month: int, day: int) -> _Found | None:
    try:
        return date(year, month, day), match.start(), match.end()
    except ValueError:
        return None


def _clock(line: str, start: int, end: int) -> tuple[time, int] | None:
    """The time of day right after a date, or right before it, and the days to add for `24:00`."""
    gap = _GAP.match(line, end)
    match = _TIME.match(line, gap.end() if gap else end)
    if match is None:
        before = (each for each in _TIME.finditer(line, 0, start) if not line[each.end() : start].strip(" ,-–|on"))
        match = next(before, None)
    return _time_of(match) if match else None


def _time_of(match: re.Match[str]) -> tuple[time, int] | None:
    hour, half = int(match["h"]), (match["pm"] or match["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[0] in "p오下" and half not in ("오전", "上午") else 0)
    zone = _zone(match["z"], match["o"])
    micro = int((match["f"] or "0")[:6].ljust(6, "0"))
    try:
        return time(hour % 24, int(match["m"]), int(match["s"] or 0), micro, tzinfo=zone), int(hour == 24)
    except ValueError:
        return None


def _zone(name: str | None, offset: str | None) -> timezone | None:
    if offset:
        hours, minutes = int(offset[1:3]), int(offset[-2:])
        if hours > 14 or minutes > 59:
            return None
        delta = timedelta(hours=hours, minutes=minutes)
        return timezone(-delta if offset[0] == "-" else delta)
    return UTC if name else None


def _joined(day: date, clock: time, days: int) -> date:
    try:
        return datetime.combine(day + timedelta(days=days), clock)
    except OverflowError:
        return day


def _relative(line: str, now: datetime) -> date | None:
    match = _AGO.search(line)
    if match is not None:
        count = int(match[1]) if match[1].isdigit() else 1
        unit = match[2].lower()
        if unit in _DAYS:
            return now.date() - timedelta(days=count * _DAYS[unit])
        return (now - timedelta(seconds=count * _UNITS[unit])).replace(microsecond=0)
    words = re.match(r"[^\W\d_]+", line.lower())
    if words is None or words.group() not in _NAMED_DAYS:
        return None
    day = now.date() - timedelta(days=_NAMED_DAYS[words.group()])
    clock = _clock(line, 0, words.end())
    return day if clock is None else _joined(day, *clock)
