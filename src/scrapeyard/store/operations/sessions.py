"""Named sessions of scrapers: their cookies, as the engine packs them."""

from typing import Final

from sqlalchemy import Column, ColumnElement, Double, Index, LargeBinary, Table, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.store.database.database import Database
from scrapeyard.store.ports.runs import SessionChange
from scrapeyard.store.tables.runs import ID, METADATA

MAX_SESSIONS: Final = 1000
"""Of one scraper; those that were not changed for the longest time go."""

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("scraper_id", ID, primary_key=True),
    Column("name", ID, primary_key=True),
    Column("cookies", LargeBinary, nullable=False),
    Column("saved_at", Double, nullable=False),
    Index("sessions_by_saved_at", "saved_at"),
)


class SqlSessions:
    """The engines' SessionStore."""

    _database: Database

    async def read_session(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was kept since then; empty when nothing was."""
        query = select(SESSIONS.c.cookies).where(_at(scraper_id, name), SESSIONS.c.saved_at > saved_after)
        rows = await self._database.fetch(query)
        return bytes(rows[0]["cookies"]) if rows else b""

    async def change_session(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is kept. Of two who change at once, the second is given what the first has kept."""
        place = _at(scraper_id, name)
        blank = {"scraper_id": scraper_id, "name": name, "cookies": b"", "saved_at": now}

        async def work(connection: AsyncConnection) -> None:
            # The row comes first, so that of two who change at once the second waits and sees what the first did.
            insert = self._database.insert(SESSIONS).values(blank).on_conflict_do_nothing()
            made = (await connection.execute(insert)).rowcount
            kept = await connection.scalar(select(SESSIONS.c.cookies).where(place).with_for_update())
            changed = change(bytes(kept or b""))
            await connection.execute(update(SESSIONS).where(place).values(cookies=changed, saved_at=now))
            if made:
                await _make_room(connection, scraper_id)

        await self._database.write(work)

    async def forget_sessions_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""
        await self._database.change(delete(SESSIONS).where(SESSIONS.c.saved_at < saved_before))


def _at(scraper_id: str, name: str) -> ColumnElement[bool]:
    return (SESSIONS.c.scraper_id == scraper_id) & (SESSIONS.c.name == name)


async def _make_room(connection: AsyncConnection, scraper_id: str) -> None:
    mine = SESSIONS.c.scraper_id == scraper_id
    over = (await connection.scalar(select(func.count()).where(mine)) or 0) - MAX_SESSIONS
    if over > 0:
        oldest = select(SESSIONS.c.name).where(mine).order_by(SESSIONS.c.saved_at).limit(over)
        names = (await connection.scalars(oldest)).all()
        await connection.execute(delete(SESSIONS).where(mine, SESSIONS.c.name.in_(names)))
