"""Where the rows of jobs stand. docs/design/dynamodb.md explains the layout.

Numbers are written with leading zeros and times as the hex digits of their bits, so that both sort as text.
"""

import struct
from typing import Final
from zlib import crc32

from scrapeyard.store.dynamo.table.values import Key

JOBS: Final = "jobs"
"""Partition with a small row for each job, in the order in which they were created: for listings."""
OPEN_JOBS: Final = "jobs/open"
"""The same for jobs that somebody still has to do something for."""
LAST_JOB: Final[Key] = ("jobs/last", "number")
"""The row with the number of the newest job."""
JOB_NEWS: Final = "jobs/news"
"""Jobs with a webhook that changed since its receiver was told."""
OPEN_EXPORTS: Final = "exports/open"
"""Exports that are not final."""
SCOPES: Final = "scopes"
"""Scopes of snapshots."""
ENDS: Final = 1000
"""Items whose ends stand in one partition."""
_KEY_SHARDS: Final = 32
"""Partitions that the keys of a job's items are spread over: each takes 1,000 writes a second."""


def number(value: int) -> str:
    """A number that sorts as text."""
    return f"{value:012}"


def moment(at: float) -> str:
    """A time that sorts as text, exactly: the bits of positive floats are in the order of the floats."""
    return struct.pack(">d", max(0.0, at)).hex()


def job_key(job_id: str) -> Key:
    """The row of a job."""
    return f"job/{job_id}", "job"


def batch_key(job_id: str, batch_id: str) -> Key:
    """A batch that is out, beside its job."""
    return f"job/{job_id}", f"batch/{batch_id}"


def batch_job_key(batch_id: str) -> Key:
    """The row that tells the job of a batch."""
    return f"batch/{batch_id}", "batch"


def part_of(job_id: str, name: str) -> str:
    """The partition of other rows of a job: blocks, items, inputs, failed, due, events, points, exports."""
    return f"job/{job_id}/{name}"


def item_key(job_id: str, key: str) -> Key:
    """The row that tells the number of an item."""
    return part_of(job_id, f"keys/{crc32(key.encode()) % _KEY_SHARDS}"), key


def end_key(job_id: str, seq: int) -> Key:
    """How an item ended, or the attempt that it waits for."""
    return ends_part(job_id, seq), number(seq)


def ends_part(job_id: str, seq: int) -> str:
    """The partition of that row."""
    return part_of(job_id, f"ends/{seq // ENDS}")


def failed_key(job_id: str, seq: int) -> Key:
    """Says that an item failed."""
    return part_of(job_id, "failed"), number(seq)


def export_key(export_id: str) -> Key:
    """An export."""
    return f"export/{export_id}", "export"


def snapshots_part(scope: str) -> str:
    """The partition of a scope's snapshots."""
    return f"snapshot/{scope}"
