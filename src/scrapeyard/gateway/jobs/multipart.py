"""The one file of a `multipart/form-data` body (RFC 7578), as it comes: never whole in memory, never on disk.

A boundary, the part's header fields, an empty line, the file's bytes, and the boundary again with two dashes after it.
"""

import re
from collections.abc import AsyncIterator
from email.message import Message

from scrapeyard.errors import BadRequest

MAX_HEAD = 16 * 1024
"""Bytes before the file's first."""
MAX_NAME = 200
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_HOW = "send one file, as `curl -F file=@items.csv` does; parameters go into the query"


def boundary_of(content_type: str) -> bytes:
    """The line between parts. Raises BadRequest when the header names none."""
    message = Message()
    message["content-type"] = content_type
    given = message.get_param("boundary")
    if not isinstance(given, str) or not _BOUNDARY.fullmatch(given):
        raise BadRequest(f"Content-Type names no boundary; {_HOW}")
    return b"--" + given.encode("ascii")


class FormFile:
    """Reads a body. After `open` its name is known, then `chunks` gives its bytes, once."""

    def __init__(self, body: AsyncIterator[bytes], boundary: bytes) -> None:
        self._body = body
        self._boundary = boundary
        self._held = b""
        self.name = ""
        """As the sender called the file, for people; empty: it did not."""

    async def open(self) -> None:
        """Read up to the file's first byte. Raises BadRequest."""
        while b"\r\n\r\n" not in self._held:
            if len(self._held) > MAX_HEAD or not await self._more():
                raise BadRequest(f"the form is not one that browsers send; {_HOW}")
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        before, found, fields = (b"\r\n" + head).partition(b"\r\n" + self._boundary + b"\r\n")
        if not found or before.strip():
            raise BadRequest(f"the form does not begin with its boundary; {_HOW}")
        self.name = _file_name(fields)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The file. Raises BadRequest when the form breaks off or has more parts."""
        end = b"\r\n" + self._boundary
        self._held = b"\r\n" + self._held  # a file without a byte is followed by its boundary at once
        skip = 2
        while (at := self._held.find(end)) < 0:
            safe = max(0, len(self._held) - len(end) + 1)
            if safe > skip:
                yield self._held[skip:safe]
                self._held, skip = self._held[safe:], 0
            if not await self._more():
                raise BadRequest("the form breaks off before its end; send it again")
        if at > skip:
            yield self._held[skip:at]
        self._held = self._held[at + len(end) :]
        await self._close()

    async def _close(self) -> None:
        while len(self._held) < 2 and await self._more():
            pass
        if not self._held.startswith(b"--"):
            raise BadRequest(f"the form has more than one part; {_HOW}")
        while len(self._held) < MAX_HEAD and await self._more():  # what follows the end says nothing
            self._held = self._held[:2]

    async def _more(self) -> bool:
        """Whether more came."""
        async for chunk in self._body:
            if chunk:
                self._held += chunk
                return True
        return False


def _file_name(fields: bytes) -> str:
    message = Message()
    for line in fields.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            message["content-disposition"] = value.strip()
    kind, given = message.get_content_disposition(), message.get_param("name", header="content-disposition")
    if kind != "form-data" or given != "file":
        raise BadRequest(f"the form's part is not called `file`; {_HOW}")
    return (message.get_filename() or "").replace("\\", "/").rpartition("/")[2][:MAX_NAME]
