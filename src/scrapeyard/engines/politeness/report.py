"""What was learnt of a site since the last report, small however much it was."""

from typing import Self

from msgspec import Struct, field

from scrapeyard.engines.politeness.port import Turn, Verdict

WINDOW = 40
"""Requests that the breaker's ratio is of."""


class Report(Struct):
    """Adds up verdicts in the order in which they come."""

    requests: int = 0
    answered: int = 0
    """Requests that say something of the site."""
    good: int = 0
    window: str = ""
    """The last ones: `1` failed, `0` did not."""
    trailing: int = 0
    """Failures after the last that was none."""
    throttled: int = 0
    retry_after: float = 0.0
    latency: float = 0.0
    """The sum of `timed` of them."""
    timed: int = 0
    left: list[str] = field(default_factory=list)
    """Tickets that are over."""
    unused: list[float] = field(default_factory=list)
    """Places that nobody used."""
    probe: str = ""
    """How the probe went, if it was among them: ok, failed or unknown."""

    def add(self, turn: Turn, verdict: Verdict) -> Self:
        """One request that is over, or never went."""
        self.requests += verdict.sent
        self._add_answer(verdict)
        if verdict.latency is not None:
            self.latency += verdict.latency
            self.timed += 1
        if turn.limits.concurrency:
            self.left.append(turn.ticket)
        if turn.place is not None and not verdict.sent:
            self.unused.append(turn.place)
        if turn.is_probe:
            failed = "failed" if verdict.is_failure else "ok"
            self.probe = "unknown" if verdict.answer == "unknown" else failed
        return self

    @property
    def is_urgent(self) -> bool:
        """Whether others should know at once."""
        return bool(self.left or self.probe or self.throttled)

    def _add_answer(self, verdict: Verdict) -> None:
        if verdict.answer == "unknown":
            return
        failed = verdict.is_failure
        self.answered += 1
        self.good += verdict.answer == "ok"
        self.window = (self.window + ("1" if failed else "0"))[-WINDOW:]
        self.trailing = self.trailing + 1 if failed else 0
        if verdict.answer == "throttled":
            self.throttled += 1
            self.retry_after = max(self.retry_after, verdict.retry_after)
