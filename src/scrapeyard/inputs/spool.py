"""The file that a list becomes before its items are in the store: each item on a line, then what was left out.

    key {"input": …}
    key {"input": …}
    #{"rows": 2, "bad": 1, "first": [{"line": 3, "reason": "…"}]}

Keys begin with a letter or digit, so the last line cannot be mistaken for an item. The file is written whole or not at
all, so that reading it again yields the same blocks, and adding them again after a crash adds nothing twice.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from scrapeyard.errors import BlobsUnavailable
from scrapeyard.inputs.formats.rows import BadRow, ListRefused, ListUnreadable
from scrapeyard.inputs.mapper import Shaped
from scrapeyard.model.job import MAX_GAPS, NewItem
from scrapeyard.store.ports.jobs import ITEM_BLOCK

KEPT = 100
"""Bad rows that are listed one by one."""
_PIECE = 256 * 1024


class ListSummary(Struct, frozen=True, kw_only=True):
    """Summary of a list."""

    rows: int = 0
    """Items, including duplicates."""
    doubles: int = 0
    """Duplicate items; known once they are in the store."""
    bad: int = 0
    first: tuple[BadRow, ...] = ()
    """The first KEPT of the bad rows."""
    gaps: tuple[str, ...] = ()
    """What of the source was not read, as a job tells it."""

    @property
    def left_out(self) -> str:
        """How many rows could not be used, and why the first; empty if all could. Unread files are told as gaps."""
        if self.bad <= len(self.gaps):
            return ""
        return f"{self.bad} {'row' if self.bad == 1 else 'rows'} could not be used: {self.first[0]}"


class RowCount:
    """Counts rows, and refuses a list when its policy says so."""

    def __init__(self, *, reject: bool, may_be_empty: bool = False) -> None:
        self._reject = reject
        self._may_be_empty = may_be_empty
        self._rows = 0
        self._bad = 0
        self._first: list[BadRow] = []
        self.gaps: list[str] = []
        """What of the source was not read; add to it while it is read."""

    def take(self, shaped: Shaped) -> None:
        """Raises ListRefused once KEPT rows are bad, if the list is taken as a whole or not at all."""
        self._rows += len(shaped.items)
        self._bad += len(shaped.bad)
        self._first += shaped.bad[: KEPT - len(self._first)]
        if self._reject and self._bad >= KEPT:
            raise ListRefused(self._first, self._bad)

    @property
    def refused(self) -> bool:
        """Whether it is already certain that nothing of the list is taken."""
        return self._reject and self._bad > 0

    def end(self) -> ListSummary:
        """Raises ListRefused, or ListUnreadable if there is no item."""
        if self.refused:
            raise ListRefused(self._first, self._bad)
        if not self._rows and self._bad:
            raise ListUnreadable(f"none of its {self._bad} rows can be used: {self._first[0]}")
        if not self._rows and not self._may_be_empty:
            raise ListUnreadable("the list has no rows")
        return ListSummary(rows=self._rows, bad=self._bad, first=tuple(self._first), gaps=_shortened(self.gaps))


def _shortened(gaps: Sequence[str]) -> tuple[str, ...]:
    """The first MAX_GAPS; the last then says how many more there are."""
    if len(gaps) <= MAX_GAPS:
        return tuple(gaps)
    return (*gaps[: MAX_GAPS - 1], f"and {len(gaps) - MAX_GAPS + 1} more")


async def write_spool(shaped: AsyncIterator[Shaped], tally: RowCount) -> AsyncGenerator[bytes, None]:
    """Yield the file in chunks. Raises ListRefused or ListUnreadable."""
    held = bytearray()
    async for some in shaped:
        tally.take(some)
        if not tally.refused:
            held += b"".join([b"%b %b\n" % (item.key.encode(), bytes(item.input)) for item in some.items])
        if len(held) >= _PIECE:
            yield bytes(held)
            held.clear()
    held += b"#" + msgspec.json.encode(tally.end()) + b"\n"
    yield bytes(held)


async def read_spool(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[NewItem] | ListSummary, None]:
    """Yield blocks of ITEM_BLOCK items (the last may be shorter), then the summary. Raises BlobsUnavailable if cut."""
    block: list[NewItem] = []
    summary: ListSummary | None = None
    tail = b""
    async for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        for found in _items(lines):
            if isinstance(found, ListSummary):
                summary = found
                break
            block.append(found)
            if len(block) == ITEM_BLOCK:
                yield block
                block = []
    if summary is None:
        raise BlobsUnavailable("the file of a job's items breaks off; check the blob store")
    if block:
        yield block
    yield summary


def _items(lines: list[bytes]) -> Iterator[NewItem | ListSummary]:
    for line in lines:
        if line.startswith(b"#"):
            yield msgspec.json.decode(line[1:], type=ListSummary)
        else:
            key, _, packed = line.partition(b" ")
            yield NewItem(key=key.decode(), input=Raw(packed))
