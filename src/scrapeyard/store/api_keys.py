"""Keys in the store."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import json
from sqlalchemy import ColumnElement, RowMapping, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.identity import ApiKey, ClientLimits, Role
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.ports.keys import MAX_KEYS
from scrapeyard.store.tables.keys import API_KEYS

_LIMITS: Final = json.Decoder(ClientLimits)
_SCRAPERS: Final = json.Decoder(tuple[str, ...])


class SqlApiKeys(SqlPart):
    """The ApiKeyStore."""

    async def add(self, key: ApiKey, ended_before: float) -> bool:
        """Write a new key. False if there are MAX_KEYS, none of which ended before that time."""

        async def work(connection: AsyncConnection) -> bool:
            count = select(func.count()).select_from(API_KEYS)
            if (await connection.scalar(count) or 0) >= MAX_KEYS:
                await connection.execute(delete(API_KEYS).where(_ended(ended_before)))
                if (await connection.scalar(count) or 0) >= MAX_KEYS:
                    return False
            await connection.execute(self._database.insert(API_KEYS).values(_row(key)).on_conflict_do_nothing())
            return True

        return await self._database.write(work)

    async def all(self) -> tuple[ApiKey, ...]:
        """Every key, ended ones included, the oldest first."""
        rows = await self._database.fetch(select(API_KEYS).order_by(API_KEYS.c.id))
        return tuple(_key(row) for row in rows)

    async def mark(self) -> str:
        """Another text after each change but those of `last_used_at`."""
        rows = await self._database.fetch(
            select(func.count().label("count"), func.max(API_KEYS.c.changed_at).label("last")).select_from(API_KEYS)
        )
        return f"{rows[0]['count']} {rows[0]['last']!r}"

    async def revoke(self, key_id: str, now: float) -> ApiKey | None:
        """End a key now. One that was revoked stays as it is. None if there is no such key."""
        if not is_id(key_id):
            return None

        async def work(connection: AsyncConnection) -> ApiKey | None:
            going = (API_KEYS.c.id == key_id) & API_KEYS.c.revoked_at.is_(None)
            await connection.execute(update(API_KEYS).where(going).values(revoked_at=now, changed_at=now))
            return await _found(connection, key_id)

        return await self._database.write(work)

    async def rotate(self, key_id: str, successor: ApiKey, until: float, now: float) -> ApiKey | None:
        """Add a key in place of another, which ends at `until`. None if there is none to replace."""
        if not is_id(key_id):
            return None

        async def work(connection: AsyncConnection) -> ApiKey | None:
            before = await _found(connection, key_id, lock=True)
            if before is None or before.revoked_at is not None or before.replaced_by:
                return before if before is not None and before.replaced_by == successor.id else None
            after = before.ending(until, successor.id)
            values = {"expires_at": after.expires_at, "replaced_by": successor.id, "changed_at": now}
            await connection.execute(update(API_KEYS).where(API_KEYS.c.id == key_id).values(values))
            await connection.execute(API_KEYS.insert().values(_row(successor)))
            return after

        return await self._database.write(work)

    async def note_use(self, used: Mapping[str, float]) -> None:
        """Write when keys were last used, unless a later time is known."""

        async def work(connection: AsyncConnection) -> None:
            for key_id, at in sorted(used.items()):
                earlier = or_(API_KEYS.c.last_used_at.is_(None), API_KEYS.c.last_used_at < at)
                place = (API_KEYS.c.id == key_id) & earlier
                await connection.execute(update(API_KEYS).where(place).values(last_used_at=at))

        await self._database.write(work)


async def _found(connection: AsyncConnection, key_id: str, *, lock: bool = False) -> ApiKey | None:
    query = select(API_KEYS).where(API_KEYS.c.id == key_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    return None if row is None else _key(row)


def _ended(before: float) -> ColumnElement[bool]:
    return or_(API_KEYS.c.revoked_at < before, API_KEYS.c.expires_at < before)


def _row(key: ApiKey) -> dict[str, Any]:
    row = {name: getattr(key, name) for name in key.__struct_fields__}
    return row | {
        "role": key.role.value,
        "scrapers": json.encode(key.scrapers),
        "limits": json.encode(key.limits),
    }


def _key(row: RowMapping) -> ApiKey:
    read = {
        "role": Role(row["role"]),
        "scrapers": _SCRAPERS.decode(row["scrapers"]),
        "limits": _LIMITS.decode(row["limits"]),
    }
    return ApiKey(**(dict(row) | read))
