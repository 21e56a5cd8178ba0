"""Log events, not sentences: a fixed name with fields. The words stand in `words.en.toml` and `words.ko.toml`.

log = get_log("worker")
log.info("run.finished", run=run_id, exit_reason="succeeded", wall_ms=12.5)
"""

import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, TextIO

from scrapeyard.settings import LogSettings

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


_bound: ContextVar[Mapping[str, str]] = ContextVar("bound", default={})  # noqa: B039 - never changed in place


def bind(**fields: str) -> None:
    """Add these fields to every event of this task from now on, and of tasks that it starts: `run`, `trace`. Empty
    values are left out."""
    _bound.set({**_bound.get(), **{name: value for name, value in fields.items() if value}})


class Log:
    """The events of one part of the program; its name is the field `part`."""

    def __init__(self, part: str) -> None:
        self._part = part

    def debug(self, event: str, **fields: Any) -> None:
        """Details for debugging."""
        _outlet.tell("debug", self._part, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Normal operation."""
        _outlet.tell("info", self._part, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Something to check at some point."""
        _outlet.tell("warning", self._part, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Something promised did not happen."""
        _outlet.tell("error", self._part, event, fields)


class _Outlet:
    """Destination of the process's events. structlog loads slowly and most commands log nothing, so it is loaded with
    the first event."""

    def __init__(self) -> None:
        self._level = 0
        self._chosen: tuple[LogSettings, TextIO] | None = None

    def choose(self, settings: LogSettings, stream: TextIO) -> None:
        self._level = _LEVELS[settings.level]
        self._chosen = (settings, stream)

    def tell(self, level: str, part: str, event: str, fields: dict[str, Any]) -> None:
        if _LEVELS[level] < self._level:
            return
        import structlog  # noqa: PLC0415

        if self._chosen is not None:
            from scrapeyard.telemetry.rendering import render  # noqa: PLC0415

            chosen, self._chosen = self._chosen, None
            render(*chosen)
        getattr(structlog.get_logger(part=part), level)(event, **{**_bound.get(), **fields})


_outlet = _Outlet()


def get_log(part: str) -> Log:
    """A logger for one part of the program."""
    return Log(part)


def configure(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Set up logging for the process. Logs go to stderr; stdout is for data."""
    stream = stream or sys.stderr
    _outlet.choose(settings, stream)
    logging.basicConfig(stream=stream, level=max(logging.WARNING, _LEVELS[settings.level]), force=True)
