"""Small verbs by which a script steers: raise one, and the run ends that way."""

from typing import Any


class Outcome(Exception):
    """Base of the verbs. Not for scripts to raise."""

    reason = "failed"

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message or type(self).__doc__ or self.reason)
        self.message = message
        self.details = details


class Retry(Outcome):
    """Try this run again later: something passing stood in the way. Without `after`, `policy.backoff` decides when."""

    reason = "retry"

    def __init__(self, message: str = "", *, after: float | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.after = after


class Skip(Outcome):
    """There is nothing to get here; the run counts as done, without data."""

    reason = "skipped"


class Blocked(Outcome):
    """The site refuses us: a block page, a captcha, a login wall."""

    reason = "blocked"


class Fail(Outcome):
    """This run cannot succeed; trying again will not help."""

    reason = "failed"


_ERROR_TYPES = {"retryable": "retry", "non_retryable": "failed", "blocked": "blocked", "invalid_input": "bad_input"}
"""Exit reason by the type of a ScraperError."""


class ScraperError(Outcome):
    """The run cannot go on. `error_type` says how it ends: `retryable` as Retry does, `non_retryable` as Fail,
    `blocked` as Blocked, `invalid_input` as `bad_input`."""

    def __init__(
        self, message: str = "", error_type: str = "non_retryable", *, after: float | None = None, **details: Any
    ) -> None:
        name = str(error_type).replace("-", "_").lower()
        if name not in _ERROR_TYPES:
            raise ValueError(f"error_type {name[:50]!r} is unknown; write one of {', '.join(_ERROR_TYPES)}")
        super().__init__(message, error_type=name, **details)
        self.error_type = name
        self.reason = _ERROR_TYPES[name]
        self.after = after

    @property
    def retryable(self) -> bool:
        """Whether the run is tried again while attempts remain."""
        return self.reason == Retry.reason


class FetchError(Exception):
    """A page could not be had. `reason` is one of the platform's exit reasons (`fetch_dns`, `fetch_timeout`, …).

    A script that does not catch it ends with that reason.
    """

    def __init__(
        self, reason: str, message: str, site_status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.site_status = site_status
        self.retry_after = retry_after
        """Seconds after which the site wants to be asked again; None: it does not say."""


class BrowserError(FetchError):
    """A step in the browser failed. `reason`: `browser_step` (no such element, an error in the JavaScript),
    `browser_timeout`, `browser_crashed`, `browser_unavailable`, or as a fetch's if a page could not be opened."""


class StateError(Exception):
    """`ctx.state` was refused: a bad key, a value that is too large or no JSON, too many keys, or the store is away."""


class EnqueueError(Exception):
    """`ctx.enqueue` was refused: the run belongs to no job, or the input does not fit the scraper."""


class ArtifactError(Exception):
    """An artifact could not be kept: too large, a bad name, or the store is away."""
