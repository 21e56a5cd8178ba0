"""Budgets: what a run and its job may use up, and the stage that stops them.

Requests are counted when they begin, so that of many at once none goes beyond the limit. Bytes and seconds are known
only afterwards: an answer under way that goes beyond is delivered and counted, and the next request is not begun.
"""

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.ledger import RESIDENTIAL, JobLedgers, Ledger, Spent, spent_through
from scrapeyard.engines.port import Caller, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import BudgetLimits, ExitReason
from scrapeyard.settings import BudgetSettings
from scrapeyard.telemetry.events import get_log

log = get_log("budget")
_JOBS = 10_000
"""Whose books a process keeps; the one not asked for longest goes."""
_NO_LIMITS = BudgetLimits()
_ONE = Spent(requests=1)
_MEGABYTE = 2**20


class Budgets:
    """Serves every fetch of a worker. The books of a run are its caller's; those of jobs are here and shared."""

    def __init__(
        self, settings: BudgetSettings, jobs: JobLedgers, on_received: Callable[[str, int], None] = lambda *_: None
    ) -> None:
        """`on_received` is told the class of proxies and the bytes of everything that comes."""
        self._ceiling = _ceiling(settings)
        self._is_free = self._ceiling == _NO_LIMITS
        self._share = settings.warn_share
        self._shared = jobs
        self._jobs: OrderedDict[str, Ledger] = OrderedDict()
        self._on_received = on_received

    def limits(self, caller: Caller) -> BudgetLimits:
        """Of a run: the smaller of the operator's and its policy's, each by itself."""
        return _smaller(self._ceiling, caller.policy.budget)

    def is_unlimited(self, caller: Caller) -> bool:
        """Whether neither the run nor its job has a limit: then `note` does what `begin` and `count` do."""
        if not self._is_free or caller.policy.budget != _NO_LIMITS:
            return False
        return not caller.job_id or caller.job_budget == _NO_LIMITS

    def note(
        self, caller: Caller, proxy_class: str = "", *, requests: int = 0, size: int = 0, seconds: float = 0.0
    ) -> None:
        """Count what a request without limits used up."""
        caller.ledger.add(proxy_class, requests=requests, size=size, seconds=seconds)
        if size:
            self._on_received(proxy_class, size)

    async def check(self, caller: Caller) -> None:
        """Raises FetchFailed (`fetch_budget`) when nothing more may begin."""
        _refuse("run", caller.ledger.spent, self.limits(caller))
        if self._counts_job(caller):
            book = self._book(caller.job_id)
            _refuse("job", await self._shared.share(caller.job_id, book.spent), caller.job_budget)

    async def begin(self, caller: Caller, proxy_class: str = "") -> None:
        """Count a request that is about to go. Raises FetchFailed (`fetch_budget`) when it must not; it is then not
        counted."""
        limits = self.limits(caller)
        _refuse("run", caller.ledger.spent, limits, proxy_class)
        caller.ledger.write(_ONE, proxy_class)
        if self._counts_job(caller):
            try:
                await self._begin_in_job(caller, proxy_class)
            except FetchFailed:
                caller.ledger.write(Spent(requests=-1), proxy_class)
                raise
        self._warn(caller, "run", caller.ledger, caller.ledger.spent, limits)

    async def count(
        self, caller: Caller, proxy_class: str = "", *, requests: int = 0, size: int = 0, seconds: float = 0.0
    ) -> None:
        """What a request that began used up. `requests` are those that followed from it: redirects and repeats."""
        spent = spent_through(proxy_class, requests=requests, size=size, seconds=seconds)
        await self._count(caller, proxy_class, spent)

    async def flow(self, caller: Caller, proxy_class: str = "", *, size: int) -> None:
        """Count bytes of connections that go on. Raises FetchFailed (`fetch_budget`) when they must not: only requests
        that have begun may go on when all requests are used up."""
        whole = await self._count(caller, proxy_class, spent_through(proxy_class, size=size))
        _refuse("run", caller.ledger.spent, replace(self.limits(caller), requests=None), proxy_class)
        _refuse("job", whole, replace(caller.job_budget, requests=None), proxy_class)

    async def _count(self, caller: Caller, proxy_class: str, spent: Spent) -> Spent:
        """What the job has used up in all; nothing where nobody counts it."""
        caller.ledger.write(spent, proxy_class)
        self._on_received(proxy_class, spent.bytes)
        self._warn(caller, "run", caller.ledger, caller.ledger.spent, self.limits(caller))
        if not self._counts_job(caller):
            return Spent()
        book = self._book(caller.job_id)
        book.write(spent, proxy_class)
        return await self._report(caller, book)

    async def check_model(self, caller: Caller) -> None:
        """Raises FetchFailed (`fetch_budget`) when no model may be asked any more."""
        _refuse("run", caller.ledger.spent, self.limits(caller), names=_AI)
        if self._counts_job(caller):
            whole = await self._shared.share(caller.job_id, self._book(caller.job_id).spent)
            _refuse("job", whole, caller.job_budget, names=_AI)

    async def count_model(self, caller: Caller, tokens: int, cost: float) -> None:
        """What a model used up."""
        await self._count(caller, "", Spent(ai_tokens=tokens, ai_cost=cost))

    def _counts_job(self, caller: Caller) -> bool:
        return bool(caller.job_id) and caller.job_budget != _NO_LIMITS

    async def _begin_in_job(self, caller: Caller, proxy_class: str) -> None:
        book = self._book(caller.job_id)
        book.write(_ONE, proxy_class)
        whole = await self._report(caller, book)
        try:
            _refuse("job", whole + Spent(requests=-1), caller.job_budget, proxy_class)
        except FetchFailed:
            book.write(Spent(requests=-1), proxy_class)
            await self._shared.share(caller.job_id, book.spent)
            raise

    async def _report(self, caller: Caller, book: Ledger) -> Spent:
        whole = await self._shared.share(caller.job_id, book.spent)
        self._warn(caller, "job", book, whole, caller.job_budget)
        return whole

    def _book(self, job_id: str) -> Ledger:
        book = self._jobs.setdefault(job_id, Ledger())
        self._jobs.move_to_end(job_id)
        if len(self._jobs) > _JOBS:
            self._jobs.popitem(last=False)
        return book

    def _warn(self, caller: Caller, whose: str, book: Ledger, spent: Spent, limits: BudgetLimits) -> None:
        for name, used, allowed in _used(spent, limits):
            if name in book.warned or used < self._share * allowed or not used:
                continue
            book.warned.add(name)
            told = {"used": round(used, 3), "allowed": round(allowed, 3)}
            log.warning("budget.nearly_used", run=caller.run_id, whose=whose, budget=name, **told)
            caller.ledger.warn(f"{used:g} of the {whose}'s budget of {allowed:g} {_WORDS[name]} are used up")


class Budgeted:
    """The stage: refuses a fetch at once where nothing more may begin, before it waits for anything.

    What is used up is counted further in, at each request, by `Metered`.
    """

    def __init__(self, inner: Fetch, budgets: Budgets) -> None:
        self._inner = inner
        self._budgets = budgets

    def __call__(self, context: FetchContext) -> Coroutine[Any, Any, FetchResponse]:
        """As `Fetch`."""
        return self._inner(context) if self._budgets.is_unlimited(context.caller) else self._checked(context)

    async def _checked(self, context: FetchContext) -> FetchResponse:
        await self._budgets.check(context.caller)
        return await self._inner(context)


_WORDS = {
    "requests": "requests",
    "megabytes": "megabytes",
    "residential_megabytes": "residential megabytes",
    "seconds": "seconds in fetches",
    "ai_tokens": "tokens of models",
    "ai_cost": "money for models",
}
_AI = ("ai_tokens", "ai_cost")
"""These bind questions to models, the others bind fetches."""
_FETCHES = tuple(name for name in _WORDS if name not in _AI)


def _used(spent: Spent, limits: BudgetLimits) -> Sequence[tuple[str, float, float]]:
    """Name, used, allowed, for each limit that is set."""
    if limits == _NO_LIMITS:  # so it is for most, and each request asks four times
        return ()
    used = {
        "requests": spent.requests,
        "megabytes": spent.bytes / _MEGABYTE,
        "residential_megabytes": spent.residential_bytes / _MEGABYTE,
        "seconds": spent.seconds,
        "ai_tokens": spent.ai_tokens,
        "ai_cost": spent.ai_cost,
    }
    return [(name, used[name], allowed) for name in used if (allowed := getattr(limits, name)) is not None]


def _refuse(
    whose: str, spent: Spent, limits: BudgetLimits, proxy_class: str = "", *, names: Sequence[str] = _FETCHES
) -> None:
    """Residential bytes bind only who would use more of them."""
    for name, used, allowed in _used(spent, limits):
        if name not in names or used < allowed or (name == "residential_megabytes" and proxy_class not in RESIDENTIAL):
            continue
        message = (
            f"the {whose}'s budget of {allowed:g} {_WORDS[name]} is used up; "
            f"raise policy.budget.{name}, or the operator's budget.{name} where that is smaller"
        )
        raise FetchFailed(ExitReason.FETCH_BUDGET, message, budget=name, whose=whose, used=used, allowed=allowed)


def _ceiling(settings: BudgetSettings) -> BudgetLimits:
    given = {name: getattr(settings, name) or None for name in BudgetLimits.__struct_fields__}
    return BudgetLimits(**given)


@lru_cache(maxsize=1024)
def _smaller(one: BudgetLimits, other: BudgetLimits) -> BudgetLimits:
    """Remembered, since each request asks three times."""
    if one == _NO_LIMITS:
        return other
    both = {name: (getattr(one, name), getattr(other, name)) for name in one.__struct_fields__}
    return replace(one, **{name: min((x for x in pair if x is not None), default=None) for name, pair in both.items()})
