"""Keys: Idempotency-Keys, keys of callers, keys that seal values, and secrets of scrapers."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import json
from msgspec.structs import replace

from scrapeyard.errors import SealBroken
from scrapeyard.model import Run
from scrapeyard.model.identity import ApiKey
from scrapeyard.sealing.port import WrappedKey
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.runs import DynamoRuns
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.documents import DynamoDocuments
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Update, absent, any_of, below, exists
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE
from scrapeyard.store.dynamo.table.table import MAX_ACTIONS, each, unchanged
from scrapeyard.store.dynamo.table.values import Item, Key, key_of, size_of
from scrapeyard.store.ports.keys import MAX_KEYS, StoredSecret
from scrapeyard.store.ports.runs import KeyedAnswer
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")
_TRANSACTION_BYTES: Final = 3_500_000
_RUN_IDS: Final = json.Decoder(tuple[str, ...])


class DynamoKeys(DynamoPart):
    """The KeyStore.

    A key and its runs are one transaction if there are fewer than a hundred. Otherwise the key is written first, as
    open, then the runs; a call that was killed between is completed by the next one of the same key and body.
    """

    places: ClassVar[Mapping[str, str]] = {"run_ids": "idempotency_keys.run_ids"}

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._runs = DynamoRuns(base)

    async def remember(self, answer: KeyedAnswer, runs: Sequence[Run]) -> KeyedAnswer:
        """Claim the key and add its runs. Returns the answer that holds the key: the given one if the key is new,
        otherwise the first one, and nothing is added."""
        rows = [await self._runs.accepted(run) for run in runs] if len(runs) < MAX_ACTIONS else []
        whole = len(rows) == len(runs) and sum(map(size_of, rows)) < _TRANSACTION_BYTES
        claim = Put(await self._row(answer, is_open=not whole), absent())
        while True:
            try:
                await self._table.transact([claim, *(Put(row, absent()) for row in rows if whole)])
            except WriteRefused:
                held = await self._held(answer.key)
                if held is None:  # dropped meanwhile
                    continue
                await self._runs.discard(rows)
                if held[1] and held[0].body_digest == answer.body_digest:
                    await self._complete(held[0], runs)
                return held[0]
            if not whole:
                await self._complete(answer, runs)
            return answer

    async def forget_before(self, created_before: float) -> None:
        """Drop older keys."""
        old = await self._table.query(_KEY, DUE, sort=below("due_at", created_before))
        await self._contents.drop([key_of(row) for row in old], below("created_at", created_before))

    async def forget_runs(self, run_ids: frozenset[str]) -> None:
        """Drop the keys of runs that go: the answer would be missing."""
        async for page in self._table.pages(_KEY, DUE):
            rows = list((await self._table.get_many(map(key_of, page))).values())
            for row in await self._contents.opened(rows):
                if not run_ids.isdisjoint(_RUN_IDS.decode(row["run_ids"])):
                    await self._contents.drop([key_of(row)])

    async def _complete(self, answer: KeyedAnswer, runs: Sequence[Run]) -> None:
        """Add the runs of an open key, under the ids that it has."""
        ours = [replace(run, id=run_id) for run, run_id in zip(runs, answer.run_ids, strict=True)]
        await self._runs.add(ours)
        await self._table.write(Update(_place(answer.key), {"open": None}, when=exists()))

    async def _row(self, answer: KeyedAnswer, *, is_open: bool) -> Item:
        pk, sk = _place(answer.key)
        row: Item = {"pk": pk, "sk": sk, "body_digest": answer.body_digest, "run_ids": json.encode(answer.run_ids)}
        row |= {"created_at": answer.created_at, "due_pk": _KEY, "due_at": answer.created_at}
        return await self._contents.stored(row | {"open": True if is_open else None})

    async def _held(self, key: str) -> tuple[KeyedAnswer, bool] | None:
        """Who holds a key, and whether it is open."""
        row = await self._table.get(_place(key))
        if row is None:
            return None
        (opened,) = await self._contents.opened([row])
        run_ids = _RUN_IDS.decode(opened["run_ids"])
        answer = KeyedAnswer(key=key, body_digest=row["body_digest"], run_ids=run_ids, created_at=row["created_at"])
        return answer, bool(row.get("open"))


_KEY: Final = "key"


def _place(key: str) -> Key:
    return f"key/{key}", "key"


_API_KEY: Final = "api_key"
_API_KEYS: Final = ("mark", "api_key")
"""Counts the keys. Its token is another after each change."""


class DynamoApiKeys(DynamoPart):
    """The ApiKeyStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._documents = DynamoDocuments(base, ApiKey, "api_keys.document")

    async def add(self, key: ApiKey, ended_before: float) -> bool:
        """Write a new key. False if there are MAX_KEYS, none of which ended before that time."""
        row = await self._documents.item((_API_KEY, key.id), key)
        for _ in range(2):
            try:
                await self._table.transact([Put(row, absent()), _counted(1)])
            except WriteRefused as refused:
                if 0 in refused.items:
                    return True
                await self._remove_ended(ended_before)
            else:
                return True
        return False

    async def all(self) -> tuple[ApiKey, ...]:
        """Every key, ended ones included, the oldest first."""
        rows = await self._table.query(_API_KEY)
        keys = await self._documents.values(rows)
        return tuple(_used(key, row) for key, row in zip(keys, rows, strict=True))

    async def mark(self) -> str:
        """Another text after each change but those of `last_used_at`."""
        row = await self._table.get(_API_KEYS)
        return "" if row is None else str(row["w"])

    async def revoke(self, key_id: str, now: float) -> ApiKey | None:
        """End a key now. One that was revoked stays as it is. None if there is no such key."""
        while (found := await self._found(key_id)) is not None:
            row, key = found
            if key.revoked_at is not None:
                return key
            ended = replace(key, revoked_at=now, changed_at=now)
            if await self._replace(row, ended):
                return ended
        return None

    async def rotate(self, key_id: str, successor: ApiKey, until: float, now: float) -> ApiKey | None:
        """Add a key in place of another, which ends at `until`. None if there is none to replace."""
        new = await self._documents.item((_API_KEY, successor.id), successor)
        while (found := await self._found(key_id)) is not None:
            row, before = found
            if before.revoked_at is not None or before.replaced_by:
                return before if before.replaced_by == successor.id else None
            after = replace(before.ending(until, successor.id), changed_at=now)
            if await self._replace(row, after, Put(new, absent())):
                return after
        return None

    async def note_use(self, used: Mapping[str, float]) -> None:
        """Write when keys were last used, unless a later time is known."""

        async def one(use: tuple[str, float]) -> None:
            key_id, at = use
            earlier = any_of(absent("last_used_at"), below("last_used_at", at))
            await self._update((_API_KEY, key_id), {"last_used_at": at}, earlier)

        await each(sorted(used.items()), one)

    async def remove_client(self, client: str, *, dry: bool) -> int:
        """Remove the keys of a client; returns how many."""
        mine = [key for key in await self.all() if key.client == client]
        for key in () if dry else mine:
            await self._remove(key.id)
        return len(mine)

    async def _update(self, key: Key, to: Mapping[str, Any], when: Any) -> None:
        row = await self._table.get(key)
        if row is None:
            return
        try:
            await self._table.write(Update(key, to, when=lambda to: f"{exists()(to)} AND {when(to)}"))
        except WriteRefused:
            return

    async def _found(self, key_id: str) -> tuple[Item, ApiKey] | None:
        row = await self._table.get((_API_KEY, key_id)) if is_id(key_id) else None
        return None if row is None else (row, _used(await self._documents.value(row), row))

    async def _replace(self, row: Item, key: ApiKey, *more: Put) -> bool:
        """Write a changed key, and count keys that come with it. False if it changed meanwhile."""
        new = await self._documents.item(key_of(row), key, last_used_at=row.get("last_used_at"))
        try:
            await self._table.transact([Put(new, unchanged(row)), *more, _counted(len(more))])
        except WriteRefused as refused:
            if list(refused.items) == [1 + len(more)]:
                raise
            return False
        return True

    async def _remove_ended(self, before: float) -> None:
        for key in await self.all():
            if any(at is not None and at < before for at in (key.revoked_at, key.expires_at)):
                await self._remove(key.id)

    async def _remove(self, key_id: str) -> None:
        try:
            await self._table.transact([Delete((_API_KEY, key_id), exists()), _counted(-1)])
        except WriteRefused:
            return


def _counted(more: int) -> Update:
    room = any_of(absent("keys"), below("keys", MAX_KEYS)) if more > 0 else None
    return Update(_API_KEYS, add={"keys": more}, when=room)


def _used(key: ApiKey, row: Item) -> ApiKey:
    return replace(key, last_used_at=row.get("last_used_at", key.last_used_at))


_DATA_KEY: Final = "data_key"


class DynamoDataKeys(DynamoPart):
    """The data keys. Every process reads them once, at its start."""

    async def all(self) -> list[WrappedKey]:
        """By number."""
        rows = await self._table.query(_DATA_KEY)
        return [WrappedKey(**{name: row[name] for name in WrappedKey.__struct_fields__}) for row in rows]

    async def add_first(self, key: WrappedKey) -> None:
        """Add a data key, unless there is one."""
        row = {name: getattr(key, name) for name in key.__struct_fields__}
        await self._table.add({"pk": _DATA_KEY, "sk": f"{key.number:010}", **row})

    async def mark_swept(self) -> None:
        """Nothing is left in clear."""
        for row in await self._table.query(_DATA_KEY):
            await self._table.write(Update(key_of(row), {"swept": True}, when=exists()))

    async def rewrap(self, keys: Sequence[WrappedKey]) -> None:
        """Replace how data keys are wrapped: all of them, or none."""
        await self._table.transact(
            [
                Update((_DATA_KEY, f"{key.number:010}"), {"wrapped": key.wrapped, "master": key.master}, when=exists())
                for key in keys
            ]
        )


_SECRET: Final = "scraper_secret"  # noqa: S105  a partition
_SEPARATOR: Final = "\x1f"


class DynamoScraperSecrets(DynamoPart):
    """The ScraperSecretStore."""

    async def all(self) -> tuple[StoredSecret, ...]:
        """Every secret, in order. One that cannot be opened is logged and left out."""
        found = [self._opened(row) for row in await self._table.query(_SECRET)]
        return tuple(secret for secret in found if secret is not None)

    async def put(self, secret: StoredSecret) -> bool:
        """Write a secret. True if it is new, False if it replaces one."""
        sealed = self._sealer.seal(secret.value.encode(), secret.place)
        place = _secret_key(secret.scrapers, secret.name)
        row = {"pk": place[0], "sk": place[1], "scrapers": secret.scrapers, "name": secret.name}
        return await self._table.write(Put(row | {"value": sealed, "changed_at": secret.changed_at})) is None

    async def remove(self, scrapers: str, name: str) -> bool:
        """Remove a secret. False if there was none."""
        return await self._table.delete(_secret_key(scrapers, name)) is not None

    def _opened(self, row: Item) -> StoredSecret | None:
        secret = StoredSecret(scrapers=row["scrapers"], name=row["name"], value="", changed_at=row["changed_at"])
        try:
            return replace(secret, value=self._sealer.open(row["value"], secret.place).decode())
        except SealBroken as error:
            log.error("secrets.seal_broken", problem=error.message)
            return None


def _secret_key(scrapers: str, name: str) -> Key:
    return _SECRET, f"{scrapers}{_SEPARATOR}{name}"
