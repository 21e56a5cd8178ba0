"""What ended a script, in the words of an error frame: the exit reason, the message, and a hint where a wall stood."""

import errno
import socket
from collections.abc import Iterator
from typing import Any

from scrapeyard_sdk.base import InputRefused
from scrapeyard_sdk.context import as_text
from scrapeyard_sdk.outcomes import FetchError, Outcome, Retry, ScraperError
from scrapeyard_sdk.script import describe_error
from scrapeyard_sdk.text import clean

NO_MEMORY = "the run used all the memory it may have; raise limits.memory_mb or hold less at once"
_NO_DISK = "the files of a run may take limits.disk_mb together, and so may each of them"
_NO_THREADS = "a run may have limits.threads threads, and the stack of each counts towards limits.memory_mb"
_NO_NETWORK = "scripts have no network of their own; get pages with ctx.fetch(url) or ctx.download(url, name)"
_NO_PROCESSES = (
    "scripts may not start programs or processes, signal others, or share anonymous memory; "
    "threads and mmap with flags=mmap.MAP_PRIVATE work"
)
_NO_TMP = "scripts write to their own folder: a relative path, or the module tempfile; /tmp and /dev/shm are not there"
_NO_MODULE = "if it belongs to a package, name the package in the manifest's requirements"
_NO_TERMINAL = "scripts have no terminal, so breakpoint() and pdb do not work; use print() or ctx.log()"
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SHARED_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/psm_")  # noqa: S108 - what scripts try
"""The last begins the names that `multiprocessing.shared_memory` chooses."""
_MAX_CHAIN = 20


class OutputTooLarge(Exception):
    """The result as JSON is over limits.output_mb."""


class ResultInvalid(Exception):
    """The script's result is not JSON, or its own validate_result refused it."""


class BadInput(Exception):
    """The input's fields do not fit the function's parameters."""


def explain(error: BaseException, folder: str = "") -> dict[str, Any]:
    """The fields of an error frame. `folder` is the place of the script."""
    told: dict[str, Any] = {"reason": _reason(error), **describe_error(error, folder)}
    if isinstance(error, Outcome):
        told["traceback"] = ""
        told["details"] = {clean(key)[:100]: clean(as_text(v))[:500] for key, v in list(error.details.items())[:20]}
    told["message"] = _with_hint(error, told["message"])
    if isinstance(error, (Retry, ScraperError)):
        told["after"] = None if error.after is None else _number(error.after, 86400.0)
    if isinstance(error, FetchError):
        told["site_status"] = None if error.site_status is None else int(_number(error.site_status, 999.0))
        told["after"] = None if error.retry_after is None else _number(error.retry_after, 86400.0)
    return told


def _number(value: Any, most: float) -> float:
    """A number from the script, clamped to 0 to `most`; 0 if it is not a number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(0.0, number), most) if number == number else 0.0  # noqa: PLR0124 - NaN alone differs from itself


def _reason(error: BaseException) -> str:
    if isinstance(error, (Outcome, FetchError)):
        return clean(str(error.reason))[:200]
    if _is_out_of_memory(error):
        return "memory_limit"
    if _is_out_of_threads(error):
        return "process_limit"
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return "disk_limit"
    if isinstance(error, OutputTooLarge):
        return "output_limit"
    if isinstance(error, (BadInput, InputRefused)):
        return "bad_input"
    return "bad_result" if isinstance(error, ResultInvalid) else "script_error"


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _is_out_of_threads(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "can't start new thread" in error.args


def _with_hint(error: BaseException, message: str) -> str:
    """The message, followed by what a script should do instead if it ran into a wall or a limit."""
    if _is_out_of_memory(error):
        return NO_MEMORY
    if isinstance(error, (Outcome, FetchError)):
        return message
    hint = _NO_THREADS if _is_out_of_threads(error) else next(filter(None, map(_hint, _chain(error))), "")
    return f"{message}; {hint}" if hint else message


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it was raised for: libraries wrap what the system says."""
    found: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return _NO_MODULE
    if type(error).__name__ == "BdbQuit":  # its module is loaded only by scripts that debug
        return _NO_TERMINAL
    if isinstance(error, OSError):
        return _system_hint(error)
    return ""


def _system_hint(error: OSError) -> str:
    if error.errno in _DISK_ERRORS:
        return _NO_DISK
    if isinstance(error, socket.gaierror) or (error.errno == errno.EACCES and error.filename is None):
        return "" if _has_network() else _NO_NETWORK
    if error.errno == errno.EPERM and error.filename is None:
        return _NO_PROCESSES
    return _NO_TMP if str(error.filename).startswith(_SHARED_PLACES) else ""


def _has_network() -> bool:
    """Whether the operator granted the scraper sockets of its own."""
    try:
        socket.socket().close()
    except OSError:
        return False
    return True
