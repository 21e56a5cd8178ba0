"""Parquet files by day, in a bucket or a folder: `PREFIX/day=2026-01-31/BATCH.parquet`.

The day is that of each record's end, in UTC; a batch over midnight becomes two files. A file is named by its batch and
appears whole, so a repeated batch writes the same file again. A process of its own makes the file, since pyarrow takes
150 MB of memory, which ends with it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore

from scrapeyard.blobs.buckets import Bucket, open_bucket
from scrapeyard.errors import SettingsInvalid, SinkUnavailable
from scrapeyard.extras import missing
from scrapeyard.framed_process import Framing, start_process
from scrapeyard.results.sinks.port import RefusedRecord, Repeats, SinkBatch, SinkRecord
from scrapeyard.settings import SinkTarget, hide_password

FRAMING: Final = Framing(320 * 1024 * 1024)
"""More than the largest record, which `sinks.max_record_mb` bounds."""
ROWS: Final = b"R"
"""To the process: some rows, in the order of COLUMNS."""
END: Final = b"E"
"""To the process: that was all. From it: the file is complete."""
DATA: Final = b"D"
"""From the process: a piece of the file."""
FAULT: Final = b"F"
COLUMNS: Final[dict[str, str]] = {
    "job_id": "text",
    "item_key": "text",
    "scraper": "text",
    "version": "text",
    "status": "text",
    "exit_reason": "text",
    "http_status": "integer",
    "attempt": "integer",
    "finished_at": "instant",
    "error": "text",
    "input": "text",
    "data": "text",
}
"""The columns of every file, with their types. `input` and `data` are JSON, so that no value has to fit a type."""
_FRAME_ROWS: Final = 250
_FRAME_BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes of documents in a frame of several rows."""
_RETRIES: Final = 2
_PROBE: Final = "_scrapeyard_probe"
"""Readers of datasets skip names that begin with an underscore."""


class ParquetSink:
    """A ResultSink."""

    repeats: Repeats = "once"

    def __init__(self, target: SinkTarget, *, timeout_seconds: float) -> None:
        """Raises SettingsInvalid."""
        if words := missing("parquet"):
            raise SettingsInvalid(f"sinks.targets: {target.name}: {words}")
        self.name = target.name
        self._url = target.url.get_secret_value()
        self._target = target
        self._timeout = timeout_seconds
        self._store: ObjectStore | None = None

    async def start(self) -> None:
        """Nothing to do: the store is opened by the first batch."""

    async def stop(self) -> None:
        """Nothing to do: the store holds no connection that must be closed."""
        self._store = None

    async def check(self) -> str:
        """Write and remove a small object. Raises SinkUnavailable."""
        with _translated():
            store = self._open()
            await obstore.put_async(store, _PROBE, b"probe", use_multipart=False)
            await obstore.delete_async(store, _PROBE)
        return f"Parquet files in {hide_password(self._url)}"

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        """Write a file for each day of the batch."""
        days: dict[str, list[SinkRecord]] = {}
        for record in batch.records:
            days.setdefault(f"{datetime.fromtimestamp(record.finished_at, UTC):%Y-%m-%d}", []).append(record)
        for day, records in days.items():
            file = await _written(records)
            with _translated():
                await obstore.put_async(self._open(), f"day={day}/{batch.id}.parquet", file)
        return ()

    def _open(self) -> ObjectStore:
        if self._store is None:
            place = urlsplit(self._url)
            if place.scheme == "file":
                self._store = LocalStore(Path(unquote(place.path)), mkdir=True)
            else:
                self._store = open_bucket(self._bucket(), timeout_seconds=self._timeout, retries=_RETRIES)
        return self._store

    def _bucket(self) -> Bucket:
        target = self._target
        return Bucket(
            url=self._url,
            endpoint=target.endpoint,
            region=target.region,
            access_key=target.access_key.get_secret_value(),
            secret_key=target.secret_key.get_secret_value(),
            ca_file=target.ca_file,
        )


async def _written(records: Sequence[SinkRecord]) -> bytes:
    """The file of these records. Raises SinkUnavailable if the process that makes it fails."""
    process = await start_process("scrapeyard.results.sinks.parquet_child", framing=FRAMING, variables=("TMPDIR",))
    try:
        for some in _frames(records):
            rows = [_row(record) for record in some]
            await process.send(FRAMING.pack(ROWS, msgspec.msgpack.encode(rows)))
        await process.send(FRAMING.pack(END))
        pieces = []
        letter, body = await process.receive()
        while letter == DATA:
            pieces.append(body)
            letter, body = await process.receive()
        if letter != END:
            raise SinkUnavailable(f"the file could not be made: {body.decode(errors='replace')[:300]}")
        return b"".join(pieces)
    except (ConnectionError, EOFError):
        raise SinkUnavailable("the process that makes the file ended early; it may have run out of memory") from None
    finally:
        await asyncio.shield(process.end())


def _frames(records: Sequence[SinkRecord]) -> Iterator[list[SinkRecord]]:
    some: list[SinkRecord] = []
    size = 0
    for record in records:
        more = len(bytes(record.input)) + len(bytes(record.data))
        if some and (len(some) == _FRAME_ROWS or size + more > _FRAME_BYTES):
            yield some
            some, size = [], 0
        some.append(record)
        size += more
    yield some


def _row(record: SinkRecord) -> list[str | int | None]:
    return [
        record.job_id,
        record.item_key,
        record.scraper,
        record.version,
        record.status,
        record.exit_reason,
        record.http_status,
        record.attempt,
        round(record.finished_at * 1_000_000),
        record.error or None,
        bytes(record.input).decode(),
        bytes(record.data).decode(),
    ]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SettingsInvalid as error:
        raise SinkUnavailable(error.message) from None
    except (BaseError, OSError, ValueError) as error:
        raise SinkUnavailable(f"{type(error).__name__}: {error}".replace("\n", " ")[:500]) from None
