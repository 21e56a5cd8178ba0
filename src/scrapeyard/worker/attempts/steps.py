"""The steps that runs and items have in common: calling a built-in in time, checking a result, explaining a refusal."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.builtin.registry import Builtin
from scrapeyard.builtin.services import Services
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import (
    BadRequest,
    FetchFailed,
    ScraperInvalid,
    ScraperNotFound,
    ScrapeyardError,
    SourceUnavailable,
    Unavailable,
)
from scrapeyard.model import ExitReason, FetchTrace, Limits, RunError, Scraper, StepTrace, Usage
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.trust.secrets import redact
from scrapeyard.sandbox.port import Verdict
from scrapeyard.telemetry.events import get_log

T = TypeVar("T")
MAX_TRACES = 200
"""Maximum fetches listed in `explain`, and steps in a trace; the totals count all of them."""
_MAX_TRIED = 20


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Await `work`; raise TimeoutError if it has not finished `seconds` after its first suspension."""
    steps = work.__await__()
    try:
        first = next(steps)
    except StopIteration as end:
        done: T = end.value
        return done
    async with asyncio.timeout(seconds):
        return await _Begun(steps, first)


class _Begun(Generic[T]):
    """The rest of a coroutine that is suspended on `first`."""

    def __init__(self, steps: Generator[Any, Any, T], first: Any) -> None:
        self._steps = steps
        self._first = first

    def __await__(self) -> Generator[Any, Any, T]:
        step = self._first
        try:
            while True:
                try:
                    given = yield step
                except BaseException as error:  # noqa: BLE001 - whatever it is, the work must hear it
                    step = self._steps.throw(error)
                else:
                    step = self._steps.send(given)
        except StopIteration as end:
            done: T = end.value
            return done


log = get_log("worker")
_REFUSALS: dict[type[ScrapeyardError], ExitReason] = {
    ScraperNotFound: ExitReason.SCRAPER_NOT_FOUND,
    BadRequest: ExitReason.SCRAPER_NOT_FOUND,
    ScraperInvalid: ExitReason.SCRAPER_INVALID,
    SourceUnavailable: ExitReason.SOURCE_UNAVAILABLE,
}


def refused(what: str, error: Exception) -> Verdict:
    """Why `what` (a run, or a batch) could not begin, or could not continue for reasons outside the script."""
    if not isinstance(error, ScrapeyardError):
        log.error("worker.fault", run=what, error=repr(error), exc_info=error)
        message = f"a fault in the worker: {type(error).__name__}; its log has the rest"
        return Verdict(exit_reason=ExitReason.INTERNAL_ERROR, error=RunError(message=message))
    return Verdict(
        exit_reason=_REFUSALS.get(type(error), ExitReason.INTERNAL_ERROR),
        error=RunError(message=error.message),
        retry_after=error.retry_after if isinstance(error, Unavailable) else None,
    )


def limits_of(scraper: Scraper, timeout_seconds: float | None) -> Limits:
    """The scraper's own, shortened to what a call or a job allows."""
    if timeout_seconds is None:
        return scraper.limits
    return replace(scraper.limits, wall_seconds=min(scraper.limits.wall_seconds, timeout_seconds))


async def run_builtin(builtin: Builtin, services: Services, given: Raw, limits: Limits) -> Verdict:
    """Call a built-in scraper in this process. Turns its known errors into a verdict."""
    began = time.perf_counter()
    try:
        result = await within(limits.wall_seconds, builtin.run(services, msgspec.json.decode(given)))
    except TimeoutError:
        error = RunError(message=f"the run took longer than {limits.wall_seconds:g} s")
        return Verdict(exit_reason=ExitReason.TIMEOUT, error=error, wall_ms=since(began))
    except BadRequest as refusal:
        error = RunError(message=refusal.message)
        return Verdict(exit_reason=ExitReason.BAD_INPUT, error=error, wall_ms=since(began))
    except FetchFailed as failure:
        told = dict(failure.details)
        after = told.pop("retry_after", None)
        error = RunError(message=failure.message, type="FetchError", site_status=failure.site_status, details=told)
        return Verdict(exit_reason=failure.reason, error=error, wall_ms=since(began), retry_after=after)
    raw = msgspec.json.encode(result)
    return Verdict(exit_reason=ExitReason.SUCCEEDED, result=Raw(raw), wall_ms=since(began), output_bytes=len(raw))


def checked(checker: InputChecker, scraper: Scraper, verdict: Verdict) -> Verdict:
    """The verdict; a failure if the result does not fit the scraper's own output schema. Records stay, as after every
    other failure."""
    if verdict.exit_reason is not ExitReason.SUCCEEDED or verdict.result is None or scraper.output_schema is None:
        return verdict
    faults = checker.output_errors(scraper, msgspec.json.decode(verdict.result))
    if not faults:
        return verdict
    first = faults[0]
    where = first["path"] or "the result"
    error = RunError(
        message=f"the result breaks the output schema: {where}: {first['message']}", details={"errors": faults}
    )
    kept = verdict.result if verdict.records else None
    return replace(verdict, exit_reason=ExitReason.BAD_RESULT, result=kept, error=error)


def unsaved(verdict: Verdict, error: Unavailable) -> Verdict:
    """A failure keeps its own reason, and loses the records that the script yielded before it."""
    if not verdict.exit_reason.is_good:
        return replace(verdict, result=None)
    failed = RunError(message=f"the result could not be kept: {error.message}")
    return replace(
        verdict, exit_reason=ExitReason.INTERNAL_ERROR, result=None, error=failed, retry_after=error.retry_after
    )


def without_secrets(error: RunError | None, hidden: tuple[str, ...]) -> RunError | None:
    """The error without secret values."""
    if error is None or not hidden:
        return error
    return replace(
        error,
        message=redact(error.message, hidden),
        traceback=redact(error.traceback, hidden),
        details=redact(error.details, hidden),
    )


def as_value(packed: bytes | None) -> bytes:
    """A value of the state in one spelling, so that `1` is not `true`; null if there is none, as a script reads it."""
    return b"null" if packed is None else msgspec.json.encode(msgspec.json.decode(packed), order="deterministic")


def since(start: float) -> float:
    """Milliseconds since `start`."""
    return (time.perf_counter() - start) * 1000


def fetch_trace(
    request: FetchRequest, started: float, began: float, answer: FetchResponse | FetchFailed, hide: Callable[[Any], Any]
) -> FetchTrace:
    """What is told of a fetch that has ended now. `started` and `began` (of the attempt) are by the performance
    counter; `hide` takes secrets and personal data out."""
    ms, started_ms, url = round(since(started), 2), round((started - began) * 1000, 2), hide(request.url)[:2000]
    if isinstance(answer, FetchFailed):
        return FetchTrace(
            url=url,
            method=request.method,
            ms=ms,
            started_ms=started_ms,
            status=answer.site_status,
            error=hide(f"{answer.reason}: {answer.message}")[:1000],
            tried=_bounded(answer.details.get("tried", ()), hide),
        )
    return FetchTrace(
        url=url,
        method=request.method,
        ms=ms,
        started_ms=started_ms,
        status=answer.status,
        final_url=hide(answer.url)[:2000] if answer.url != request.url else "",
        bytes=answer.bytes_received,
        way=answer.way[:200],
        age_seconds=None if answer.age_seconds is None else round(answer.age_seconds, 1),
        tried=_bounded(answer.tried, hide) if answer.tried else (),
    )


def step_trace(name: str, started: float, began: float, error: str, hide: Callable[[Any], Any]) -> StepTrace:
    """The same for a step in a browser."""
    at_ms = round((started - began) * 1000, 2)
    return StepTrace(name=name, started_ms=at_ms, ms=round(since(started), 2), error=str(hide(error))[:500])


def _bounded(tried: Sequence[dict[str, Any]], hide: Callable[[Any], Any]) -> tuple[dict[str, Any], ...]:
    told = (hide(each) for each in tried[:_MAX_TRIED])
    return tuple({name: v[:500] if isinstance(v, str) else v for name, v in each.items()} for each in told)


def usage_of(verdict: Verdict) -> Usage:
    """What the child used."""
    return Usage(
        wall_ms=round(verdict.wall_ms, 3),
        cpu_ms=round(verdict.cpu_ms, 2),
        memory_mb=round(verdict.memory_mb, 1),
        output_bytes=verdict.output_bytes,
        log_bytes=verdict.log_bytes,
        records=verdict.records,
    )


def fetched(usage: Usage, ledger: Ledger, fetches: int, received: int) -> Usage:
    """The usage with what fetches used. An engine that replays recorded pages keeps no books: `received` counts."""
    return replace(
        usage,
        fetches=fetches,
        requests=ledger.spent.requests,
        bytes_received=max(ledger.spent.bytes, received),
        bytes_by_class=dict(ledger.bytes_by_class),
        solver_calls=ledger.solver_calls,
        solver_successes=ledger.solver_successes,
        browser_pages=ledger.browser_pages,
        browser_saved_bytes=ledger.browser_saved,
        captcha_calls=ledger.captcha_calls,
        captcha_successes=ledger.captcha_successes,
        captcha_cost=round(ledger.captcha_cost, 6),
        ai_calls=ledger.ai_calls,
        ai_tokens=ledger.spent.ai_tokens,
        ai_cost=round(ledger.spent.ai_cost, 6),
    )
