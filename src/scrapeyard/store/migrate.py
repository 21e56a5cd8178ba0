"""Brings the schema up to date. Safe to run twice, and from many processes at once.

Alembic keeps its state in module globals and speaks synchronously, so it runs in a thread of its own with an event loop
of its own, one migration at a time in this process; other processes are held off by the database.
"""

import asyncio
import threading
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from scrapeyard.store.backend import Backend

FOLDER: Final = Path(__file__).parent / "migrations"
HEAD: Final = "0011"
"""The newest revision in FOLDER; a database that stands there is left alone."""

_ONE_AT_A_TIME: Final = threading.Lock()


def migrate(backend: Backend) -> None:
    """Upgrade to HEAD. Blocks; call it from a thread without an event loop."""
    with _ONE_AT_A_TIME:
        asyncio.run(_migrate(backend))


async def _migrate(backend: Backend) -> None:
    async with backend.alone() as connection:
        if await connection.run_sync(_stands_at) != HEAD:
            await connection.run_sync(_upgrade)


def _stands_at(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _upgrade(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")
