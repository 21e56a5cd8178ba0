"""The workers, memory, storage and money that a load needs, counted from what we measured."""

import math
import tomllib
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from scrapeyard.errors import BadRequest

_SECONDS = {"s": 1, "min": 60, "h": 3600, "hour": 3600, "day": 86_400}
_MOST_PER_SECOND = 1_000_000.0
_MONTH_HOURS = 730
_MONTH_DAYS = 30
_PRICES_BYTES = 65_536
_BULK_SHARE = 0.75
"""Of a worker's slots; the others are reserved for calls of priority high (worker.reserved_slots)."""
_MOST_SLOTS = 1024
"""The most that worker.slots takes."""
Price = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class PriceList(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What things cost the operator, since when and by whom; the keys of the file."""

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    as_of: date
    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=8)]
    core_hour: Price
    memory_gb_hour: Price
    database_core_hour: Price
    database_gb_month: Price
    blob_gb_month: Price
    blob_puts_1000: Price
    traffic_gb: Price
    """A GB from the web: most of it is the price of proxies."""


class Workload(Struct, frozen=True, kw_only=True):
    """What is to be done, and on which machines."""

    kind: Literal["jobs", "calls"]
    per_second: float
    peak: float
    seconds: float
    browser: float
    page_kb: float
    input_kb: float
    result_kb: float
    keep_kb: float
    days: float
    cores: int
    memory_gb: float


class PlannedFigure(Struct, frozen=True, kw_only=True):
    """One line of the plan."""

    name: str
    value: float
    unit: str
    how: str
    """Which bound decided, or what it counts."""


class CapacityPlan:
    """Counts what a workload needs. Little's law gives the slots; measured processor time gives the cores."""

    def __init__(self, given: Workload, prices: PriceList | None) -> None:
        figures = _figures()
        self._given, self._prices = given, prices
        self._measured: dict[str, float] = figures["measured"]
        self._assumed: dict[str, float] = figures["assumed"]
        self._use = self._assumed["use"]
        self._peak = given.per_second * given.peak
        self._in_browser = self._peak * given.browser
        self._contexts = self._in_browser * (given.seconds + self._measured["browser_wait_ms"] / 1000) / self._use
        busy = (self._peak - self._in_browser) * given.seconds / self._use + self._contexts
        self._slots = busy / (_BULK_SHARE if given.kind == "jobs" else 1)

    def document(self) -> dict[str, Any]:
        """As JSON: what was asked, what is needed, and every figure it was counted with."""
        return {
            "asked": msgspec.to_builtins(self._given),
            "needed": {each.name: each.value for each in self.figures()},
            "units": {each.name: each.unit for each in self.figures()},
            "notes": self.notes(),
            "measured": self._measured,
            "assumed": self._assumed,
            "prices": msgspec.to_builtins(self._prices),
        }

    def figures(self) -> list[PlannedFigure]:
        """Every line; money last, if there are prices."""
        workers, why = self._workers()
        gateways = self._gateways()
        slots = math.ceil(self._slots / workers)
        return [
            _line("pages_per_second", self._given.per_second, "/s", f"average; {self._peak:,.0f}/s in the busiest"),
            _line("workers", workers, "", f"of {self._given.cores} cores; bound by {why}"),
            _line("slots_per_worker", slots, "", f"worker.slots; {math.ceil(self._slots):,} in all"),
            _line("contexts_per_worker", math.ceil(self._contexts / workers), "", "browser.max_contexts"),
            _line("worker_memory", self._memory_mb(workers) / 1024, "GB", "of each worker, expected and not at worst"),
            _line("gateways", gateways, "", "two at least, so that one may be lost"),
            _line("dispatchers", 2, "", "one leads"),
            _line("database_cores", self._database_cores(), "", "PostgreSQL"),
            _line("database_size", self._stored() * self._given.days / 1e9, "GB", f"{self._given.days:g} days kept"),
            _line("database_writes", self._logged() / 1e6, "MB/s", "write-ahead log in the busiest hour"),
            _line("blob_size", self._blobs() * self._given.days / 1e9, "GB", f"{self._given.days:g} days kept"),
            _line("traffic", self._daily() * self._given.page_kb * 1024 / 1e9, "GB/day", "from the web"),
            *([] if self._prices is None else self._money(self._prices, workers, gateways)),
        ]

    def notes(self) -> list[str]:
        """What the reader must know: limits that are passed, and what would be cheaper."""
        told = [
            "speeds were measured on busy machines with small pages: measure yours before you buy",
            f"at worst a worker takes slots times limits.memory_mb; heavy pages need more than the "
            f"{self._assumed['context_mb']:g} MB that a context counts with",
        ]
        if self._prices is None:
            told.append("money is left out: name your prices with --prices FILE; docs/tuning.md lists the keys")
        if self._given.kind == "jobs" and self._peak > self._measured["dispatch_rate"] * self._use:
            told.append("more than one dispatcher was measured to hand out: split the load over two yards")
        if self._stored() * self._given.days > 1e12:
            told.append("a large database: set retention.archive_days, or keep jobs for fewer days")
        return told

    def _workers(self) -> tuple[int, str]:
        """How many, and what decides."""
        main_ms = self._measured["worker_main_ms"] if self._given.kind == "jobs" else self._measured["call_cpu_ms"] / 2
        bounds = {
            "processors": self._busy_cores() / self._use / self._given.cores,
            "a worker's main process": self._peak * main_ms / 1000 / self._use,
            "memory": self._slots_mb() / self._room_mb(),
            "the slots that a worker may have": self._slots / _MOST_SLOTS,
            "two, so that one may be lost": 2.0,
        }
        why = max(bounds, key=lambda name: bounds[name])
        return math.ceil(bounds[why]), why

    def _busy_cores(self) -> float:
        each = self._measured["item_cpu_ms" if self._given.kind == "jobs" else "call_cpu_ms"]
        return (self._peak * each + self._in_browser * self._measured["browser_cpu_ms"]) / 1000

    def _slots_mb(self) -> float:
        page_mb = self._given.page_kb / 1024 * self._assumed["page_memory"]
        return self._slots * (self._measured["slot_mb"] + page_mb) + self._contexts * self._assumed["context_mb"]

    def _fixed_mb(self) -> float:
        return self._measured["worker_mb"] + self._given.cores * self._assumed["reader_mb"]

    def _room_mb(self) -> float:
        free = (self._given.memory_gb * 1024 - self._assumed["system_mb"]) * self._use - self._fixed_mb()
        if free <= 0:
            raise BadRequest("--memory-gb: too little for a worker with so many cores; take a larger machine")
        return free

    def _memory_mb(self, workers: int) -> float:
        return self._fixed_mb() + self._slots_mb() / workers

    def _gateways(self) -> int:
        if self._given.kind == "jobs":
            return 2
        return max(2, math.ceil(self._peak / self._measured["call_rate"] / self._use) + 1)

    def _database_cores(self) -> int:
        times = 1 if self._given.kind == "jobs" else 4
        return max(2, math.ceil(self._peak * times * self._assumed["database_cpu_ms"] / 1000 / self._use))

    def _daily(self) -> float:
        return self._given.per_second * 86_400

    def _row_bytes(self, row: str, content: str) -> float:
        kind = "item" if self._given.kind == "jobs" else "run"
        held = 1024 * (self._given.input_kb + self._given.result_kb)
        return self._measured[f"{kind}_{row}"] + self._measured[f"{kind}_{content}"] * held

    def _stored(self) -> float:
        """Bytes in the database for one day."""
        return self._daily() * self._row_bytes("bytes", "content")

    def _logged(self) -> float:
        """Bytes a second in the write-ahead log."""
        return self._peak * self._row_bytes("log_bytes", "log_content")

    def _blobs(self) -> float:
        return self._daily() * self._given.keep_kb * 1024

    def _money(self, prices: PriceList, workers: int, gateways: int) -> list[PlannedFigure]:
        """By month. Gateways, dispatchers and Redis count as one core and one GB each."""
        given = self._given
        small = gateways + 2 + 1
        month = _MONTH_HOURS
        puts = self._daily() * _MONTH_DAYS / 1000 if given.keep_kb else 0.0
        parts = {
            "workers": workers * month * (given.cores * prices.core_hour + given.memory_gb * prices.memory_gb_hour),
            "other_roles": small * month * (prices.core_hour + prices.memory_gb_hour),
            "database": self._database_cores() * month * prices.database_core_hour
            + self._stored() * given.days / 1e9 * prices.database_gb_month,
            "blobs": self._blobs() * given.days / 1e9 * prices.blob_gb_month + puts * prices.blob_puts_1000,
            "traffic": self._daily() * given.page_kb * 1024 / 1e9 * _MONTH_DAYS * prices.traffic_gb,
        }
        unit = f"{prices.currency}/month"
        origin = f"prices of {prices.source}, {prices.as_of}"
        lines = [_line(f"cost_{name}", money, unit, origin) for name, money in parts.items()]
        pages = self._daily() * _MONTH_DAYS
        total = sum(parts.values())
        how = f"{1000 * total / pages:.4f} {prices.currency} for 1,000 pages"
        return [*lines, _line("cost", total, unit, how)]


def read_rate(text: str) -> float:
    """Pages a second of `50e6/day`. Raises BadRequest."""
    number, _, unit = text.strip().partition("/")
    try:
        rate = float(number) / _SECONDS[unit.strip() or "day"]
    except (ValueError, KeyError):
        raise BadRequest(f"--pages {text[:40]!r}: write a number and s, min, h or day: 50e6/day") from None
    if not 0 < rate <= _MOST_PER_SECOND:
        raise BadRequest(f"--pages {text[:40]!r}: more than nothing, and at most {_MOST_PER_SECOND:,.0f} a second")
    return rate


def read_share(text: str) -> float:
    """0.05 of `5%` or `0.05`. Raises BadRequest."""
    number = text.strip()
    try:
        share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise BadRequest(f"--browser {text[:40]!r}: write a share such as 5% or 0.05")
    return share


def read_prices(path: Path) -> PriceList:
    """The price list of a file. Raises BadRequest."""
    try:
        with path.open("rb") as file:
            text = file.read(_PRICES_BYTES + 1)
        if len(text) > _PRICES_BYTES:
            raise BadRequest(f"--prices {path}: larger than {_PRICES_BYTES // 1024} KB")
        return msgspec.convert(tomllib.loads(text.decode()), PriceList)
    except OSError as error:
        raise BadRequest(f"--prices {path}: {error.strerror}") from None
    except (ValueError, msgspec.ValidationError) as error:
        known = ", ".join(PriceList.__struct_fields__)
        raise BadRequest(f"--prices {path}: {error}; the keys are {known}") from None


def _figures() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files(__package__).joinpath("plan.toml").read_text("utf-8"))


def kept_days(calls: bool) -> float:
    """How long the settings keep runs, or jobs."""
    from scrapeyard.settings import load

    kept = load().retention
    return kept.runs_days if calls else kept.jobs_days


def _line(name: str, value: float, unit: str, how: str) -> PlannedFigure:
    return PlannedFigure(name=name, value=round(value, 3), unit=unit, how=how)
