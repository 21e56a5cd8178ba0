"""Every way a run can end, and whether trying again may help.

A run ends with exactly one exit reason. `retryable` is advice to the caller: the same call may succeed later without a
change to the scraper or its input.
"""

from enum import StrEnum


class ExitReason(StrEnum):
    """Why a run ended. Stable names: clients, metrics and retries depend on them."""

    SUCCEEDED = "succeeded"
    GONE = "gone"  # an item of a job: the site says that there is no such page, 404 or 410; the answer is its result
    # what the script did
    SCRIPT_ERROR = "script_error"  # an exception left the script
    FAILED = "failed"  # the script raised Fail
    SKIPPED = "skipped"  # the script raised Skip: nothing to get here
    RETRY = "retry"  # the script raised Retry and no attempt remained
    BLOCKED = "blocked"  # the script raised Blocked: the site refuses us
    BAD_INPUT = "bad_input"  # the input does not fit the scraper's schema or signature
    BAD_RESULT = "bad_result"  # the result is not JSON, breaks its schema or the validate_result hook
    # what the script used up
    TIMEOUT = "timeout"
    CPU_LIMIT = "cpu_limit"
    MEMORY_LIMIT = "memory_limit"
    DISK_LIMIT = "disk_limit"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"  # too many threads
    # what the child did to us
    CRASHED = "crashed"  # the child died without a word
    PROTOCOL_ERROR = "protocol_error"  # the child spoke nonsense on the wire
    # what happened around it
    CANCELLED = "cancelled"
    LOST_WORKER = "lost_worker"
    SCRAPER_NOT_FOUND = "scraper_not_found"
    SCRAPER_INVALID = "scraper_invalid"
    SOURCE_UNAVAILABLE = "source_unavailable"  # its files or packages could not be had
    INTERNAL_ERROR = "internal_error"  # our fault
    # what the engines met, when the script let it through
    FETCH_DNS = "fetch_dns"
    FETCH_CONNECT = "fetch_connect"
    FETCH_TLS = "fetch_tls"
    FETCH_TIMEOUT = "fetch_timeout"
    FETCH_PROTOCOL = "fetch_protocol"
    FETCH_TOO_LARGE = "fetch_too_large"
    FETCH_DECODE = "fetch_decode"
    FETCH_STATUS = "fetch_status"  # the script asked for a good status and the site answered another
    FETCH_REDIRECTS = "fetch_redirects"
    FETCH_BAD_URL = "fetch_bad_url"
    FETCH_PRIVATE_ADDRESS = "fetch_private_address"
    FETCH_NOT_ALLOWED = "fetch_not_allowed"  # the manifest's allowed_hosts does not name this host
    FETCH_RATE_LIMITED = "fetch_rate_limited"  # the site says 429, or its turn would come too late
    FETCH_SITE_DOWN = "fetch_site_down"  # the site failed so often that it is left alone for a while
    FETCH_BLOCKED = "fetch_blocked"  # the site knows us for a machine and nothing that policy allows helped
    FETCH_CAPTCHA = "fetch_captcha"  # as blocked, by a captcha
    FETCH_PROXY = "fetch_proxy"  # the proxy failed, not the site
    FETCH_ROBOTS = "fetch_robots"  # robots.txt forbids it and policy obeys
    FETCH_LIMIT = "fetch_limit"  # the run has fetched as many pages as limits.fetches allows
    FETCH_BUDGET = "fetch_budget"  # the run or job has used up what it may
    AI_UNAVAILABLE = "ai_unavailable"  # a model was needed, and it is away, busy or too slow
    # A page in a browser:
    BROWSER_STEP = "browser_step"  # a step cannot be done: no such element, an error in the script's JavaScript
    BROWSER_TIMEOUT = "browser_timeout"  # a step, or a wait, took longer than it may
    BROWSER_CRASHED = "browser_crashed"  # the page, the browser or its process died
    BROWSER_UNAVAILABLE = "browser_unavailable"  # this worker has no browser, or it does not start

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later as it is."""
        return self in _RETRYABLE

    @property
    def is_good(self) -> bool:
        """Whether the run did what it should: an item that ends so counts as a success."""
        return self in _GOOD

    @property
    def is_fetch(self) -> bool:
        """Whether the web or a model ended the run, rather than the script or the platform."""
        return self.value.startswith(("fetch_", "browser_", "ai_"))

    @property
    def is_time_limit(self) -> bool:
        """Whether a time limit ended the run: a waiting caller then gets 504 instead of 502."""
        return self in (ExitReason.TIMEOUT, ExitReason.CPU_LIMIT)


def may_help_later(reason: ExitReason, site_status: int | None) -> bool:
    """As `retryable`; if the site's own status ended the run, that decides: 408, 425, 429 and 500 or above may pass."""
    if reason is ExitReason.FETCH_STATUS:
        return site_status is not None and may_pass(site_status)
    return reason.retryable


def may_pass(site_status: int) -> bool:
    """Whether a site that answers so may answer otherwise later: 408, 425, 429 and 500 or above."""
    return site_status in (408, 425, 429) or site_status >= 500


GONE_STATUSES = frozenset({404, 410})
"""A site that answers so has no such page."""
_GOOD = frozenset({ExitReason.SUCCEEDED, ExitReason.GONE, ExitReason.SKIPPED})


_RETRYABLE = frozenset(
    {
        ExitReason.RETRY,
        ExitReason.BLOCKED,
        ExitReason.TIMEOUT,
        ExitReason.CRASHED,
        ExitReason.LOST_WORKER,
        ExitReason.SOURCE_UNAVAILABLE,
        ExitReason.INTERNAL_ERROR,
        ExitReason.FETCH_DNS,
        ExitReason.FETCH_CONNECT,
        ExitReason.FETCH_TIMEOUT,
        ExitReason.FETCH_PROTOCOL,
        ExitReason.FETCH_RATE_LIMITED,
        ExitReason.FETCH_SITE_DOWN,
        ExitReason.FETCH_BLOCKED,
        ExitReason.FETCH_CAPTCHA,
        ExitReason.FETCH_PROXY,
        ExitReason.AI_UNAVAILABLE,
        ExitReason.BROWSER_TIMEOUT,
        ExitReason.BROWSER_CRASHED,
    }
)
