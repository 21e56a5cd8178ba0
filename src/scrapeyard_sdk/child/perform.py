"""One call of a script: captures its output, encodes its result as JSON, and describes its errors."""

import io
import os
import resource
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.channel import Channel, WorkerGone
from scrapeyard_sdk.child.encoding import to_json
from scrapeyard_sdk.child.explain import BadInput, OutputTooLarge, ResultInvalid, explain
from scrapeyard_sdk.context import Context, LogRoom, SyncContext
from scrapeyard_sdk.outcomes import Outcome
from scrapeyard_sdk.script import Script

if TYPE_CHECKING:
    import asyncio


MAX_IMPORTS = 200


def new_imports(loaded: int) -> list[str]:
    """Modules that the script imported while it ran; its parent imports them for later children.

    Iterates from the end: walking over the older names would touch, and so copy, the memory of each.
    """
    if len(sys.modules) == loaded:
        return []
    new = list(islice(reversed(sys.modules), max(0, len(sys.modules) - loaded)))
    return [name[:100] for name in reversed(new[-MAX_IMPORTS:])]


def perform(
    channel: Channel, script: Script, start: dict[str, Any], room: LogRoom, loop: "asyncio.AbstractEventLoop | None"
) -> tuple[dict[str, Any], bytes]:
    """Call the script; returns the head of its final frame, and the result. Raises only WorkerGone."""
    try:
        result = _call(channel, script, start, room, loop)
        raw = b"" if result is _RECORDS else _fitting(to_json(result, nan=_nan(start)), int(start["output_bytes"]))
    except WorkerGone:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever ends the script ends the run, SystemExit included
        return {"t": "error", **explain(error, script.folder)}, b""
    return {"t": "result", "records": result is _RECORDS}, raw


def _nan(start: dict[str, Any]) -> str:
    """What becomes of NaN, as the manifest says."""
    return str(start.get("nan", "error"))


_RECORDS = object()
"""Marks a result that was sent record by record."""


def _fitting(raw: bytes, room: int) -> bytes:
    if len(raw) > room:
        raise OutputTooLarge(f"the result is {len(raw)} bytes and may be {room}; raise limits.output_mb or return less")
    return raw


def _call(
    channel: Channel, script: Script, start: dict[str, Any], room: LogRoom, loop: "asyncio.AbstractEventLoop | None"
) -> Any:
    if loop is not None:
        channel.attach(loop)
        told = Context(channel, start, room)
        try:
            return loop.run_until_complete(_call_async(told, channel, script, _nan(start)))
        finally:
            told.send_progress()
    context = SyncContext(channel, start, room)
    try:
        return _call_sync(context, channel, script, _nan(start))
    finally:
        context.send_progress()


def _call_sync(context: SyncContext, channel: Channel, script: Script, nan: str) -> Any:
    returned = _invoke(script, context)
    if script.kind == "generator":
        return _send_records(channel, script, returned, nan)
    return _validated(script, returned)


async def _call_async(context: Context, channel: Channel, script: Script, nan: str) -> Any:
    returned = _invoke(script, context)
    if script.kind == "async":
        return _validated(script, await returned)
    number = 0
    async for record in returned:
        _send_record(channel, script, record, number, nan)
        number += 1
    return _RECORDS


def _invoke(script: Script, context: Context | SyncContext) -> Any:
    if not script.takes_input:
        return script.function(context)
    try:
        bound = script.signature.bind(context, **context.input)
    except TypeError as error:
        raise BadInput(str(error)) from None
    return script.function(*bound.args, **bound.kwargs)


def _send_records(channel: Channel, script: Script, records: Iterator[Any], nan: str) -> object:
    for number, record in enumerate(records):
        _send_record(channel, script, record, number, nan)
    return _RECORDS


def _send_record(channel: Channel, script: Script, record: Any, number: int, nan: str) -> None:
    place = f"/{number}"
    channel.send({"t": "record"}, to_json(_validated(script, record, place), place, nan=nan))


def _validated(script: Script, result: Any, place: str = "") -> Any:
    """The script's own `validate_result` hook: it may return a corrected result, return None, or raise."""
    if script.validate is None:
        return result
    try:
        corrected = script.validate(result)
    except Outcome:
        raise
    except Exception as error:
        where = f" at {place}" if place else ""
        raise ResultInvalid(f"validate_result{where}: {type(error).__name__}: {error}") from error
    return result if corrected is None else corrected


def usage() -> dict[str, Any]:
    """What the process used since it began."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu_ms": round(time.process_time() * 1000, 2), "peak_kb": peak}


class Lines(io.TextIOBase):
    """A text stream that sends whole lines to the log."""

    def __init__(self, room: LogRoom, stream: str, descriptor: int) -> None:
        self.room = room
        self._stream = stream
        self._descriptor = descriptor
        self._rest = ""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        self._rest += text
        if "\n" in text:
            *lines, self._rest = self._rest.split("\n")
            for line in lines:
                self.room.write(self._stream, line)
        elif len(self._rest) > 64 * 1024:
            self.flush_rest()
        return len(text)

    def flush_rest(self) -> None:
        """Send a last line without a newline."""
        if self._rest:
            self.room.write(self._stream, self._rest)
            self._rest = ""


def flush(*streams: Any) -> None:
    """Flush buffered output, here and in the underlying streams."""
    for stream in streams:
        if isinstance(stream, Lines):
            stream.flush_rest()
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue


def tell_bare_output(room: LogRoom) -> None:
    """Log what was written to descriptors 1 and 2 directly, bypassing Python's streams: C libraries, os.write."""
    try:
        size = os.fstat(1).st_size
        told = os.pread(1, max(0, room.left), 0) if size else b""
    except OSError:
        return
    for line in told.decode("utf-8", "replace").splitlines():
        room.write("stdout", line)
    if size > len(told):
        room.cut()
