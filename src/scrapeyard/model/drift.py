"""Drift: a field of a scraper's results that empties, or whose values change their form.

Each field has a sketch: how often it was filled, and of what kind, length and shape its values were. The last pages are
compared with all pages before them. The test is the beta-binomial tail: how likely the last pages would be if nothing
had changed. What drifts is not learned as normal until it has lasted long.
"""

import math
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field

WINDOW = 20
"""Pages that are compared with those before them."""
LEAST_BEFORE = 30
"""Pages before them without which nothing is told."""
MAX_FIELDS = 60
UNLIKELY = 1e-6
_HALVED_AT = 4000
"""Pages before, at which their counts are halved: what is long ago counts less."""
_NEW_NORMAL = 1000
"""Pages after which what drifted is normal."""
_LOOKED_AT = 200
_NUMBER = re.compile(r"[-+]?[\d.,'\s]*\d%?")
_MONEY = re.compile(r"[$€£¥₩₽₹]|\b[A-Z]{3}\s?\d|\d\s?(?:[A-Z]{3}|kr|zł)\b")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_RUNS = re.compile(r"[^\W\d_]+|\d+|\s+")

DriftKind = Literal["emptied", "filled", "changed", "repeated"]
Sight = tuple[str, ...]
"""What is kept of one value: kind, length, shape, hash; empty for a field without a value."""


class FieldSketch(Struct, kw_only=True):
    """What is known of one field."""

    pages: int = 0
    """Before the window."""
    filled: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Of the filled ones: those of each kind, length and shape."""
    recent: list[Sight] = field(default_factory=list)
    """The window, oldest first."""
    drift: DriftKind | None = None
    since: float = 0.0
    lasted: int = 0
    """Pages since it drifted."""
    before: str = ""
    """What it was, in words, when it drifted."""
    now: str = ""

    def add(self, sight: Sight, at: float) -> bool:
        """Take a page. True if the field has begun to drift with it."""
        self.recent.append(sight)
        if len(self.recent) > WINDOW:
            self._learn(self.recent.pop(0))
        if self.drift is not None:
            self.lasted += 1
            if self.lasted > _NEW_NORMAL:
                self._begin_anew()
            elif self.lasted >= WINDOW and self._found() is None:
                self.drift, self.lasted = None, 0
            return False
        found = self._found()
        if found is None:
            return False
        self.drift, self.before, self.now = found
        self.since, self.lasted = at, 0
        return True

    @property
    def fill_rate(self) -> float:
        """Share of the pages before the window that had it, before it drifted if it does; of the window if there are
        none before."""
        return self.filled / self.pages if self.pages else self.recent_fill_rate

    @property
    def recent_fill_rate(self) -> float:
        """The same of the window."""
        return sum(map(bool, self.recent)) / len(self.recent) if self.recent else 0.0

    def _begin_anew(self) -> None:
        self.pages = self.filled = self.lasted = 0
        self.counts, self.recent, self.drift = {}, [], None

    def _learn(self, sight: Sight) -> None:
        if self.drift is not None:
            return
        self.pages += 1
        if sight:
            self.filled += 1
            for name in _features(sight):
                self.counts[name] = self.counts.get(name, 0) + 1
        if self.pages >= _HALVED_AT:
            self.pages, self.filled = self.pages // 2, self.filled // 2
            self.counts = {name: count // 2 for name, count in self.counts.items() if count > 1}

    def _found(self) -> tuple[DriftKind, str, str] | None:
        if self.pages < LEAST_BEFORE or len(self.recent) < WINDOW:
            return None
        there = [sight for sight in self.recent if sight]
        if is_unlikely(len(there), WINDOW, self.filled, self.pages):
            kind: DriftKind = "emptied" if len(there) / WINDOW < self.filled / self.pages else "filled"
            return kind, f"filled on {self.filled / self.pages:.0%} of pages", f"filled on {len(there) / WINDOW:.0%}"
        return self._changed(there) if self.filled >= LEAST_BEFORE and len(there) >= WINDOW // 2 else None

    def _changed(self, there: list[Sight]) -> tuple[DriftKind, str, str] | None:
        seen: dict[str, int] = {}
        for sight in there:
            for name in _features(sight):
                seen[name] = seen.get(name, 0) + 1
        for name in sorted({*seen, *self.counts}):
            count, known = seen.get(name, 0), min(self.counts.get(name, 0), self.filled)
            if is_unlikely(count, len(there), known, self.filled):
                words = f"{name} in {known / self.filled:.0%} of values", f"{name} in {count / len(there):.0%}"
                return ("repeated" if name == _AGAIN else "changed"), *words
        return None


_AGAIN = "repeats"


def _features(sight: Sight) -> Iterator[str]:
    kind, length, shape, again = sight[:4]
    yield f"kind {kind}"
    yield f"length {length}"
    yield f"shape {shape}"
    if again:
        yield _AGAIN


def is_unlikely(count: int, of: int, known: int, before: int) -> bool:
    """Whether `count` of `of` is far from `known` of `before`: the beta-binomial tail is below `UNLIKELY`."""
    rate = (known + 0.5) / (before + 1)
    spread = math.sqrt(of * rate * (1 - rate) * (1 + of / (before + 1)))
    if abs(count - of * rate) <= 3 * spread + 0.5:
        return False
    up = count > of * rate
    tail = range(count, of + 1) if up else range(count + 1)
    return sum(_chance(each, of, known + 0.5, before - known + 0.5) for each in tail) < UNLIKELY


def _chance(count: int, of: int, a: float, b: float) -> float:
    ways = math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
    return math.exp(ways + _beta(count + a, of - count + b) - _beta(a, b))


def _beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


class DriftSketch(Struct, kw_only=True):
    """The fields of one scraper, or of one learned pattern, on one site."""

    version: str
    pages: int = 0
    fields: dict[str, FieldSketch] = field(default_factory=dict)

    def add(self, page: Mapping[str, Sight], at: float) -> list[str]:
        """Take a page; the fields that have begun to drift with it. A field that is new was empty on earlier pages."""
        begun: list[str] = []
        for name in page:
            if name not in self.fields and len(self.fields) < MAX_FIELDS:
                self.fields[name] = _empty_before(self.pages)
        self.pages += 1
        for name, sketch in self.fields.items():
            sight = page.get(name, ())
            last = next((each[4] for each in reversed(sketch.recent) if each), "")
            if sight and sight[4] == last:
                sight = (*sight[:3], "1", last)
            if sketch.add(sight, at):
                begun.append(name)
        return begun

    @property
    def drifted(self) -> list[str]:
        """Fields that drift now."""
        return [name for name, sketch in self.fields.items() if sketch.drift is not None]


def _empty_before(pages: int) -> FieldSketch:
    window = min(pages, WINDOW)
    return FieldSketch(pages=pages - window, recent=[()] * window)


def sights_of(result: Any) -> dict[str, Sight]:
    """What is kept of a result: a sight of each field, and of the fields one level below it."""
    found: dict[str, Sight] = {}
    for name, value in _values(result):
        if len(found) >= MAX_FIELDS:
            break
        found[name] = sight_of(value)
    return found


def _values(result: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(result, dict):
        return
    for name, value in result.items():
        if isinstance(value, dict) and value:
            yield from ((f"{name}.{key}"[:200], each) for key, each in value.items() if not isinstance(each, dict))
        else:
            yield str(name)[:200], value


def sight_of(value: Any) -> Sight:
    """What is kept of one value. Empty text, an empty list and null are no value; false and 0 are."""
    if value is None or value in ("", [], {}):
        return ()
    if isinstance(value, bool):
        return "bool", "0", "bool", "", str(value)
    if isinstance(value, (int, float)):
        text, kind = repr(value), "number"
    elif isinstance(value, list):
        text, kind = str(value[0])[:_LOOKED_AT], "list"
    else:
        text = str(value)[: 4 * _LOOKED_AT]
        kind = _kind(text[:_LOOKED_AT].strip())
    shown = text[:_LOOKED_AT].strip()
    shape = zlib.crc32(_RUNS.sub(_run, shown[:60]).encode("utf-8", "replace")) % 16
    return kind, str(len(text).bit_length()), str(shape), "", f"{zlib.crc32(text.encode('utf-8', 'replace')):x}"


def _kind(text: str) -> str:
    if not text:
        return "blank"
    if text.startswith(("http://", "https://", "/")):
        return "link"
    if _DATE.match(text):
        return "date"
    if len(text) < 40 and any(letter.isdigit() for letter in text):
        if _MONEY.search(text):
            return "money"
        return "number" if _NUMBER.fullmatch(text) else "text with digits"
    return "sentence" if len(text) > 80 else "markup" if text.startswith("<") else "text"


def _run(match: re.Match[str]) -> str:
    first = match.group()[0]
    return "9" if first.isdigit() else " " if first.isspace() else "a"
