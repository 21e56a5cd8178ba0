"""One leader among dispatchers, by a lease in one row."""

from sqlalchemy import delete, or_

from scrapeyard.store.database import Database
from scrapeyard.store.tables.runs import LEADERS


class SqlLeaders:
    """The LeaderStore."""

    _database: Database

    async def lead(self, role: str, holder: str, now: float, until: float) -> bool:
        """Become or stay leader until then. True if `holder` leads now."""
        insert = self._database.insert(LEADERS).values(role=role, holder=holder, until=until)
        statement = insert.on_conflict_do_update(
            index_elements=["role"],
            set_={"holder": insert.excluded.holder, "until": insert.excluded.until},
            where=or_(LEADERS.c.holder == holder, LEADERS.c.until <= now),
        ).returning(LEADERS.c.role)
        return bool(await self._database.change(statement))

    async def resign(self, role: str, holder: str) -> None:
        """Let another lead at once. Does nothing when another leads."""
        await self._database.change(delete(LEADERS).where(LEADERS.c.role == role, LEADERS.c.holder == holder))
