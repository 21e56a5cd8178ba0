"""What was learnt of a site since the last report, small however much it was."""

from typing import Self

from scrapeyard.engines.sites.port import Turn, Verdict

WINDOW = 40
"""Requests that the breaker's ratio is of."""


class Report:
    """Adds up verdicts in the order in which they come."""

    def __init__(self) -> None:
        self.requests = 0
        self.answered = 0
        """Requests that say something of the site."""
        self.good = 0
        self.window = ""
        """The last ones: `1` failed, `0` did not."""
        self.trailing = 0
        """Failures after the last that was none."""
        self.throttled = 0
        self.retry_after = 0.0
        self.latency = 0.0
        """The sum of `timed` of them."""
        self.timed = 0
        self.left: list[str] = []
        """Tickets that are over."""
        self.unused: list[float] = []
        """Places that nobody used."""
        self.probe = ""
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
        self.answered += 1
        self.good += verdict.answer == "ok"
        self.window = (self.window + ("1" if verdict.is_failure else "0"))[-WINDOW:]
        self.trailing = self.trailing + 1 if verdict.is_failure else 0
        if verdict.answer == "throttled":
            self.throttled += 1
            self.retry_after = max(self.retry_after, verdict.retry_after)
