"""Learned patterns, with the pages that taught them; and sketches of fields."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import json, msgpack
from msgspec.structs import replace
from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    RowMapping,
    Table,
    Text,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.drift import DriftSketch, Sight
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.ports.operations import (
    MOST_WATCHED,
    PATTERN_VERSIONS,
    AnsweredPage,
    PatternHealth,
    PatternVersion,
    StoredPattern,
    Watched,
)
from scrapeyard.store.tables.content import Sealed
from scrapeyard.store.tables.runs import ID, METADATA
from scrapeyard.zstd import compress, decompress

PATTERNS: Final = Table(
    "patterns",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("site", ID, nullable=False),
    Column("client", ID, nullable=False),
    Column("key", ID, nullable=False),
    Column("status", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("document", Sealed("patterns.document"), nullable=False),
    Column("health", LargeBinary, nullable=False),
    Column("examples", Sealed("patterns.examples"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    CheckConstraint("status IN ('learning', 'ready', 'stale')", name="patterns_status"),
    Index("patterns_by_site", "site", "client", "key"),
)
VERSIONS: Final = Table(
    "pattern_versions",
    METADATA,
    Column("pattern_id", ID, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("pattern", Sealed("pattern_versions.pattern"), nullable=False),
    Column("origin", Text, nullable=False),
    Column("made_at", Double, nullable=False),
)
DRIFT: Final = Table(
    "drift",
    METADATA,
    Column("subject", ID, primary_key=True),
    Column("site", ID, primary_key=True),
    Column("drifted", Integer, nullable=False),
    Column("sketch", Sealed("drift.sketch"), nullable=False),
    Column("changed_at", Double, nullable=False),
)
_SKETCH: Final = json.Decoder(DriftSketch)
_PLAIN: Final = ("id", "site", "client", "key", "status", "version", "revision", "created_at", "changed_at")
_WITHIN: Final = ("fields", "pattern", "marks", "absent", "edited", "taught", "checked")
_LISTED: Final = [PATTERNS.c[name] for name in (*_PLAIN, "document", "health")]
_HEALTH: Final = json.Decoder(PatternHealth)
_EXAMPLES: Final = msgpack.Decoder(tuple[AnsweredPage, ...])


class SqlPatterns(SqlPart):
    """The PatternStore."""

    async def known(self, site: str, client: str, key: str) -> tuple[StoredPattern, ...]:
        """Those for the same fields of the same site, without examples."""
        same = (PATTERNS.c.site == site) & (PATTERNS.c.client == client) & (PATTERNS.c.key == key)
        return tuple(map(_stored, await self._database.fetch(select(*_LISTED).where(same).order_by(PATTERNS.c.id))))

    async def listed(
        self, *, site: str | None = None, client: str | None = None, after: str = "", limit: int = 100
    ) -> tuple[StoredPattern, ...]:
        """By id, without examples."""
        query = select(*_LISTED).where(PATTERNS.c.id > after).order_by(PATTERNS.c.id).limit(limit)
        if site is not None:
            query = query.where(PATTERNS.c.site == site)
        if client is not None:
            query = query.where(PATTERNS.c.client == client)
        return tuple(map(_stored, await self._database.fetch(query)))

    async def get(self, pattern_id: str) -> StoredPattern | None:
        """With its examples."""
        rows = await self._database.fetch(select(PATTERNS).where(PATTERNS.c.id == pattern_id))
        if not rows:
            return None
        return replace(_stored(rows[0]), examples=_EXAMPLES.decode(decompress(bytes(rows[0]["examples"]))))

    async def put(self, pattern: StoredPattern, origin: str = "learned") -> StoredPattern | None:
        """Write a pattern whose revision is the one last seen."""
        written = replace(pattern, revision=pattern.revision + 1, taught=len(pattern.examples))
        row = self._row(written)

        async def work(connection: AsyncConnection) -> StoredPattern | None:
            if not pattern.revision:
                await connection.execute(PATTERNS.insert().values(row))
            else:
                seen = (PATTERNS.c.id == pattern.id) & (PATTERNS.c.revision == pattern.revision)
                if not (await connection.execute(update(PATTERNS).where(seen).values(row))).rowcount:
                    return None
            if written.version:
                await self._keep_version(connection, written, origin)
            return written

        return await self._database.write(work)

    async def _keep_version(self, connection: AsyncConnection, pattern: StoredPattern, origin: str) -> None:
        row = {
            "pattern_id": pattern.id,
            "version": pattern.version,
            "pattern": pattern.pattern.encode(),
            "origin": origin,
            "made_at": pattern.changed_at,
        }
        await connection.execute(self._database.insert(VERSIONS).values(row).on_conflict_do_nothing())
        old = (VERSIONS.c.pattern_id == pattern.id) & (VERSIONS.c.version <= pattern.version - PATTERN_VERSIONS)
        await connection.execute(delete(VERSIONS).where(old))

    def _row(self, pattern: StoredPattern) -> dict[str, Any]:
        return {
            **{name: getattr(pattern, name) for name in _PLAIN},
            "document": json.encode(
                {name: getattr(pattern, name) for name in _WITHIN} | {"urls": [page.url for page in pattern.examples]}
            ),
            "health": json.encode(pattern.health),
            "examples": compress(msgpack.encode(pattern.examples)),
        }

    async def versions(self, pattern_id: str) -> tuple[PatternVersion, ...]:
        """Newest first."""
        query = select(VERSIONS).where(VERSIONS.c.pattern_id == pattern_id).order_by(VERSIONS.c.version.desc())
        return tuple(
            PatternVersion(
                version=row["version"],
                pattern=bytes(row["pattern"]).decode(),
                origin=row["origin"],
                made_at=row["made_at"],
            )
            for row in await self._database.fetch(query)
        )

    async def count(self, pattern_id: str, version: int, more: PatternHealth) -> None:
        """Add to the health of this version."""
        place = (PATTERNS.c.id == pattern_id) & (PATTERNS.c.version == version)

        async def work(connection: AsyncConnection) -> None:
            kept = await connection.scalar(select(PATTERNS.c.health).where(place).with_for_update())
            if kept is not None:
                whole = json.encode(_HEALTH.decode(bytes(kept)).plus(more))
                await connection.execute(update(PATTERNS).where(place).values(health=whole))

        await self._database.write(work)

    async def remove(self, pattern_id: str) -> bool:
        """Remove a pattern with its examples and versions."""

        async def work(connection: AsyncConnection) -> bool:
            await connection.execute(delete(VERSIONS).where(VERSIONS.c.pattern_id == pattern_id))
            return bool((await connection.execute(delete(PATTERNS).where(PATTERNS.c.id == pattern_id))).rowcount)

        return await self._database.write(work)


def _stored(row: RowMapping) -> StoredPattern:
    within = json.decode(bytes(row["document"]))
    return StoredPattern(
        **{name: row[name] for name in _PLAIN},
        fields=tuple(within["fields"]),
        pattern=within["pattern"],
        marks=tuple(within["marks"]),
        absent=tuple(within["absent"]),
        edited=within["edited"],
        taught=within["taught"],
        checked=within.get("checked", 0),
        health=_HEALTH.decode(bytes(row["health"])),
    )


class SqlDrift(SqlPart):
    """The DriftStore."""

    async def observe(
        self, subject: str, site: str, version: str, pages: Sequence[Mapping[str, Sight]], at: float
    ) -> tuple[str, ...]:
        """Add pages; the fields that have begun to drift with them."""
        place = (DRIFT.c.subject == subject) & (DRIFT.c.site == site)

        async def work(connection: AsyncConnection) -> tuple[str, ...]:
            kept = await connection.scalar(select(DRIFT.c.sketch).where(place).with_for_update())
            if kept is None and await self._is_full(connection, subject):
                return ()
            sketch = _SKETCH.decode(bytes(kept)) if kept is not None else DriftSketch(version=version)
            if sketch.version != version:
                sketch = DriftSketch(version=version)
            begun = [name for page in pages for name in sketch.add(page, at)]
            row = {"drifted": len(sketch.drifted), "sketch": json.encode(sketch), "changed_at": at}
            insert = self._database.insert(DRIFT).values(subject=subject, site=site, **row)
            await connection.execute(insert.on_conflict_do_update(index_elements=["subject", "site"], set_=row))
            return tuple(dict.fromkeys(begun))

        return await self._database.write(work)

    async def _is_full(self, connection: AsyncConnection, subject: str) -> bool:
        sites = select(func.count()).select_from(DRIFT).where(DRIFT.c.subject == subject)
        return int(await connection.scalar(sites) or 0) >= MOST_WATCHED

    async def watched(self, subject: str | None = None, *, drifted: bool = False) -> tuple[Watched, ...]:
        """By subject and site."""
        query = select(DRIFT).order_by(DRIFT.c.subject, DRIFT.c.site).limit(MOST_WATCHED)
        if subject is not None:
            query = query.where(DRIFT.c.subject == subject)
        if drifted:
            query = query.where(DRIFT.c.drifted > 0)
        return tuple(
            Watched(
                subject=row["subject"],
                site=row["site"],
                sketch=_SKETCH.decode(bytes(row["sketch"])),
                changed_at=row["changed_at"],
            )
            for row in await self._database.fetch(query)
        )

    async def forget(self, subject: str) -> None:
        """Remove what is known."""
        await self._database.change(delete(DRIFT).where(DRIFT.c.subject == subject))

    async def forget_before(self, changed_before: float) -> None:
        """Remove what no page was added to since."""
        await self._database.change(delete(DRIFT).where(DRIFT.c.changed_at < changed_before))
