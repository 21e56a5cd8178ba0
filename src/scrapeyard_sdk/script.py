"""Loads a scraper's script and determines what kind of function its entry is. Runs inside the walls."""

import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scrapeyard_sdk.base import WHOLE_INPUT, BaseScraper, ClassEntry

MAX_TRACEBACK = 8 * 1024
MAX_MESSAGE = 4 * 1024


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

    @property
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


def describe_error(error: BaseException) -> dict[str, str]:
    """Type, message and traceback, bounded, without our own frames."""
    return {
        "type": type(error).__name__[:200],
        "message": _message(error),
        "traceback": _script_traceback(error),
    }


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - a script's own __str__ may do anything
        text = f"(no message: its __str__ raised {type(broken).__name__})"
    return clean(text)[:MAX_MESSAGE]


def _script_traceback(error: BaseException) -> str:
    own = os.path.dirname(__file__)  # noqa: PTH120
    frames = [frame for frame in traceback.extract_tb(error.__traceback__, limit=-50) if not _ours(frame.filename, own)]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)]
    lines += traceback.format_exception_only(type(error), error) if frames else [_message(error)]
    return clean("".join(lines))[-MAX_TRACEBACK:]


def _ours(filename: str, own: str) -> bool:
    return filename.startswith((own, "<frozen importlib"))


def clean(text: str) -> str:
    """The same text without lone surrogates, which no encoding takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
