"""What came of a crawl: log lines, failures, statistics, and whether the run succeeded.

A run fails if there are failures on more than `config.max_failed_percent` (10) of its pages, or if something failed and
no item came. With fewer failures it succeeds, and its log warns.
"""

import json
import logging
import traceback
from typing import Any

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.outcomes import Fail

MAX_ERRORS = 50
"""Errors that are told whole."""
MAX_DROPPED = 1000
_MAX_TRACEBACK = 4096
_MAX_REPORT = 2 * 1024 * 1024
_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))
_COUNTED = ("scrapy.", "twisted")
"""Loggers whose errors are failures of pages, callbacks, pipelines or feeds."""
_RETRIES = "scrapy.downloadermiddlewares.retry"
"""Tells of a page that it gave up; the page itself is told of by the scraper or the statistics."""
_LOST = "Error downloading"
_GONE = ("404", "410")
_FILES, _MEDIA = "scrapy.pipelines.files", "scrapy.pipelines.media"
"""The first warns of the status of a file or image; right after it, the second tells the error."""
_SUFFIXES = "tldextract"
"""Warns, where a run has no network, that it uses the list of public suffixes that it brings."""
_IGNORED = "httperror/response_ignored_status_count/"
MAX_FAILED_PERCENT = 10.0
ARTIFACT = "scrapy.json"


class Report(logging.Handler):
    """Collects what a crawl tells, and passes its log lines on."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self._ctx = ctx
        self._shown = logging.INFO
        self.items = 0
        self.errors: list[str] = []
        self.failed = 0
        self._lost = 0
        """Pages that never came; the other failures are of pages that Scrapy counts as received."""
        self._is_file_gone = False
        """Whether the last file that was warned of is gone, and its error is not told yet."""
        self.dropped: list[dict[str, Any]] = []
        self.stopped = ""
        """Why the platform ended the crawl; empty if it did not."""

    def listen(self, level: str | int) -> None:
        """Take over the log of this process, from this level on. Warnings and errors are always heard."""
        number = level if isinstance(level, int) else logging.getLevelName(str(level).upper())
        self._shown = number if isinstance(number, int) else logging.INFO
        root = logging.getLogger()
        root.handlers[:] = [self]
        root.setLevel(min(self._shown, logging.WARNING))
        logging.getLogger(_SUFFIXES).setLevel(logging.ERROR)
        logging.captureWarnings(True)

    def emit(self, record: logging.LogRecord) -> None:
        """A line of the log. Never raises: logging must not end a crawl."""
        try:
            text = record.getMessage()
        except Exception as error:  # noqa: BLE001 - a project's own log call may be wrong
            text = f"{record.msg} ({type(error).__name__}: {error})"
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}\n{''.join(traceback.format_exception(*record.exc_info))[-_MAX_TRACEBACK:]}"
        if record.name == _FILES and isinstance(record.args, dict) and "status" in record.args:
            self._is_file_gone = str(record.args["status"]) in _GONE
        elif self._is_failure(record):
            self.fail(text)
            self._lost += str(record.msg).startswith(_LOST)
        if record.levelno >= self._shown:
            level = next((name for number, name in _LEVELS if record.levelno >= number), "debug")
            self._ctx.log(text, level, logger=record.name)

    def _is_failure(self, record: logging.LogRecord) -> bool:
        """Whether a line tells of one. A file or image that is gone is none, as a page is not."""
        if record.levelno < logging.ERROR or not record.name.startswith(_COUNTED) or record.name == _RETRIES:
            return False
        if record.name == _MEDIA and self._is_file_gone:
            self._is_file_gone = False
            return False
        return True

    def fail(self, text: str) -> None:
        """Count a failure; the first ones are told whole."""
        self.failed += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(text)

    def drop(self, item: Any, exception: Exception) -> None:
        """Note an item that a pipeline dropped. That is no failure."""
        if len(self.dropped) < MAX_DROPPED:
            self.dropped.append({"item": item, "exception": str(exception)})

    async def keep(self, spider: str, reason: str, stats: dict[str, Any]) -> None:
        """Store statistics, errors and dropped items as an artifact."""
        told = {"spider": spider, "reason": reason, "stats": dict(sorted(stats.items())), "errors": self.errors}
        raw = json.dumps({**told, "items_dropped": self.dropped}, default=str)
        await self._ctx.artifact(ARTIFACT, raw if len(raw) <= _MAX_REPORT else json.dumps(told, default=str))

    def conclude(self, stats: dict[str, Any]) -> None:
        """Warn of failures. Raises Fail if there were too many, or if the platform ended the crawl."""
        if self.stopped:
            raise Fail(f"the crawl was ended early: {self.stopped}; the items before are kept")
        refused = sum(count for name, count in stats.items() if _is_refused(name))
        failed = self.failed + refused
        if not failed:
            return
        pages = int(stats.get("response_received_count", 0)) + self._lost
        words = f"{failed} failures on {pages} pages{f', {refused} by their status' if refused else ''}"
        first = f"; the first: {_short(self.errors[0])}" if self.errors else ""
        if not self.items or 100 * failed > self._most() * pages:
            raise Fail(f"{words}, and {self.items} items came{first}")
        self._ctx.log(words + first, "warning")

    def _most(self) -> float:
        value = self._ctx.config.get("max_failed_percent", MAX_FAILED_PERCENT)
        return float(value) if isinstance(value, (int, float)) else MAX_FAILED_PERCENT


def _short(error: str) -> str:
    """What happened where, and the exception, without the traceback between them."""
    first, *others = error.strip().splitlines()
    return f"{first[:300]}: {others[-1][:500]}" if others else first[:500]


def _is_refused(name: str) -> bool:
    """Whether this statistic counts answers that no callback saw. A page that is gone is no failure."""
    return name.startswith(_IGNORED) and name.removeprefix(_IGNORED) not in _GONE
