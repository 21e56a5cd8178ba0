"""Migrated SQLite files for tests: a copy of one that was migrated once takes a tenth of the time."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from sqlalchemy.engine import make_url

from scrapeyard.store.database.migrate import migrate
from scrapeyard.store.database.sqlite import Sqlite


def migrated(path: Path) -> str:
    """Put an empty database of the newest schema there, unless there is one; its URL."""
    if not path.exists():
        path.write_bytes(_template())
    return f"sqlite:///{path}"


@cache
def _template() -> bytes:
    # Migrating runs an event loop, and the caller may be in one: so it has a thread of its own.
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as alone:
        path = Path(folder) / "template.db"
        alone.submit(migrate, Sqlite(make_url(f"sqlite:///{path}"))).result()
        return path.read_bytes()
