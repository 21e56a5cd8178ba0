"""The rate of a job: a token for each item that is handed out."""

SLACK_SECONDS = 0.5
"""Tokens of so much time are kept beside the burst: the feeder comes by in steps, and now and then late."""


class TokenBucket:
    """Kept by the leader alone. Another leader begins without tokens, so that a change of leader gives nobody more."""

    def __init__(self, tokens: float, now: float) -> None:
        self._tokens = tokens
        self._filled_at = now

    def fill(self, rate: float, burst: int, now: float) -> int:
        """Whole tokens at hand. The rate may be another each time; a clock set back gives none."""
        gained = rate * max(0.0, now - self._filled_at)
        self._filled_at = now
        self._tokens = min(self._tokens + gained, max(1.0, burst + rate * SLACK_SECONDS))
        return int(self._tokens + 1e-9)

    def take(self, count: int) -> None:
        """They were handed out."""
        self._tokens -= count
