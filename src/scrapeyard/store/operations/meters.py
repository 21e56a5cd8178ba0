"""What was received, by day, site, job and proxy."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import RowMapping, delete, func, select

from scrapeyard.store.database.database import Database
from scrapeyard.store.ports.runs import Meter, Use, UseBy
from scrapeyard.store.tables.runs import FETCH_METERS

_ROWS: Final = 500
_COUNTED: Final = ("requests", "failures", "bytes")
_KEY: Final = ("day", "writer", "job_id", "site", "pool", "proxy_class")
_SITES: Final = 1000


class SqlMeters:
    """The MeterStore."""

    _database: Database

    async def put_meters(self, meters: Sequence[Meter]) -> None:
        """Write numbers whole, over what the same writer wrote for the same key."""
        insert = self._database.insert(FETCH_METERS)
        changes = {name: insert.excluded[name] for name in _COUNTED}
        statement = insert.on_conflict_do_update(index_elements=_KEY, set_=changes)
        rows = [asdict(meter) for meter in meters]
        for start in range(0, len(rows), _ROWS):
            await self._database.write_rows(statement, rows[start : start + _ROWS])

    async def use(
        self, by: Sequence[UseBy], since: str, *, sites: Sequence[str] | None = None, limit: int = 1000
    ) -> tuple[Use, ...]:
        """Sums since a day, the most bytes first."""
        columns = [FETCH_METERS.c[name] for name in by]
        size = func.sum(FETCH_METERS.c.bytes)
        sums = [func.sum(FETCH_METERS.c[name]).label(name) for name in _COUNTED]
        query = select(*columns, *sums).where(FETCH_METERS.c.day >= since)
        if sites is not None:
            query = query.where(FETCH_METERS.c.site.in_(list(sites)[:_SITES]))
        rows = await self._database.fetch(query.group_by(*columns).order_by(size.desc(), *columns).limit(limit))
        return tuple(_use(row) for row in rows)

    async def forget_meters_before(self, day: str) -> None:
        """Drop the days before."""
        await self._database.change(delete(FETCH_METERS).where(FETCH_METERS.c.day < day))


def _use(row: RowMapping) -> Use:
    # The sum of no rows is NULL.
    fields: dict[str, Any] = {name: int(value or 0) if name in _COUNTED else value for name, value in row.items()}
    return Use(**fields)
