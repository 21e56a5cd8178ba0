"""Changes by operators: channels, sites, pools of proxies."""

from typing import Final

from msgspec import json
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import new_id
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.ports.overrides import ChannelMove, KeptPool, PoolStanding, SiteRules, opened_pool, pool_place
from scrapeyard.store.tables.runs import CHANNEL_MOVES, CHANNELS, PROXY_POOLS, PROXY_STANDINGS, SITES


class SqlChannels(SqlPart):
    """The ChannelStore."""

    async def current(self) -> dict[str, dict[str, str]]:
        """By scraper id: channel → version. Only channels that are currently moved."""
        moved: dict[str, dict[str, str]] = {}
        query = select(CHANNELS.c.scraper_id, CHANNELS.c.channel, CHANNELS.c.version)
        for row in await self._database.fetch(query.order_by(CHANNELS.c.scraper_id, CHANNELS.c.channel)):
            moved.setdefault(row["scraper_id"], {})[row["channel"]] = row["version"]
        return moved

    async def move(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        """Point a channel to a version. None if it already points there; no move is then recorded."""
        place = (CHANNELS.c.scraper_id == scraper_id) & (CHANNELS.c.channel == channel)
        blank = {"scraper_id": scraper_id, "channel": channel, "version": "", "moved_at": now}

        async def work(connection: AsyncConnection) -> ChannelMove | None:
            # Write the row first, so that of two concurrent moves the second waits and sees the first.
            await connection.execute(self._database.insert(CHANNELS).values(blank).on_conflict_do_nothing())
            before = await connection.scalar(select(CHANNELS.c.version).where(place).with_for_update())
            if before == version:
                return None
            await connection.execute(update(CHANNELS).where(place).values(version=version, moved_at=now))
            move = ChannelMove(scraper_id=scraper_id, channel=channel, before=before or "", after=version, moved_at=now)
            return await _note(connection, move)

        return await self._database.write(work)

    async def clear(self, scraper_id: str, channel: str, now: float) -> ChannelMove | None:
        """Undo a move, so that the source decides again. None if the channel was not moved."""
        place = (CHANNELS.c.scraper_id == scraper_id) & (CHANNELS.c.channel == channel)

        async def work(connection: AsyncConnection) -> ChannelMove | None:
            before = await connection.scalar(delete(CHANNELS).where(place).returning(CHANNELS.c.version))
            if before is None:
                return None
            move = ChannelMove(scraper_id=scraper_id, channel=channel, before=before, after="", moved_at=now)
            return await _note(connection, move)

        return await self._database.write(work)

    async def moves(self, scraper_id: str, limit: int) -> tuple[ChannelMove, ...]:
        """The moves of one scraper's channels, newest first."""
        newest = (CHANNEL_MOVES.c.moved_at.desc(), CHANNEL_MOVES.c.id.desc())
        query = select(CHANNEL_MOVES).where(CHANNEL_MOVES.c.scraper_id == scraper_id).order_by(*newest).limit(limit)
        rows = await self._database.fetch(query)
        return tuple(ChannelMove(**{name: row[name] for name in ChannelMove.__struct_fields__}) for row in rows)


async def _note(connection: AsyncConnection, move: ChannelMove) -> ChannelMove:
    row = {name: getattr(move, name) for name in move.__struct_fields__}
    await connection.execute(CHANNEL_MOVES.insert().values(id=new_id("move"), **row))
    return move


_FIELDS: Final = SiteRules.__struct_fields__


class SqlSites(SqlPart):
    """The SiteStore."""

    async def rules(self) -> tuple[SiteRules, ...]:
        """All rules, by site."""
        rows = await self._database.fetch(select(SITES).order_by(SITES.c.site))
        return tuple(SiteRules(**{name: row[name] for name in _FIELDS}) for row in rows)

    async def mark(self) -> str:
        """A cheap version mark: the number of rules and when they were changed."""
        changed = SITES.c.updated_at
        query = select(func.count().label("count"), func.max(changed).label("last"), func.sum(changed).label("sum"))
        row = (await self._database.fetch(query.select_from(SITES)))[0]
        return f"{row['count']}/{row['last']}/{row['sum']}"

    async def put(self, rules: SiteRules) -> None:
        """Write the rules of a site, replacing existing ones."""
        row = {name: getattr(rules, name) for name in _FIELDS}
        insert = self._database.insert(SITES).values(row)
        others = {name: insert.excluded[name] for name in _FIELDS if name != "site"}
        await self._database.change(insert.on_conflict_do_update(index_elements=["site"], set_=others))

    async def remove(self, site: str) -> bool:
        """Remove the rules of a site, so that the settings apply. False if there were none."""
        return bool(await self._database.change(delete(SITES).where(SITES.c.site == site).returning(SITES.c.site)))


_STANDINGS: Final = json.Decoder(tuple[PoolStanding, ...])


class SqlProxies(SqlPart):
    """The ProxyStore."""

    async def pools(self) -> tuple[KeptPool, ...]:
        """Every pool, by name."""
        rows = await self._database.fetch(select(PROXY_POOLS).order_by(PROXY_POOLS.c.name))
        found = (opened_pool(KeptPool(**row), self._database.sealer) for row in rows)
        return tuple(pool for pool in found if pool is not None)

    async def put_pool(self, pool: KeptPool) -> None:
        """Write a pool, replacing one of the same name."""
        insert = self._database.insert(PROXY_POOLS)
        sealed = self._database.sealer.seal(pool.definition, pool_place(pool.name))
        row = {"name": pool.name, "definition": sealed, "changed_at": pool.changed_at}
        changes = {"definition": insert.excluded.definition, "changed_at": insert.excluded.changed_at}
        await self._database.change(insert.values(row).on_conflict_do_update(index_elements=["name"], set_=changes))

    async def remove_pool(self, name: str) -> bool:
        """Remove a pool; True if it existed."""
        gone = delete(PROXY_POOLS).where(PROXY_POOLS.c.name == name).returning(PROXY_POOLS.c.name)
        return bool(await self._database.change(gone))

    async def put_standings(self, worker_id: str, standings: tuple[PoolStanding, ...], now: float) -> None:
        """Write the state of a worker's pools, replacing its last report."""
        insert = self._database.insert(PROXY_STANDINGS)
        row = {"worker_id": worker_id, "seen_at": now, "pools": json.encode(standings)}
        changes = {"seen_at": insert.excluded.seen_at, "pools": insert.excluded.pools}
        statement = insert.values(row).on_conflict_do_update(index_elements=["worker_id"], set_=changes)
        await self._database.change(statement)

    async def standings(self, seen_after: float) -> dict[str, tuple[PoolStanding, ...]]:
        """Reports since then, by worker."""
        query = select(PROXY_STANDINGS).where(PROXY_STANDINGS.c.seen_at >= seen_after)
        rows = await self._database.fetch(query.order_by(PROXY_STANDINGS.c.worker_id))
        return {row["worker_id"]: _STANDINGS.decode(row["pools"]) for row in rows}

    async def forget_standings_before(self, seen_before: float) -> None:
        """Drop reports of workers that have been silent for long."""
        await self._database.change(delete(PROXY_STANDINGS).where(PROXY_STANDINGS.c.seen_at < seen_before))
