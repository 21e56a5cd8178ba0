"""Sites that operators want treated in their own way."""

from typing import Final

from sqlalchemy import delete, func, select

from scrapeyard.store.database import Database
from scrapeyard.store.ports.runs import SiteRules
from scrapeyard.store.tables.runs import SITES

_FIELDS: Final = SiteRules.__struct_fields__


class SqlSites:
    """The SiteStore."""

    _database: Database

    async def site_rules(self) -> tuple[SiteRules, ...]:
        """All of them, by site."""
        rows = await self._database.fetch(select(SITES).order_by(SITES.c.site))
        return tuple(SiteRules(**{name: row[name] for name in _FIELDS}) for row in rows)

    async def site_rules_mark(self) -> str:
        """How many there are and when they were changed."""
        changed = SITES.c.updated_at
        query = select(func.count().label("count"), func.max(changed).label("last"), func.sum(changed).label("sum"))
        row = (await self._database.fetch(query.select_from(SITES)))[0]
        return f"{row['count']}/{row['last']}/{row['sum']}"

    async def put_site_rules(self, rules: SiteRules) -> None:
        """Write them, whole, over what was there."""
        row = {name: getattr(rules, name) for name in _FIELDS}
        insert = self._database.insert(SITES).values(row)
        others = {name: insert.excluded[name] for name in _FIELDS if name != "site"}
        await self._database.change(insert.on_conflict_do_update(index_elements=["site"], set_=others))

    async def remove_site_rules(self, site: str) -> bool:
        """The settings decide again. False when there were none."""
        return bool(await self._database.change(delete(SITES).where(SITES.c.site == site).returning(SITES.c.site)))
