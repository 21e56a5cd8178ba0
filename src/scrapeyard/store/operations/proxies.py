"""Pools of proxies that operators keep, and how each worker finds them."""

from typing import Final

from msgspec import json
from sqlalchemy import delete, select

from scrapeyard.store.database import Database
from scrapeyard.store.ports.runs import KeptPool, PoolStanding
from scrapeyard.store.tables.runs import PROXY_POOLS, PROXY_STANDINGS

_STANDINGS: Final = json.Decoder(tuple[PoolStanding, ...])


class SqlProxies:
    """The ProxyStore."""

    _database: Database

    async def pools(self) -> tuple[KeptPool, ...]:
        """Every pool, by name."""
        rows = await self._database.fetch(select(PROXY_POOLS).order_by(PROXY_POOLS.c.name))
        return tuple(KeptPool(**row) for row in rows)

    async def put_pool(self, pool: KeptPool) -> None:
        """Write a pool, over one of the same name."""
        insert = self._database.insert(PROXY_POOLS)
        row = {"name": pool.name, "definition": pool.definition, "changed_at": pool.changed_at}
        changes = {"definition": insert.excluded.definition, "changed_at": insert.excluded.changed_at}
        await self._database.change(insert.values(row).on_conflict_do_update(index_elements=["name"], set_=changes))

    async def remove_pool(self, name: str) -> bool:
        """True if it was there."""
        gone = delete(PROXY_POOLS).where(PROXY_POOLS.c.name == name).returning(PROXY_POOLS.c.name)
        return bool(await self._database.change(gone))

    async def put_standings(self, worker_id: str, standings: tuple[PoolStanding, ...], now: float) -> None:
        """Write how a worker's pools do, over what it last told."""
        insert = self._database.insert(PROXY_STANDINGS)
        row = {"worker_id": worker_id, "seen_at": now, "pools": json.encode(standings)}
        changes = {"seen_at": insert.excluded.seen_at, "pools": insert.excluded.pools}
        statement = insert.values(row).on_conflict_do_update(index_elements=["worker_id"], set_=changes)
        await self._database.change(statement)

    async def standings(self, seen_after: float) -> dict[str, tuple[PoolStanding, ...]]:
        """By worker, of those that told since then."""
        query = select(PROXY_STANDINGS).where(PROXY_STANDINGS.c.seen_at >= seen_after)
        rows = await self._database.fetch(query.order_by(PROXY_STANDINGS.c.worker_id))
        return {row["worker_id"]: _STANDINGS.decode(row["pools"]) for row in rows}

    async def forget_standings_before(self, seen_before: float) -> None:
        """Drop what workers told that have long been silent."""
        await self._database.change(delete(PROXY_STANDINGS).where(PROXY_STANDINGS.c.seen_at < seen_before))
