"""Changes by operators: channels, sites, pools of proxies."""

from typing import Final

from msgspec import json
from msgspec.structs import replace

from scrapeyard.model import new_id
from scrapeyard.store.dynamo.operations import at_text
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.documents import DynamoDocuments
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Update, at_least, below, exists
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import changed, unchanged
from scrapeyard.store.dynamo.table.values import key_of
from scrapeyard.store.ports.overrides import ChannelMove, KeptPool, PoolStanding, SiteRules, opened_pool, pool_place

_CHANNEL: Final = "channel"
_SEPARATOR: Final = "\x1f"


class DynamoChannels(DynamoPart):
    """The ChannelStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._moves = DynamoDocuments(base, ChannelMove, "channel_moves.document")

    async def current(self) -> dict[str, dict[str, str]]:
        """By scraper id: channel → version. Only channels that are currently moved."""
        moved: dict[str, dict[str, str]] = {}
        for row in await self._table.query(_CHANNEL):
            scraper_id, _, channel = row["sk"].partition(_SEPARATOR)
            moved.setdefault(scraper_id, {})[channel] = row["version"]
        return moved

    async def move(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        """Point a channel to a version. None if it already points there; no move is then recorded."""
        return await self._move(scraper_id, channel, version, now)

    async def clear(self, scraper_id: str, channel: str, now: float) -> ChannelMove | None:
        """Undo a move, so that the source decides again. None if the channel was not moved."""
        return await self._move(scraper_id, channel, "", now)

    async def moves(self, scraper_id: str, limit: int) -> tuple[ChannelMove, ...]:
        """The moves of one scraper's channels, newest first."""
        rows = await self._table.query(f"channel_move/{scraper_id}", descending=True, limit=limit)
        return tuple(await self._moves.values(rows))

    async def _move(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        key = (_CHANNEL, f"{scraper_id}{_SEPARATOR}{channel}")
        old = await self._table.get(key)
        while True:
            before = "" if old is None else str(old["version"])
            if before == version:
                return None
            move = ChannelMove(scraper_id=scraper_id, channel=channel, before=before, after=version, moved_at=now)
            place = (f"channel_move/{scraper_id}", f"{at_text(now)}/{new_id('move')}")
            now_at = (
                changed(key, old, {"version": version, "moved_at": now}) if version else Delete(key, unchanged(old))
            )
            try:
                await self._table.transact([now_at, Put(await self._moves.item(place, move))])
            except WriteRefused as refused:
                old = refused.items[0]
            else:
                return move


_SITE: Final = "site"
_SITES: Final = ("mark", "site")
"""Its token is another after each change of a rule."""


class DynamoSites(DynamoPart):
    """The SiteStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._documents = DynamoDocuments(base, SiteRules, "sites.document")

    async def rules(self) -> tuple[SiteRules, ...]:
        """All rules, by site."""
        return tuple(await self._documents.values(await self._table.query(_SITE)))

    async def mark(self) -> str:
        """A cheap version mark."""
        row = await self._table.get(_SITES)
        return "" if row is None else str(row["w"])

    async def put(self, rules: SiteRules) -> None:
        """Write the rules of a site, replacing existing ones."""
        row = await self._documents.item((_SITE, rules.site), rules)
        await self._table.transact([Put(row), Update(_SITES)])

    async def remove(self, site: str) -> bool:
        """Remove the rules of a site, so that the settings apply. False if there were none."""
        try:
            await self._table.transact([Delete((_SITE, site), exists()), Update(_SITES)])
        except WriteRefused:
            return False
        return True


_POOL: Final = "proxy_pool"
_STANDING: Final = "proxy_standing"
_STANDINGS: Final = json.Decoder(tuple[PoolStanding, ...])


class DynamoProxies(DynamoPart):
    """The ProxyStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._documents = DynamoDocuments(base, KeptPool, "proxy_pools.document")

    async def pools(self) -> tuple[KeptPool, ...]:
        """Every pool, by name."""
        kept = await self._documents.values(await self._table.query(_POOL))
        found = (opened_pool(pool, self._sealer) for pool in kept)
        return tuple(pool for pool in found if pool is not None)

    async def put_pool(self, pool: KeptPool) -> None:
        """Write a pool, replacing one of the same name."""
        sealed = replace(pool, definition=self._sealer.seal(pool.definition, pool_place(pool.name)))
        old = await self._table.write(Put(await self._documents.item((_POOL, pool.name), sealed)))
        await self._documents.clean([old] if old else [])

    async def remove_pool(self, name: str) -> bool:
        """Remove a pool; True if it existed."""
        old = await self._table.delete((_POOL, name))
        await self._documents.clean([old] if old else [])
        return old is not None

    async def put_standings(self, worker_id: str, standings: tuple[PoolStanding, ...], now: float) -> None:
        """Write the state of a worker's pools, replacing its last report."""
        row = {"pk": _STANDING, "sk": worker_id, "seen_at": now, "pools": json.encode(standings)}
        await self._table.write(Put(row))

    async def standings(self, seen_after: float) -> dict[str, tuple[PoolStanding, ...]]:
        """Reports since then, by worker."""
        rows = await self._table.query(_STANDING, where=at_least("seen_at", seen_after))
        return {row["sk"]: _STANDINGS.decode(row["pools"]) for row in rows}

    async def forget_standings_before(self, seen_before: float) -> None:
        """Drop reports of workers that have been silent for long."""
        silent = below("seen_at", seen_before)
        for row in await self._table.query(_STANDING, where=silent):
            await self._table.delete(key_of(row), silent)
