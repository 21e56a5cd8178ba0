"""The export `pages`: every page of a crawl, and which of them are duplicates of others.

A page may name one that comes after it as its canonical, so the rows wait in a private SQLite file, which vanishes with
the process: memory stays the same however many there are. Who reads along gets each row at once; it lacks
`duplicate_of` if that depends on pages to come.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from scrapeyard.results.exports.cells import as_integer
from scrapeyard.results.exports.columns import Row
from scrapeyard.results.exports.protocol import Line, decode_rows, encode
from scrapeyard.results.exports.records import page_row, spelled, status_of, url_of

_BLOCK: Final = 200
_SCHEMA: Final = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; PRAGMA temp_store = FILE;
CREATE TABLE pages (n INTEGER PRIMARY KEY, url TEXT, key TEXT, other TEXT, hash TEXT, row BLOB,
  original TEXT, open INTEGER DEFAULT 0);
"""
_INSERT: Final = "INSERT INTO pages (url, key, other, hash, row) VALUES (?, ?, ?, ?, ?)"
_INDEX_KEYS: Final = "CREATE INDEX IF NOT EXISTS pages_key ON pages (key);"
_INDEX_TEXTS: Final = "CREATE INDEX pages_hash ON pages (hash);"
_NAMED: Final = "SELECT url FROM pages WHERE key = ? ORDER BY n LIMIT 1"
_SAME_TEXT: Final = "SELECT url, open FROM pages WHERE hash = ? AND original IS NULL ORDER BY n LIMIT 1"
_DECIDE: Final = "UPDATE pages SET original = ?, open = ? WHERE n = last_insert_rowid()"
_MARK: Final = """
UPDATE pages SET original = (
  SELECT o.url FROM pages o
  WHERE o.key = pages.other AND o.n != pages.n AND NOT (COALESCE(o.other, '') = pages.key AND o.n > pages.n)
  ORDER BY o.n LIMIT 1
) WHERE other IS NOT NULL;
CREATE TABLE firsts AS SELECT hash, MIN(n) AS n, url FROM pages
WHERE hash IS NOT NULL AND original IS NULL GROUP BY hash;
CREATE INDEX firsts_hash ON firsts (hash);
UPDATE pages SET original = (SELECT f.url FROM firsts f WHERE f.hash = pages.hash AND f.n != pages.n)
WHERE original IS NULL AND hash IS NOT NULL;
"""
"""First by the page that each one names, which is its canonical or where it was redirected. Of two that name each other
the first one found is the original. Then by equal text, where the first page is the original."""
_COUNT: Final = "SELECT COUNT(*), TOTAL(open) FROM pages WHERE original IS NOT NULL"
_ROBOTS: Final = "fetch_robots"


class PageTable:
    """Collects the pages of a job. `notes`, then `rows`, once, at the end. With `live`, `add_live` for `add` and
    `rows`."""

    def __init__(self, *, live: bool = False) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_SCHEMA + (_INDEX_KEYS + _INDEX_TEXTS if live else ""))
        self._db.execute("BEGIN")
        self._failed: Counter[str] = Counter()
        self.pages = 0

    def add(self, block: Sequence[tuple[Line, dict[str, Any]]]) -> None:
        """Items with their data, in order."""
        self._db.executemany(_INSERT, [(*_place(line, page), encode([page_row(line, page)])) for line, page in block])
        self._count(block)

    def add_live(self, block: Sequence[tuple[Line, dict[str, Any]]]) -> Iterator[Row]:
        """The same, and their rows; without the last cell, `duplicate_of`, if that depends on pages to come."""
        self._count(block)
        for line, page in block:
            place = _place(line, page)
            original, is_open = self._original(*place[2:])
            self._db.execute(_INSERT, (*place, b""))
            self._db.execute(_DECIDE, (original, is_open))
            yield page_row(line, page) if is_open else [*page_row(line, page), original]

    def _original(self, named: str | None, text: str | None) -> tuple[str | None, bool]:
        """What a page duplicates by those before it, and whether those to come may change that; as `_MARK` does it."""
        if named is not None:
            (found,) = self._db.execute(_NAMED, (named,)).fetchone() or (None,)
            return found, found is None
        if text is None:
            return None, False
        found, is_open = self._db.execute(_SAME_TEXT, (text,)).fetchone() or (None, 0)
        return (None, True) if is_open else (found, False)

    def _count(self, block: Sequence[tuple[Line, dict[str, Any]]]) -> None:
        self._failed.update(line.exit_reason for line, _ in block if line.status == "error")
        self.pages += len(block)

    def notes(self) -> list[str]:
        """Find the duplicates; what is told of the whole crawl."""
        self._db.execute("COMMIT")
        self._db.executescript(_INDEX_KEYS + _MARK)
        doubles, late = map(int, self._db.execute(_COUNT).fetchone())
        forbidden = self._failed.pop(_ROBOTS, 0)
        failed = ", ".join(f"{reason} {count:,}" for reason, count in self._failed.most_common())
        return [
            *([f"robots.txt forbids {forbidden:,} {_pages(forbidden)}"] if forbidden else []),
            *([f"failed: {failed}"] if failed else []),
            *([f"{doubles:,} {_pages(doubles)} duplicate others (duplicate_of)"] if doubles > 1 else []),
            *(["1 page duplicates another (duplicate_of)"] if doubles == 1 else []),
            *([f"{late:,} of them without duplicate_of: it was known too late; -o FILE has it"] if late else []),
        ]

    def rows(self) -> Iterator[list[Row]]:
        """All rows in blocks, in the order of the items."""
        found = self._db.execute("SELECT row, original FROM pages ORDER BY n")
        while block := found.fetchmany(_BLOCK):
            yield [[*decode_rows(row)[0], original] for row, original in block]
        self._db.close()


def _place(line: Line, page: dict[str, Any]) -> tuple[str, str | None, str | None, str | None]:
    """Its URL, its key, the key of the page that it names, and the digest of its text."""
    url = url_of(line, page)
    key, other, text = None, None, None  # nothing is a duplicate of a page that could not be read
    if line.status == "success" and (status_of(line, page) or 200) < 400:
        key = spelled(url)
        named = page.get("canonical") or page.get("final_url")
        other = spelled(named) if isinstance(named, str) else None
        text = page.get("text_hash") if as_integer(page.get("word_count")) else None
    other = other if other != key else None
    return url, key, other, text if isinstance(text, str) else None


def _pages(count: int) -> str:
    return "page" if count == 1 else "pages"
