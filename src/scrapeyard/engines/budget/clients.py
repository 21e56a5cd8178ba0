"""What a client may use in a day and in a month, compared with what it used."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final, Literal

from msgspec import Struct

from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model.identity import ClientBudget, ClientLimits
from scrapeyard.store.ports.operations import MeterStore, Use, UseFilter

FRESH_SECONDS: Final = 5.0
"""How long sums are used again; workers write theirs about as often."""
_CLIENTS: Final = 10_000
_MEGABYTE: Final = 2**20
BY_CLIENT: Final = "the client's "
"""How `pause_reason` begins for jobs halted by a budget of their client."""
_NO_BUDGET: Final = ClientBudget()
BUDGET_WORDS: Final = {
    "runs": "runs",
    "fetches": "fetches",
    "mb": "megabytes",
    "direct_mb": "megabytes without a proxy",
    "datacenter_mb": "datacenter megabytes",
    "residential_mb": "residential megabytes",
    "browser_seconds": "seconds of browsers",
}


class UsedUp(Struct, frozen=True, kw_only=True):
    """A budget that is used up."""

    period: Literal["day", "month"]
    name: str
    used: float
    allowed: float
    until: float
    """Unix seconds at which the next day or month begins, in UTC."""

    @property
    def words(self) -> str:
        """For people."""
        when = datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%d")
        what = f"{BY_CLIENT}{BUDGET_WORDS[self.name]} of this {self.period}"
        return f"{what} are used up ({self.allowed:g}); more from {when}"


class ClientBudgets:
    """The budgets of clients. Sums come from the meters, so they are up to about ten seconds old."""

    def __init__(self, meters: MeterStore, clock: Callable[[], float] = time.time) -> None:
        self._meters = meters
        self.clock = clock
        self._known: OrderedDict[str, tuple[float, Sequence[Use]]] = OrderedDict()

    async def used_up(self, client: str, limits: ClientLimits, share: float = 1.0) -> UsedUp | None:
        """The first budget of the client that is used up, or of which this share is; None if there is none. Raises
        StoreUnavailable."""
        if not client or (limits.daily == _NO_BUDGET and limits.monthly == _NO_BUDGET):
            return None
        now = datetime.fromtimestamp(self.clock(), UTC)
        uses = await self._uses(client, now.replace(day=1))
        today = [use for use in uses if use.day == now.date().isoformat()]
        midnight = datetime(now.year, now.month, now.day, tzinfo=UTC)
        next_month = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
        over = chain(
            _over("day", limits.daily, today, (midnight + timedelta(days=1)).timestamp(), share),
            _over("month", limits.monthly, uses, next_month.timestamp(), share),
        )
        return next(over, None)

    async def _uses(self, client: str, first: datetime) -> Sequence[Use]:
        """The client's use of this month, by day and class of proxy."""
        now = self.clock()
        read_at, uses = self._known.get(client, (0.0, ()))
        if now - read_at >= FRESH_SECONDS or day_of(read_at) != day_of(now):
            where = UseFilter(client=client)
            uses = await self._meters.use(["day", "proxy_class"], first.date().isoformat(), where=where)
            self._known[client] = (now, uses)
            self._known.move_to_end(client)
            if len(self._known) > _CLIENTS:
                self._known.popitem(last=False)
        return uses


def _megabytes(uses: Sequence[Use], *classes: str) -> float:
    return sum(use.bytes for use in uses if use.proxy_class in classes) / _MEGABYTE


def _over(
    period: Literal["day", "month"], budget: ClientBudget, uses: Sequence[Use], until: float, share: float
) -> Iterator[UsedUp]:
    used = {
        "runs": float(sum(use.runs for use in uses)),
        "fetches": float(sum(use.requests for use in uses)),
        "mb": sum(use.bytes for use in uses) / _MEGABYTE,
        "direct_mb": _megabytes(uses, ""),
        "datacenter_mb": _megabytes(uses, "datacenter"),
        "residential_mb": _megabytes(uses, "residential", "unlocker"),
        "browser_seconds": sum(use.browser_ms for use in uses) / 1000,
    }
    for name, amount in used.items():
        allowed = getattr(budget, name)
        if allowed and amount >= share * allowed:
            yield UsedUp(period=period, name=name, used=amount, allowed=allowed, until=until)
