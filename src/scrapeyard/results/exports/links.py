"""The export `links`: every link of every page, with how its target was answered.

What a link leads to may be read long after the link itself. So pages and links wait in a private SQLite file, which
vanishes with the process, and are joined at the end: memory stays the same however many there are.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from scrapeyard.results.exports.cells import as_text
from scrapeyard.results.exports.columns import Row
from scrapeyard.results.exports.protocol import Line
from scrapeyard.results.exports.records import redirect_of, spelled, status_of, url_of

_BLOCK: Final = 1000
_MAX_CELL: Final = 1000
"""Characters of an anchor's text."""
_DEAD: Final = frozenset(
    {
        *("fetch_dns", "fetch_connect", "fetch_tls", "fetch_timeout", "fetch_protocol"),
        *("fetch_redirects", "fetch_bad_url"),
    }
)
"""Ends that say the target cannot be had. Others say nothing of it: robots.txt, budgets, blocks, our own faults."""
_NOT_TOLD: Final = frozenset({401, 403, 407, 429, 451})
"""Statuses that refuse us, and may serve others."""
_SCHEMA: Final = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; PRAGMA temp_store = FILE;
CREATE TABLE pages (n INTEGER PRIMARY KEY, url TEXT, key TEXT UNIQUE, status INTEGER, reason TEXT, broken INTEGER,
  redirect TEXT, chain TEXT, hops INTEGER);
CREATE TABLE links (n INTEGER PRIMARY KEY, source TEXT, target TEXT, key TEXT, anchor TEXT, rel TEXT, internal INTEGER);
"""
_PREPARE: Final = "CREATE TABLE inlinks AS SELECT key, COUNT(DISTINCT source) AS count FROM links GROUP BY key;"
_INDEX: Final = "CREATE UNIQUE INDEX inlinks_key ON inlinks (key);"
_LINKS: Final = """
SELECT l.source, l.target, l.anchor, l.rel, l.internal,
  p.status, p.reason, p.broken, p.redirect, p.chain, p.hops, i.count
FROM links l LEFT JOIN pages p ON p.key = l.key JOIN inlinks i ON i.key = l.key ORDER BY l.n
"""
_UNLINKED: Final = """
SELECT NULL, p.url, NULL, NULL, NULL, p.status, p.reason, p.broken, p.redirect, p.chain, p.hops, 0
FROM pages p LEFT JOIN inlinks i ON i.key = p.key
WHERE i.key IS NULL AND (p.broken OR p.redirect IS NOT NULL) ORDER BY p.n
"""
"""Pages that a list or sitemap names and no page links to: those with something to mend."""
_BOOLEANS: Final = (4, 7)


class LinkTable:
    """Collects the pages and links of a job; `rows` gives them joined, once, at the end."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN")
        self.links = 0

    def add(self, block: Sequence[tuple[Line, dict[str, Any]]]) -> None:
        """Items with their data, in order."""
        pages = [_page(line, page) for line, page in block if line.status in ("success", "error")]
        self._db.executemany("INSERT OR IGNORE INTO pages VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", pages)
        links = [link for line, page in block for link in _links(line, page)]
        self._db.executemany("INSERT INTO links VALUES (NULL, ?, ?, ?, ?, ?, ?)", links)
        self.links += len(links)

    def rows(self) -> Iterator[list[Row]]:
        """All rows in blocks: links in the order of their pages, then unlinked pages."""
        self._db.execute(_PREPARE)
        self._db.execute(_INDEX)
        for query in (_LINKS, _UNLINKED):
            found = self._db.execute(query)
            while block := found.fetchmany(_BLOCK):
                yield [_row(row) for row in block]
        self._db.close()


def _page(line: Line, page: dict[str, Any]) -> tuple[Any, ...]:
    url = url_of(line, page)
    status = status_of(line, page)
    chain = page.get("redirects")
    hops = [hop for hop in chain if isinstance(hop, str)] if isinstance(chain, list) else []
    redirect = redirect_of(page)
    shown = "|".join([*hops, redirect]) if redirect and hops else redirect
    reason = line.exit_reason or None
    return url, spelled(url), status, reason, _broken(line, status), redirect, shown, len(hops) or int(bool(redirect))


def _broken(line: Line, status: int | None) -> bool | None:
    """Whether a link to this page is broken; None if that cannot be told."""
    if status is not None and status >= 400:
        return None if status in _NOT_TOLD else True
    if line.status == "success":
        return False
    return True if line.exit_reason in _DEAD else None


def _links(line: Line, page: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    source = url_of(line, page)
    anchors = page.get("anchors")
    found = anchors if isinstance(anchors, list) else page.get("links")
    for link in found if isinstance(found, list) else ():
        table = link if isinstance(link, dict) else {"url": link}
        url = table.get("url")
        if isinstance(url, str) and url:
            text, internal = as_text(table.get("text")), table.get("internal")
            is_internal = internal if isinstance(internal, bool) else None
            yield source, url, spelled(url), text and text[:_MAX_CELL], as_text(table.get("rel")), is_internal


def _row(found: tuple[Any, ...]) -> Row:
    row = list(found)
    for place in _BOOLEANS:
        row[place] = None if row[place] is None else bool(row[place])
    return row
