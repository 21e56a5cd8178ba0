"""How events look: as JSON for machines, in words for people."""

import contextlib
from collections.abc import MutableMapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TextIO, cast

import msgspec
import structlog

from scrapeyard.settings import LogSettings


def words(event: str, lang: str, fields: MutableMapping[str, Any]) -> str:
    """The sentence for an event. A missing field shows as `?`; an unknown event shows its name."""
    return _templates(lang).get(event, event).format_map(_Fields(fields))


@cache
def _templates(lang: str) -> dict[str, str]:
    areas = read_words(files("scrapeyard.telemetry").joinpath(f"words.{lang}.toml"))
    return {event: template for area in areas.values() for event, template in area.items()}


def read_words(file: Traversable) -> dict[str, dict[str, str]]:
    """The template of each event, by area. Raises RuntimeError for a file that is missing or malformed."""
    try:
        return msgspec.toml.decode(file.read_bytes(), type=dict[str, dict[str, str]])
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        message = f"cannot read the words of log events in {file}: {error}; install scrapeyard again"
        raise RuntimeError(message) from error


class _Fields(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


class _Render:
    def __init__(self, lang: str, human: bool, colours: bool) -> None:
        self._lang = lang
        self._last = (
            structlog.dev.ConsoleRenderer(colors=colours, event_key="message", sort_keys=False, pad_event_to=0)
            if human
            else structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
        )
        self._human = human

    def __call__(self, logger: Any, method: str, fields: MutableMapping[str, Any]) -> str | bytes:
        event = str(fields["event"])
        fields["message"] = words(event, self._lang, fields)
        if self._human:
            fields.pop("event")
        return cast("str", self._last(logger, method, fields))


class _Lossy:
    """A stream whose reader may disconnect or whose disk may be full. Output that cannot be written is lost, and the
    caller continues: a server must not fail because of its log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # ValueError: it was closed
            self._stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def render(settings: LogSettings, stream: TextIO) -> None:
    """Make structlog write to a stream as the settings say. Every event it receives is written."""
    human = settings.format == "human" or (settings.format == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks if not human else _keep,
            _Render(settings.lang, human, stream.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Lossy(stream))),
        cache_logger_on_first_use=False,
    )


def _keep(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return fields
