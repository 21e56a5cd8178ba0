"""Uploads lists with progress. Downloads exports, resumes after a broken connection, and verifies their digest."""

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from scrapeyard.cli.common.client import Server, ServerUnreachable
from scrapeyard.cli.common.output import write
from scrapeyard.cli.common.progress import Advance, byte_bar
from scrapeyard.cli.jobs.calls import as_query, list_format, media_type
from scrapeyard.errors import BadRequest, ScrapeyardError

ATTEMPTS = 5
PAUSE_SECONDS = 1.0
_PIECE = 256 * 1024


class DownloadFailed(ScrapeyardError):
    """An export failed, or the download does not match it. The message says why."""

    code = "export_failed"


def send_list(
    server: Server, path: str, file: str, table: Mapping[str, Any], headers: Mapping[str, str], *, doubt: str
) -> dict[str, Any]:
    """Stream a list (`-` is stdin) with the other fields of the call, and return the response. `doubt` says how to find
    out whether the server received a call without a response. Raises BadRequest, Refused or ServerUnreachable."""
    form = table.get("format") or list_format(file)
    query = as_query({**table, **({"format": form} if form else {})})
    sent = 0
    with open_list(file) as (stream, length), byte_bar(f"sending {file}", length) as advance:

        def pieces() -> Iterator[bytes]:
            nonlocal sent
            while piece := stream.read(_PIECE):
                yield piece
                sent += len(piece)
                advance(len(piece))

        try:
            kind = {"Content-Type": media_type(file, form), **_named(file)}
            return dict(server.upload(path, pieces(), length, {**headers, **kind}, **query))
        except ServerUnreachable as error:
            if not sent:
                raise
            raise ServerUnreachable(f"{error.message}; {doubt}") from None


def _named(file: str) -> dict[str, str]:
    """The header that tells the server the name of the file, for people."""
    name = quote(Path(file).name.encode("utf-8", "replace"))
    return {} if file == "-" else {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}


@contextmanager
def open_list(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """A list and its length, None where that is not known before. Raises BadRequest when it cannot be read."""
    if file == "-":
        yield sys.stdin.buffer, None
        return
    try:
        stream = open(file, "rb")  # noqa: SIM115, PTH123  closed below
    except OSError as error:
        raise BadRequest(f"{file}: cannot be read: {error.strerror}") from None
    with stream:
        facts = os.fstat(stream.fileno())
        if not stat.S_ISREG(facts.st_mode):
            yield stream, None
            return
        if facts.st_size == 0:
            raise BadRequest(f"{file}: there is nothing in it")
        yield stream, facts.st_size


def fetch_into(
    server: Server, export: Mapping[str, Any], stream: BinaryIO, *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Download a finished export. Raises ServerUnreachable after some attempts, DownloadFailed if it does not match the
    server's digest."""
    digest, had = hashlib.sha256(), 0
    with byte_bar(f"fetching {export['filename']}", export["bytes"]) as advance:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with server.rest(_path(export), had, f'"{export["sha256"]}"') as (first, pieces):
                    if first != had:
                        digest, had = hashlib.sha256(), 0
                        stream.seek(0)
                        stream.truncate()
                    for piece in pieces:
                        had += _kept(piece, stream, digest, advance)
                break
            except ServerUnreachable:
                if attempt == ATTEMPTS:
                    raise
                sleep(PAUSE_SECONDS * attempt)
    _check(export, digest.hexdigest())


def fetch_to_stdout(server: Server, export: Mapping[str, Any]) -> None:
    """As `fetch_into`, to stdout: written bytes cannot be taken back, so a wrong digest is reported at the end."""
    digest = hashlib.sha256()
    with server.download(_path(export)) as pieces:
        for piece in pieces:
            digest.update(piece)
            write(piece)
    _check(export, digest.hexdigest())


def _path(export: Mapping[str, Any]) -> str:
    return f"/api/exports/{export['id']}/download"


def _kept(piece: bytes, stream: BinaryIO, digest: "hashlib._Hash", advance: Advance) -> int:
    stream.write(piece)
    digest.update(piece)
    advance(len(piece))
    return len(piece)


def _check(export: Mapping[str, Any], digest: str) -> None:
    if digest != export["sha256"]:
        raise DownloadFailed(
            f"what came is not what was made: its SHA-256 is {digest}, not {export['sha256']}; try again"
        )
