"""Learned patterns, with the pages that taught them; and sketches of fields."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from msgspec import json, msgpack
from msgspec.structs import replace

from scrapeyard.model.drift import DriftSketch, Sight
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.documents import DynamoDocuments
from scrapeyard.store.dynamo.table.expressions import (
    Put,
    Where,
    above,
    absent,
    all_of,
    at_most,
    begins,
    below,
    equals,
)
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.schema import LIST
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import Item, Key, key_of
from scrapeyard.store.ports.operations import (
    MOST_WATCHED,
    PATTERN_VERSIONS,
    AnsweredPage,
    PatternHealth,
    PatternVersion,
    StoredPattern,
    Watched,
)
from scrapeyard.zstd import compress, decompress

_PATTERN: Final = "pattern"
_SEPARATOR: Final = "\x1f"
_HEALTH: Final = json.Decoder(PatternHealth)
_STORED: Final = json.Decoder(StoredPattern)
_EXAMPLES: Final = msgpack.Decoder(tuple[AnsweredPage, ...])


class DynamoPatterns(DynamoPart):
    """The PatternStore."""

    places: ClassVar[Mapping[str, str]] = {"document": "patterns.document", "examples": "patterns.examples"}

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._versions = DynamoDocuments(base, PatternVersion, "pattern_versions.pattern")

    async def known(self, site: str, client: str, key: str) -> tuple[StoredPattern, ...]:
        """Those for the same fields of the same site, without examples."""
        found = await self._table.query(_group(site, client, key), LIST)
        rows = await self._table.get_many(map(key_of, found))
        return await self._listed(sorted(rows.values(), key=lambda row: str(row["sk"])))

    async def listed(
        self, *, site: str | None = None, client: str | None = None, after: str = "", limit: int = 100
    ) -> tuple[StoredPattern, ...]:
        """By id, without examples."""
        named = {"site": site, "client": client}
        conditions: list[Where] = [equals(name, value) for name, value in named.items() if value is not None]
        where = all_of(*conditions) if conditions else None
        sort = above("sk", after) if after else None
        return await self._listed(await self._table.query(_PATTERN, sort=sort, where=where, limit=limit))

    async def get(self, pattern_id: str) -> StoredPattern | None:
        """With its examples."""
        row = await self._table.get((_PATTERN, pattern_id)) if pattern_id else None
        if row is None:
            return None
        (opened,) = await self._contents.opened([row])
        return replace(_stored(opened), examples=_EXAMPLES.decode(decompress(opened["examples"])))

    async def put(self, pattern: StoredPattern, origin: str = "learned") -> StoredPattern | None:
        """Write a pattern whose revision is the one last seen."""
        written = replace(pattern, revision=pattern.revision + 1, taught=len(pattern.examples))
        seen = equals("revision", pattern.revision) if pattern.revision else absent()
        old = await self._table.get((_PATTERN, pattern.id))
        writes = [Put(await self._row(written), seen)]
        version = _version_key(written)
        if written.version and await self._table.get(version) is None:
            made = PatternVersion(
                version=written.version, pattern=written.pattern, origin=origin, made_at=written.changed_at
            )
            writes.append(Put(await self._versions.item(version, made)))
        try:
            await self._table.transact(writes)
        except WriteRefused:
            return None
        await self._contents.clean([old] if old else [])
        kept = f"{max(0, written.version - PATTERN_VERSIONS):010}"
        await self._versions.drop(
            [key_of(row) for row in await self._table.query(version[0], sort=at_most("sk", kept))]
        )
        return written

    async def versions(self, pattern_id: str) -> tuple[PatternVersion, ...]:
        """Newest first."""
        rows = await self._table.query(f"pattern_version/{pattern_id}", descending=True)
        return tuple(await self._versions.values(rows))

    async def count(self, pattern_id: str, version: int, more: PatternHealth) -> None:
        """Add to the health of this version."""

        def counted(old: Item | None) -> Item | None:
            if old is None or old["version"] != version:
                return None
            return old | {"health": json.encode(_HEALTH.decode(old["health"]).plus(more))}

        await self._table.change((_PATTERN, pattern_id), counted)

    async def remove(self, pattern_id: str) -> bool:
        """Remove a pattern with its examples and versions."""
        versions = await self._table.query(f"pattern_version/{pattern_id}")
        await self._versions.drop([key_of(row) for row in versions])
        old = await self._table.delete((_PATTERN, pattern_id))
        await self._contents.clean([old] if old else [])
        return old is not None

    async def remove_about(self, matches: Callable[[Item], bool], *, dry: bool) -> int:
        """Remove the patterns whose rows match; returns how many."""
        rows = await self._contents.opened(await self._table.query(_PATTERN), without=("examples",))
        found = [row["sk"] for row in rows if matches(row)]
        for pattern_id in () if dry else found:
            await self.remove(pattern_id)
        return len(found)

    async def _row(self, pattern: StoredPattern) -> Item:
        urls = json.encode([page.url for page in pattern.examples])
        row = {
            **{name: getattr(pattern, name) for name in ("id", "site", "client", "version", "revision")},
            "pk": _PATTERN,
            "sk": pattern.id,
            "list_pk": _group(pattern.site, pattern.client, pattern.key),
            "list_sk": pattern.id,
            "document": json.encode(replace(pattern, examples=(), health=PatternHealth())) + b"\n" + urls,
            "health": json.encode(pattern.health),
            "examples": compress(msgpack.encode(pattern.examples)),
        }
        return await self._contents.stored(row)

    async def _listed(self, rows: Sequence[Item]) -> tuple[StoredPattern, ...]:
        return tuple(_stored(row) for row in await self._contents.opened(rows, without=("examples",)))


def _group(site: str, client: str, key: str) -> str:
    return _SEPARATOR.join((_PATTERN, site, client, key))


def _version_key(pattern: StoredPattern) -> Key:
    return f"pattern_version/{pattern.id}", f"{pattern.version:010}"


def _stored(row: Item) -> StoredPattern:
    document, _, _ = row["document"].partition(b"\n")
    return replace(_STORED.decode(document), health=_HEALTH.decode(row["health"]))


_DRIFT: Final = "drift"


class DynamoDrift(DynamoPart):
    """The DriftStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._documents = DynamoDocuments(base, Watched, "drift.sketch")

    async def observe(
        self, subject: str, site: str, version: str, pages: Sequence[Mapping[str, Sight]], at: float
    ) -> tuple[str, ...]:
        """Add pages; the fields that have begun to drift with them."""
        key = (_DRIFT, f"{subject}{_SEPARATOR}{site}")
        old = await self._table.get(key)
        if old is None and await self._table.count(_DRIFT, sort=_of(subject)) >= MOST_WATCHED:
            return ()
        while True:
            sketch = DriftSketch(version=version) if old is None else (await self._documents.value(old)).sketch
            if sketch.version != version:
                sketch = DriftSketch(version=version)
            begun = [name for page in pages for name in sketch.add(page, at)]
            watched = Watched(subject=subject, site=site, sketch=sketch, changed_at=at)
            row = await self._documents.item(key, watched, drifted=len(sketch.drifted), changed_at=at, site=site)
            try:
                await self._table.write(Put(row, unchanged(old)))
            except WriteRefused as refused:
                old = refused.items[0]
            else:
                return tuple(dict.fromkeys(begun))

    async def watched(self, subject: str | None = None, *, drifted: bool = False) -> tuple[Watched, ...]:
        """By subject and site."""
        sort = None if subject is None else _of(subject)
        where = above("drifted", 0) if drifted else None
        rows = await self._table.query(_DRIFT, sort=sort, where=where, limit=MOST_WATCHED)
        return tuple(await self._documents.values(rows))

    async def forget(self, subject: str) -> None:
        """Remove what is known."""
        await self._documents.drop([key_of(row) for row in await self._table.query(_DRIFT, sort=_of(subject))])

    async def forget_before(self, changed_before: float) -> None:
        """Remove what no page was added to since."""
        old = below("changed_at", changed_before)
        for row in await self._table.query(_DRIFT, where=old):
            await self._table.delete(key_of(row), old)

    async def remove_site(self, site: str, *, dry: bool) -> int:
        """Remove what is known of a site and its hosts; returns how many."""
        rows = [row for row in await self._table.query(_DRIFT) if f".{row['site']}".endswith(f".{site}")]
        if not dry:
            await self._documents.drop([key_of(row) for row in rows])
        return len(rows)


def _of(subject: str) -> Where:
    return begins("sk", f"{subject}{_SEPARATOR}")
