"""Exports from a server: with progress, gone on with where a connection broke, and held to their digest."""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from scrapeyard.cli.bars import Advance, byte_bar
from scrapeyard.cli.screen import write
from scrapeyard.cli.server import Server, ServerUnreachable
from scrapeyard.errors import ScrapeyardError

ATTEMPTS = 5
PAUSE_SECONDS = 1.0


class ExportFailed(ScrapeyardError):
    """A file could not be made of a job, or did not arrive as it was made. The message tells why."""

    code = "export_failed"


def fetch_into(
    server: Server, export: Mapping[str, Any], stream: BinaryIO, *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Download a finished export. Raises ServerUnreachable after some attempts, ExportFailed when it is not what the
    server says it made."""
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
    """The same, to stdout: what is written there cannot be taken back, so a wrong digest is told after it."""
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
        raise ExportFailed(
            f"what came is not what was made: its SHA-256 is {digest}, not {export['sha256']}; try again"
        )
