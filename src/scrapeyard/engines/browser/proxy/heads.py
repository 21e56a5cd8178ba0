"""Heads of HTTP/1 messages: requests of a browser, read strictly, and answers, read as browsers do.

A request that two programs could read in two ways is refused: bare line feeds, folded lines, spaces before a colon, a
second Host or Content-Length, any Transfer-Encoding. Browsers send none of these.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

MAX_REQUEST: Final = 64 * 1024
MAX_ANSWER: Final = 256 * 1024
"""As browsers have it."""
_MAX_FIELDS = 256
REQUEST_END: Final = re.compile(rb"\r\n\r\n")
ANSWER_END: Final = re.compile(rb"\r?\n\r?\n")

Fields = tuple[tuple[bytes, bytes], ...]
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_REQUEST = re.compile(rb"(" + _TOKEN + rb"{1,32}) ([\x21-\x7e]+) HTTP/1\.[01]")
_FIELD = re.compile(rb"(" + _TOKEN + rb"{1,256}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_ANSWER = re.compile(rb"HTTP/1\.[0-9] ([1-9][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_PLAIN = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_HOP_BY_HOP = frozenset(
    b"connection proxy-connection keep-alive te trailer upgrade proxy-authorization proxy-authenticate "
    b"proxy-authentication-info transfer-encoding expect".split()
)


class BadHead(Exception):
    """It cannot be understood, or in two ways."""


class RequestHead(Struct, frozen=True, kw_only=True):
    """What a browser asks of its proxy."""

    method: str
    target: str
    """`host:port` of CONNECT, a whole URL of the others."""
    fields: Fields
    body_size: int

    @property
    def credentials(self) -> tuple[str, str]:
        """User and password, as Basic has them; empty: there are none."""
        for name, value in self.fields:
            if name.lower() == b"proxy-authorization" and value[:6].lower() == b"basic ":
                try:
                    user, _, password = base64.b64decode(value[6:].strip(), validate=True).decode().partition(":")
                except (binascii.Error, UnicodeDecodeError):
                    break
                return user, password
        return "", ""

    def plain_url(self) -> tuple[str, str]:
        """Authority and resource of a whole URL. Raises BadHead for anything but http."""
        found = _PLAIN.fullmatch(self.target)
        if found is None:
            raise BadHead("the request names no http:// URL; other schemes are tunnelled")
        resource = found[2] or "/"
        return found[1], resource if resource.startswith("/") else f"/{resource}"

    def forwarded(self, host: str, request_target: str, *more: tuple[bytes, bytes]) -> bytes:
        """The head to send on, for one request on one connection."""
        own = ((b"Host", host.encode()), (b"Connection", b"close"), *more)
        kept = (field for field in _end_to_end(self.fields) if field[0].lower() != b"host")
        return write_head(f"{self.method} {request_target} HTTP/1.1".encode(), (*own, *kept))


class AnswerHead(Struct, frozen=True, kw_only=True):
    """What a site answers, or a proxy on the way."""

    status: int
    reason: bytes
    fields: Fields

    def get(self, name: bytes) -> bytes:
        """The first value under a name in lower case; empty: there is none."""
        return next((value for key, value in self.fields if key.lower() == name), b"")

    @property
    def is_chunked(self) -> bool:
        """Whether the body tells its end itself."""
        said = b",".join(value for name, value in self.fields if name.lower() == b"transfer-encoding")
        return b"chunked" in (coding.strip().lower() for coding in said.split(b","))

    @property
    def body_size(self) -> int | None:
        """None: the head does not say it."""
        size = self.get(b"content-length")
        return int(size) if not self.get(b"transfer-encoding") and _LENGTH.fullmatch(size) else None

    def forwarded(self, *more: tuple[bytes, bytes]) -> bytes:
        """The head to send on, which is the last on its connection. The body's framing stays as it is."""
        framing = tuple(field for field in self.fields if field[0].lower() == b"transfer-encoding")
        line = f"HTTP/1.1 {self.status} ".encode() + self.reason
        return write_head(line, (*_end_to_end(self.fields), *framing, *more, (b"Connection", b"close")))


def read_request(head: bytes) -> RequestHead:
    """Raises BadHead."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    found = _REQUEST.fullmatch(first)
    if found is None:
        raise BadHead("the first line is no request of HTTP/1.1")
    if len(lines) > _MAX_FIELDS:
        raise BadHead(f"more than {_MAX_FIELDS} header fields")
    fields = tuple(_read_field(line) for line in lines)
    names = [name.lower() for name, _ in fields]
    for once in (b"host", b"content-length", b"proxy-authorization"):
        if names.count(once) > 1:
            raise BadHead(f"more than one {once.decode()}")
    if b"transfer-encoding" in names:
        raise BadHead("a body without a length; send Content-Length")
    return RequestHead(method=found[1].decode(), target=found[2].decode(), fields=fields, body_size=_body_size(fields))


def read_answer(head: bytes) -> AnswerHead:
    """Lines that are no header fields are left out. Raises BadHead."""
    first, *lines = head.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    found = _ANSWER.fullmatch(first)
    if found is None:
        raise BadHead("the first line is no answer of HTTP/1.1")
    if len(lines) > 4 * _MAX_FIELDS:
        raise BadHead(f"more than {4 * _MAX_FIELDS} header fields")
    read = (_FIELD.fullmatch(line) for line in _unfolded(lines))
    fields = tuple((field[1], field[2].rstrip(b" \t")) for field in read if field)
    return AnswerHead(status=int(found[1]), reason=found[2] or b"", fields=fields)


def write_answer(status: int, words: str, *fields: tuple[bytes, bytes]) -> bytes:
    """An answer of the proxy itself."""
    body = f"{words}\n".encode() if words else b""
    own = ((b"Content-Type", b"text/plain; charset=utf-8"), (b"Content-Length", str(len(body)).encode()))
    line = f"HTTP/1.1 {status} {_REASONS[status]}".encode()
    return write_head(line, (*fields, *own, (b"Connection", b"close"))) + body


def basic(user: str, password: str) -> tuple[bytes, bytes]:
    """The field that carries credentials to a proxy."""
    return b"Proxy-Authorization", b"Basic " + base64.b64encode(f"{user}:{password}".encode())


_REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}


def _read_field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise BadHead("a header field is not written as HTTP says")
    return found[1], found[2].rstrip(b" \t")


def _body_size(fields: Fields) -> int:
    for name, value in fields:
        if name.lower() == b"content-length":
            if not _LENGTH.fullmatch(value):
                raise BadHead("Content-Length is no number")
            return int(value)
    return 0


def _unfolded(lines: Iterable[bytes]) -> list[bytes]:
    found: list[bytes] = []
    for line in lines:
        if line[:1] in (b" ", b"\t") and found:
            found[-1] += b" " + line.strip()
        else:
            found.append(line)
    return found


def _end_to_end(fields: Fields) -> Fields:
    named = b",".join(value for name, value in fields if name.lower() == b"connection")
    dropped = _HOP_BY_HOP | {name.strip().lower() for name in named.split(b",")} - {b"content-length"}
    return tuple(field for field in fields if field[0].lower() not in dropped)


def write_head(first: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A first line and header fields, as they go on the wire."""
    return b"\r\n".join((first, *(name + b": " + value for name, value in fields), b"", b""))
