"""Calls as values. A call is a generator that yields what to do (send a request, pause) and gets what came of it.

It does no input or output itself: the sync and the async client carry out the same steps.
"""

import json
import random
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scrapeyard_client.errors import ApiError, NoAnswer, RunFailed

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to send."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """Sent as JSON; None: no body, or `content`."""
    content: Callable[[], Iterable[bytes]] | None = None
    """Makes the pieces of an uploaded body, anew for each attempt."""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    """How long the answer may take to begin; None: the client's default."""

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again if nobody knows whether it arrived."""
        return self.method in ("GET", "HEAD", "PUT", "DELETE") or "Idempotency-Key" in self.headers


@dataclass(frozen=True)
class Pause:
    """Do nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def document(self) -> Any:
        """Its JSON; None if it has none. Raises NoAnswer if it is something else."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            raise NoAnswer("the answer is not JSON; is it a Scrapeyard server?") from None


@dataclass(frozen=True)
class ConnectionBroken:
    """There was no answer."""

    reason: str


Heard = HttpAnswer | ConnectionBroken
Steps = Generator[Request | Pause, Heard | None, Result]


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How often a call is sent again, and how long to wait before.

    A server that is busy (429, 503) has accepted nothing, so the call is sent again after `Retry-After`. A call whose
    answer was lost is sent again only if that does no harm: it changes nothing, or has an `Idempotency-Key`.
    """

    attempts: int = 4
    first_seconds: float = 0.5
    max_seconds: float = 30.0

    def delay(self, request: Request, heard: Heard, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None: there is none."""
        if attempt >= self.attempts:
            return None
        if isinstance(heard, ConnectionBroken):
            return self.backoff(attempt) if request.may_repeat else None
        if heard.status in (429, 503):
            return min(_retry_after(heard.headers) or self.backoff(attempt), self.max_seconds)
        lost = heard.status in (500, 502, 504) and request.may_repeat and not _is_of_a_run(heard)
        return self.backoff(attempt) if lost else None

    def backoff(self, attempt: int) -> float:
        """Twice as long each time, and never the same for two clients."""
        most = min(self.first_seconds * 2.0 ** (attempt - 1), self.max_seconds)
        return float(most) * (0.5 + random.random() / 2)  # noqa: S311  not a secret


def ask(request: Request, retries: Retries) -> Steps[HttpAnswer]:
    """Send a request until it is answered. Raises ApiError or NoAnswer."""
    attempt = 0
    while True:
        attempt += 1
        heard = yield request
        assert heard is not None  # noqa: S101  a request is answered, or broken
        seconds = retries.delay(request, heard, attempt)
        if seconds is None:
            return checked(heard)
        yield Pause(seconds)


def checked(heard: Heard) -> HttpAnswer:
    """A good answer. Raises ApiError or NoAnswer."""
    if isinstance(heard, ConnectionBroken):
        raise NoAnswer(heard.reason)
    if heard.status < 400:
        return heard
    problem = problem_of(heard)
    raise RunFailed(heard.status, problem) if problem.get("exit_reason") else ApiError(heard.status, problem)


def problem_of(answer: HttpAnswer) -> Mapping[str, Any]:
    """The problem of a bad answer; empty if it is not one of ours."""
    try:
        found = answer.document()
    except NoAnswer:
        return {}
    return found if isinstance(found, dict) else {}


def _is_of_a_run(answer: HttpAnswer) -> bool:
    """Whether it tells how a run ended: the call was carried out."""
    return "id" in problem_of(answer)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    given = headers.get("retry-after", "")
    return float(given) if given.isdigit() else None


class TimeLimit:
    """When waiting is over; never, without seconds."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self, most: float) -> float:
        """Seconds that are left, at most these."""
        return most if self._end is None else max(0.0, min(most, self._end - time.monotonic()))

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self._end is not None and time.monotonic() >= self._end
