"""The export `pages`: every page of a crawl, and which of them are duplicates of others.

A page may name one that comes after it as its canonical, so the rows wait in a private SQLite file, which vanishes with
the process: memory stays the same however many there are.
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
CREATE TABLE pages (n INTEGER PRIMARY KEY, url TEXT, key TEXT, other TEXT, hash TEXT, original TEXT, row BLOB);
"""
_MARK: Final = """
CREATE INDEX pages_key ON pages (key);
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
_COUNT: Final = "SELECT COUNT(*) FROM pages WHERE original IS NOT NULL"
_ROBOTS: Final = "fetch_robots"


class PageTable:
    """Collects the pages of a job. `notes`, then `rows`, once, at the end."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN")
        self._failed: Counter[str] = Counter()
        self.pages = 0

    def add(self, block: Sequence[tuple[Line, dict[str, Any]]]) -> None:
        """Items with their data, in order."""
        self._db.executemany(
            "INSERT INTO pages VALUES (NULL, ?, ?, ?, ?, NULL, ?)", [_page(line, page) for line, page in block]
        )
        self._failed.update(line.exit_reason for line, _ in block if line.status == "error")
        self.pages += len(block)

    def notes(self) -> list[str]:
        """Find the duplicates; what is told of the whole crawl."""
        self._db.execute("COMMIT")
        self._db.executescript(_MARK)
        doubles, forbidden = self._db.execute(_COUNT).fetchone()[0], self._failed.pop(_ROBOTS, 0)
        failed = ", ".join(f"{reason} {count:,}" for reason, count in self._failed.most_common())
        return [
            *([f"robots.txt forbids {forbidden:,} {_pages(forbidden)}"] if forbidden else []),
            *([f"failed: {failed}"] if failed else []),
            *([f"{doubles:,} {_pages(doubles)} duplicate others (duplicate_of)"] if doubles > 1 else []),
            *(["1 page duplicates another (duplicate_of)"] if doubles == 1 else []),
        ]

    def rows(self) -> Iterator[list[Row]]:
        """All rows in blocks, in the order of the items."""
        found = self._db.execute("SELECT row, original FROM pages ORDER BY n")
        while block := found.fetchmany(_BLOCK):
            yield [[*decode_rows(row)[0], original] for row, original in block]
        self._db.close()


def _page(line: Line, page: dict[str, Any]) -> tuple[Any, ...]:
    url = url_of(line, page)
    key, other, text = None, None, None  # nothing is a duplicate of a page that could not be read
    if line.status == "success" and (status_of(line, page) or 200) < 400:
        key = spelled(url)
        named = page.get("canonical") or page.get("final_url")
        other = spelled(named) if isinstance(named, str) else None
        text = page.get("text_hash") if as_integer(page.get("word_count")) else None
    other = other if other != key else None
    return url, key, other, text if isinstance(text, str) else None, encode([page_row(line, page)])


def _pages(count: int) -> str:
    return "page" if count == 1 else "pages"
