"""Answers that come piece by piece: live events, and files. They hold what is known, so that a client can go on after
the connection broke; the clients bring the pieces."""

import hashlib
import json
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

from scrapeyard_client.documents import Event, Export
from scrapeyard_client.errors import FileFailed, NoAnswer
from scrapeyard_client.steps import ConnectionBroken, Heard, HttpAnswer, Request, Retries, checked

MAX_LINE = 64 * 1024 * 1024
"""Maximum bytes of one line of an event stream."""
SILENCE_SECONDS = 60.0
"""A stream that is silent for so long is broken: the server sends a sign of life four times as often."""


def pause_after(retries: Retries, request: Request, heard: Heard, failures: int) -> float:
    """Seconds to wait before a stream is opened again. Raises ApiError or NoAnswer if there were too many failures."""
    seconds = retries.delay(request, heard, failures)
    if seconds is None:
        checked(heard)
    return seconds or 0.0


class EventFollower:
    """Live events of a run or a job, from the first to the `end`, over as many connections as it takes."""

    def __init__(self, path: str, retries: Retries, query: dict[str, str]) -> None:
        self.ended = False
        self._path = path
        self._query = query
        self._retries = retries
        self._last: int | None = None
        self._failures = 0
        self._rest = b""
        self._name = ""
        self._number: int | None = None

    def request(self) -> Request:
        """For the next connection: events after the last one that was read."""
        self._rest, self._name, self._number = b"", "", None
        headers = {"Accept": "text/event-stream"}
        if self._last is not None:
            headers["Last-Event-ID"] = str(self._last)
        return Request(method="GET", path=self._path, query=self._query, headers=headers, seconds=SILENCE_SECONDS)

    def take(self, piece: bytes) -> Iterator[Event]:
        """The events that a piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise NoAnswer("a line of the event stream does not end")
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b": ")
            if name == b"event":
                self._name = value.decode()
            elif name == b"id" and value.isdigit():
                self._number = int(value)
            elif name == b"data":
                yield self._event(value)

    def _event(self, data: bytes) -> Event:
        event = Event(name=self._name, data=json.loads(data), id=self._number)
        self._last = self._last if event.id is None else event.id
        self._number, self._failures = None, 0
        self.ended = event.name == "end"
        return event

    def broken(self, heard: Heard) -> float:
        """Seconds to wait before connecting again. Raises ApiError, NoAnswer."""
        if isinstance(heard, HttpAnswer) and heard.status < 400:
            heard = ConnectionBroken("the event stream ended before its end")
        self._failures += 1
        return pause_after(self._retries, self.request(), heard, self._failures)


class Download:
    """A file that is written beside its place, goes on where it broke off, and is moved there when it is whole."""

    def __init__(self, export: Export, place: Path, retries: Retries) -> None:
        self.is_whole = False
        self._export = export
        self._place = place
        self._partial = place.with_name(place.name + ".part")
        self._retries = retries
        self._failures = 0
        self._stream: BufferedRandom = self._partial.open("w+b")

    def request(self) -> Request:
        """The file, or its rest."""
        size = self._stream.tell()
        headers = {"Range": f"bytes={size}-", "If-Range": f'"{self._export.sha256}"'} if size else {}
        return Request(method="GET", path=f"/api/exports/{self._export.id}/download", headers=headers)

    def begin(self, status: int) -> None:
        """The answer begins. One that is not a rest is the whole file again."""
        if status != 206:
            self._stream.seek(0)
            self._stream.truncate()

    def take(self, piece: bytes) -> None:
        """Write a piece."""
        self._stream.write(piece)
        self._failures = 0

    def end(self) -> None:
        """The answer ended. Raises FileFailed if the file is not what was announced."""
        self._stream.seek(0)
        digest = hashlib.file_digest(self._stream, "sha256").hexdigest()
        if digest != self._export.sha256:
            raise FileFailed(f"export {self._export.id} was damaged on its way; download it again")
        self._stream.close()
        self._partial.replace(self._place)
        self.is_whole = True

    def broken(self, heard: Heard) -> float:
        """Seconds to wait before going on. Raises ApiError, NoAnswer."""
        self._failures += 1
        return pause_after(self._retries, self.request(), heard, self._failures)

    def close(self) -> None:
        """Remove what is not whole. May be called twice."""
        self._stream.close()
        self._partial.unlink(missing_ok=True)
