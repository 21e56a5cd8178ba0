"""Loads a scraper's script and determines what kind of function its entry is. Runs inside the walls."""

import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scrapeyard_sdk.base import WHOLE_INPUT, BaseScraper, ClassEntry
from scrapeyard_sdk.text import clean

MAX_TRACEBACK = 8 * 1024
MAX_MESSAGE = 4 * 1024
_MAX_CAUSES = 5
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


class ScriptInvalid(Exception):
    """The script has no such entry, or it cannot be called."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A loaded script."""

    function: Callable[..., Any]
    kind: str
    """`async`, `sync`, `async_generator` or `generator`."""
    takes_input: bool
    """Whether the input's fields are passed as arguments; otherwise the script reads ctx.input."""
    signature: inspect.Signature
    validate: Callable[[Any], Any] | None
    folder: str

    @cached_property
    def is_async(self) -> bool:
        """Whether it needs an event loop."""
        return self.kind.startswith("async")


def load(folder: str, entry: str) -> Script:
    """Import `file.py:function` or `file.py:Class` from the folder. Raises whatever the script raises as it loads."""
    file, _, name = entry.partition(":")
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("scraper", os.path.join(folder, file))  # noqa: PTH118
    if spec is None or spec.loader is None:
        raise ScriptInvalid(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["scraper"] = module
    spec.loader.exec_module(module)
    entry_point = getattr(module, name, None)
    if not callable(entry_point):
        raise ScriptInvalid(f"{file} has no function {name}")
    validate = getattr(module, "validate_result", None)
    if inspect.isclass(entry_point):
        return _of_class(entry_point, validate, folder)
    signature = inspect.signature(entry_point)
    return Script(
        function=entry_point,
        kind=_kind(entry_point),
        takes_input=len(signature.parameters) > 1,
        signature=signature,
        validate=validate if callable(validate) else None,
        folder=folder,
    )


def _of_class(scraper: type[Any], validate: Any, folder: str) -> Script:
    """A scraper class as a script. `self` takes the place of ctx in the signature."""
    method = getattr(scraper, "scrape", None)
    if not callable(method):
        raise ScriptInvalid(f"the class {scraper.__name__} has no method scrape")
    entry = ClassEntry(scraper)
    signature = inspect.signature(method)
    takes_whole = list(signature.parameters)[1:] in [[name] for name in WHOLE_INPUT]
    if getattr(scraper, "validate_result", BaseScraper.validate_result) is not BaseScraper.validate_result:
        validate = entry.validate
    return Script(
        function=entry.whole if takes_whole else entry,
        kind=_kind(method),
        takes_input=not takes_whole and len(signature.parameters) > 1,
        signature=signature,
        validate=validate if callable(validate) else None,
        folder=folder,
    )


def _kind(function: Callable[..., Any]) -> str:
    if inspect.isasyncgenfunction(function):
        return "async_generator"
    if inspect.iscoroutinefunction(function):
        return "async"
    return "generator" if inspect.isgeneratorfunction(function) else "sync"


def describe_error(error: BaseException, folder: str = "") -> dict[str, str]:
    """Type, message and traceback, bounded. The traceback begins with the script's own lines; `folder` is its place."""
    return {
        "type": type(error).__name__[:200],
        "message": _message(error),
        "traceback": _script_traceback(error, folder),
    }


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - a script's own __str__ may do anything
        text = f"(no message: its __str__ raised {type(broken).__name__})"
    return clean(text)[:MAX_MESSAGE]


def _script_traceback(error: BaseException, folder: str) -> str:
    """The error, after those that it was raised for."""
    told, found = [_one_traceback(error, folder)], error
    for _ in range(_MAX_CAUSES):
        cause = found.__cause__
        before = cause or (None if found.__suppress_context__ else found.__context__)
        if before is None:
            break
        told.insert(0, _one_traceback(before, folder) + (_CAUSE if cause else _CONTEXT))
        found = before
    return clean("".join(told))[-MAX_TRACEBACK:]


def _one_traceback(error: BaseException, folder: str) -> str:
    place = os.path.join(folder, "") if folder else "\0"  # noqa: PTH118
    frames = _shown(traceback.extract_tb(error.__traceback__, limit=-50), place)
    if not frames and not isinstance(error, SyntaxError):
        return ""
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)]
    named = traceback.format_exception_only(type(error), error)
    return "".join([*lines, *(line.replace(f'"{place}', '"') for line in named)])


def _shown(frames: list[traceback.FrameSummary], place: str) -> list[traceback.FrameSummary]:
    """The frames from the script's first line on, without our own; files of the script by their name in its folder."""
    own = os.path.dirname(__file__)  # noqa: PTH120
    ours = (own, os.path.join(os.path.dirname(own), "scrapeyard", ""), "<frozen importlib")  # noqa: PTH118, PTH120
    first = next((n for n, frame in enumerate(frames) if frame.filename.startswith(place)), 0)
    return [_in_folder(frame, place) for frame in frames[first:] if not frame.filename.startswith(ours)]


def _in_folder(frame: traceback.FrameSummary, place: str) -> traceback.FrameSummary:
    line, name = frame.line, frame.filename.removeprefix(place)
    return traceback.FrameSummary(name, frame.lineno, frame.name, line=line, lookup_line=False)
