"""The ids that a list gives to its items: one id is one item."""

import hashlib
import sqlite3

_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;
CREATE TABLE ids (id TEXT PRIMARY KEY, line INTEGER, digest BLOB) WITHOUT ROWID;
BEGIN;
"""


class ItemIds:
    """Finds rows that have the id of an earlier row and another input. The ids wait in a private SQLite file, which
    vanishes with its connection, since a list may have millions."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None

    def earlier(self, item_id: str, line: int, packed: bytes) -> int | None:
        """The line of the row that has this id with another input; None if there is none."""
        if self._db is None:
            self._db = sqlite3.connect("", isolation_level=None)
            self._db.executescript(_SCHEMA)
        digest = hashlib.blake2b(packed, digest_size=16).digest()
        if self._db.execute("INSERT OR IGNORE INTO ids VALUES (?, ?, ?)", (item_id, line, digest)).rowcount:
            return None
        found, known = self._db.execute("SELECT line, digest FROM ids WHERE id = ?", (item_id,)).fetchone()
        return None if known == digest else int(found)

    def close(self) -> None:
        """Forget them. May be called twice."""
        if self._db is not None:
            self._db.close()
            self._db = None
