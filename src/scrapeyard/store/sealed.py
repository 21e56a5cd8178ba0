"""The keys that seal values, what operators keep for scrapers, and sealing what an older version stored in clear."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import Column, LargeBinary, Table, delete, func, literal, select, tuple_, type_coerce, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.errors import SealBroken
from scrapeyard.model.webhook import secret_place
from scrapeyard.sealing.port import WrappedKey
from scrapeyard.sealing.sealer import MAGIC, TEXT, Sealer
from scrapeyard.store.database.database import Database, SqlPart
from scrapeyard.store.operations import SESSIONS
from scrapeyard.store.ports.keys import StoredSecret
from scrapeyard.store.ports.operations import session_place
from scrapeyard.store.ports.overrides import pool_place
from scrapeyard.store.tables.content import Sealed
from scrapeyard.store.tables.jobs import JOBS
from scrapeyard.store.tables.keys import DATA_KEYS, SCRAPER_SECRETS
from scrapeyard.store.tables.runs import PROXY_POOLS
from scrapeyard.store.tables.schedules import DELIVERIES, RUN_WATCHES, SCHEDULES
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")
_PAGE: Final = 500


class SqlDataKeys(SqlPart):
    """The data keys. Every process reads them once, at its start."""

    async def all(self) -> list[WrappedKey]:
        """By number."""
        rows = await self._database.fetch(select(DATA_KEYS).order_by(DATA_KEYS.c.number))
        return [WrappedKey(**row) for row in rows]

    async def add_first(self, key: WrappedKey) -> None:
        """Add a data key, unless there is one."""
        row = {name: getattr(key, name) for name in key.__struct_fields__}
        await self._database.change(self._database.insert(DATA_KEYS).values(row).on_conflict_do_nothing())

    async def mark_swept(self) -> None:
        """Nothing is left in clear."""
        await self._database.change(update(DATA_KEYS).values(swept=True))

    async def rewrap(self, keys: Sequence[WrappedKey]) -> None:
        """Replace how data keys are wrapped: all of them, or none."""

        async def work(connection: AsyncConnection) -> None:
            for key in keys:
                changed = update(DATA_KEYS).where(DATA_KEYS.c.number == key.number)
                await connection.execute(changed.values(wrapped=key.wrapped, master=key.master))

        await self._database.write(work)


class SqlScraperSecrets(SqlPart):
    """The ScraperSecretStore."""

    async def all(self) -> tuple[StoredSecret, ...]:
        """Every secret, in order. One that cannot be opened is logged and left out."""
        query = select(SCRAPER_SECRETS).order_by(SCRAPER_SECRETS.c.scrapers, SCRAPER_SECRETS.c.name)
        found = [self._opened(row) for row in await self._database.fetch(query)]
        return tuple(secret for secret in found if secret is not None)

    async def put(self, secret: StoredSecret) -> bool:
        """Write a secret. True if it is new, False if it replaces one."""
        insert = self._database.insert(SCRAPER_SECRETS)
        sealed = self._database.sealer.seal(secret.value.encode(), secret.place)
        row = {"scrapers": secret.scrapers, "name": secret.name, "value": sealed, "changed_at": secret.changed_at}

        async def work(connection: AsyncConnection) -> bool:
            added = await connection.execute(insert.values(row).on_conflict_do_nothing())
            if not added.rowcount:
                where = (SCRAPER_SECRETS.c.scrapers == secret.scrapers) & (SCRAPER_SECRETS.c.name == secret.name)
                await connection.execute(update(SCRAPER_SECRETS).where(where).values(row))
            return bool(added.rowcount)

        return await self._database.write(work)

    async def remove(self, scrapers: str, name: str) -> bool:
        """Remove a secret. False if there was none."""
        where = (SCRAPER_SECRETS.c.scrapers == scrapers) & (SCRAPER_SECRETS.c.name == name)
        gone = delete(SCRAPER_SECRETS).where(where).returning(SCRAPER_SECRETS.c.name)
        return bool(await self._database.change(gone))

    def _opened(self, row: Any) -> StoredSecret | None:
        secret = StoredSecret(scrapers=row["scrapers"], name=row["name"], value="", changed_at=row["changed_at"])
        try:
            value = self._database.sealer.open(bytes(row["value"]), secret.place).decode()
        except SealBroken as error:
            log.error("secrets.seal_broken", problem=error.message)
            return None
        return StoredSecret(scrapers=secret.scrapers, name=secret.name, value=value, changed_at=secret.changed_at)


class ClearValues:
    """Seals what was stored in clear. Each row changes by itself and only if it is still the same, so that it may be
    killed at any time and run in several processes at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sealer = database.sealer

    async def seal(self) -> int:
        """Seal everything. Returns how many values were in clear."""
        done = await self._seal_column(SESSIONS, SESSIONS.c.cookies, lambda row: session_place(row[0], row[1]))
        done += await self._seal_column(PROXY_POOLS, PROXY_POOLS.c.definition, lambda row: pool_place(row[0]))
        done += await self._seal_deliveries()
        for table, column in (
            (JOBS, JOBS.c.webhook),
            (RUN_WATCHES, RUN_WATCHES.c.webhook),
            (SCHEDULES, SCHEDULES.c.template),
        ):
            done += await self._seal_webhooks(table, column)
        return done

    async def _seal_column(self, table: Table, column: Column[Any], place: Callable[[Any], str]) -> int:
        done = 0
        is_clear = func.substr(column, 1, len(MAGIC)) != literal(MAGIC, LargeBinary)
        async for row in self._pages(table, column, (func.length(column) > 0) & is_clear):
            done += await self._replace(table, column, row, self._sealer.seal(bytes(row[-1]), place(row)))
        return done

    async def _seal_deliveries(self) -> int:
        done, secret = 0, DELIVERIES.c.secret
        url = DELIVERIES.c.url
        async for row in self._pages(DELIVERIES, secret, (secret != "") & ~secret.startswith(TEXT), url):
            done += await self._replace(DELIVERIES, secret, row, self._sealer.seal_text(row[-1], secret_place(row[-2])))
        return done

    async def _seal_webhooks(self, table: Table, column: Column[Any]) -> int:
        done = 0
        async for row in self._pages(table, column, column.is_not(None)):
            sealed = sealed_document(bytes(row[-1]), self._sealer)
            if sealed is not None:
                done += await self._replace(table, column, row, sealed)
        return done

    async def _pages(self, table: Table, column: Column[Any], where: Any, *more: Column[Any]) -> AsyncIterator[Any]:
        """Rows of the primary key, `more` and the column, in order of the key."""
        key = list(table.primary_key)
        query = select(*key, *more, column).where(where).order_by(*key).limit(_PAGE)
        rows = await self._database.fetch_tuples(query, {})
        while rows:
            for row in rows:
                yield row
            after = query.where(tuple_(*key) > tuple_(*rows[-1][: len(key)]))
            rows = await self._database.fetch_tuples(after, {})

    async def _replace(self, table: Table, column: Column[Any], row: Any, sealed: bytes | str) -> int:
        key = list(table.primary_key)
        stored = type_coerce(column, LargeBinary()) if isinstance(column.type, Sealed) else column
        same = [part == value for part, value in zip((*key, stored), (*row[: len(key)], row[-1]), strict=True)]
        changed = await self._database.change(update(table).where(*same).values({column: sealed}).returning(key[0]))
        return len(changed)


def sealed_document(text: bytes, sealer: Sealer) -> bytes | None:
    """A webhook, or a template with one, with its secret sealed; None if there is nothing to seal."""
    document: dict[str, Any] = json.decode(text)
    webhook = document if "url" in document and "events" in document else document.get("webhook")
    if not isinstance(webhook, dict) or not (secret := webhook.get("secret")) or secret.startswith(TEXT):
        return None
    webhook["secret"] = sealer.seal_text(secret, secret_place(webhook["url"]))
    return json.encode(document)
