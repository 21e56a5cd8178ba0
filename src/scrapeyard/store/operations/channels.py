"""Channels that operators moved."""

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import new_id
from scrapeyard.store.database import Database
from scrapeyard.store.ports.runs import ChannelMove
from scrapeyard.store.tables.runs import CHANNEL_MOVES, CHANNELS


class SqlChannels:
    """The ChannelStore."""

    _database: Database

    async def channels(self) -> dict[str, dict[str, str]]:
        """By scraper id: channel → version. Only those that were moved and not taken back."""
        moved: dict[str, dict[str, str]] = {}
        query = select(CHANNELS.c.scraper_id, CHANNELS.c.channel, CHANNELS.c.version)
        for row in await self._database.fetch(query.order_by(CHANNELS.c.scraper_id, CHANNELS.c.channel)):
            moved.setdefault(row["scraper_id"], {})[row["channel"]] = row["version"]
        return moved

    async def move_channel(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        """Point a channel to a version. None when it points there already; nothing is then noted."""
        place = (CHANNELS.c.scraper_id == scraper_id) & (CHANNELS.c.channel == channel)
        blank = {"scraper_id": scraper_id, "channel": channel, "version": "", "moved_at": now}

        async def work(connection: AsyncConnection) -> ChannelMove | None:
            # The row comes first, so that of two who move at once the second waits and sees what the first did.
            await connection.execute(self._database.insert(CHANNELS).values(blank).on_conflict_do_nothing())
            before = await connection.scalar(select(CHANNELS.c.version).where(place).with_for_update())
            if before == version:
                return None
            await connection.execute(update(CHANNELS).where(place).values(version=version, moved_at=now))
            move = ChannelMove(scraper_id=scraper_id, channel=channel, before=before or "", after=version, moved_at=now)
            return await _note(connection, move)

        return await self._database.write(work)

    async def clear_channel(self, scraper_id: str, channel: str, now: float) -> ChannelMove | None:
        """Take a move back: the source decides again. None when the channel was not moved."""
        place = (CHANNELS.c.scraper_id == scraper_id) & (CHANNELS.c.channel == channel)

        async def work(connection: AsyncConnection) -> ChannelMove | None:
            before = await connection.scalar(delete(CHANNELS).where(place).returning(CHANNELS.c.version))
            if before is None:
                return None
            move = ChannelMove(scraper_id=scraper_id, channel=channel, before=before, after="", moved_at=now)
            return await _note(connection, move)

        return await self._database.write(work)

    async def channel_moves(self, scraper_id: str, limit: int) -> tuple[ChannelMove, ...]:
        """The moves of one scraper's channels, newest first."""
        newest = (CHANNEL_MOVES.c.moved_at.desc(), CHANNEL_MOVES.c.id.desc())
        query = select(CHANNEL_MOVES).where(CHANNEL_MOVES.c.scraper_id == scraper_id).order_by(*newest).limit(limit)
        rows = await self._database.fetch(query)
        return tuple(ChannelMove(**{name: row[name] for name in ChannelMove.__struct_fields__}) for row in rows)


async def _note(connection: AsyncConnection, move: ChannelMove) -> ChannelMove:
    row = {name: getattr(move, name) for name in move.__struct_fields__}
    await connection.execute(CHANNEL_MOVES.insert().values(id=new_id("move"), **row))
    return move
