"""The process that makes a Parquet file: `python -m scrapeyard.results.sinks.parquet_child`. Rows come on stdin, the
file leaves by stdout, both in frames. It has no secrets and no network; the kernel ends it with its parent.
"""

import io
import sys
from typing import Any, BinaryIO, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from scrapeyard.framed_process import prepare_child
from scrapeyard.results.sinks.parquet import COLUMNS, DATA, END, FAULT, FRAMING, ROWS

_TYPES: Final[dict[str, Any]] = {"text": pa.string(), "integer": pa.int64(), "instant": pa.timestamp("us", tz="UTC")}
SCHEMA: Final = pa.schema([(name, _TYPES[kind]) for name, kind in COLUMNS.items()])
_PIECE: Final = 1024 * 1024


def main() -> None:
    """Make one file."""
    prepare_child()
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(source: BinaryIO, answers: BinaryIO) -> None:
    """Until the last frame, or until the parent closes its end."""
    try:
        for start in range(0, len(file := _made(source)), _PIECE):
            answers.write(FRAMING.pack(DATA, file[start : start + _PIECE]))
        answers.write(FRAMING.pack(END))
    except (MemoryError, OSError, ValueError, pa.ArrowException) as error:
        answers.write(FRAMING.pack(FAULT, f"{type(error).__name__}: {error}".encode()))
    answers.flush()


def _made(source: BinaryIO) -> bytes:
    batches = []
    letter, body = FRAMING.read(source)
    while letter == ROWS:
        rows = msgspec.msgpack.decode(body, type=list[list[str | int | None]])
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
        batches.append(pa.record_batch(columns, schema=SCHEMA))
        letter, body = FRAMING.read(source)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches(batches, schema=SCHEMA), file, compression="zstd")
    return file.getvalue()


if __name__ == "__main__":
    main()
