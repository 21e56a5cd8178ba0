"""What scrapers keep between runs: sessions and state."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from scrapeyard.errors import BadRequest, SealBroken
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Update, absent, any_of, begins, below, exists
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE, LIST
from scrapeyard.store.dynamo.table.table import MAX_ACTIONS, changed, unchanged
from scrapeyard.store.dynamo.table.values import Item, Key, key_of
from scrapeyard.store.ports.operations import (
    MAX_SESSIONS,
    MAX_STATE_KEYS,
    SessionChange,
    StateCheck,
    StateEntry,
    session_place,
)
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")
_SESSION: Final = "session"
_STATE: Final = "state"
_SEPARATOR: Final = "\x1f"
_VALUE: Final = "value/"
"""Begins the sort key of a value of the state, which may be the empty text."""


class DynamoSessions(DynamoPart):
    """The SessionStore."""

    async def read(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        """What was stored since then; empty if nothing."""
        row = await self._table.get(_session_key(scraper_id, name))
        return self._opened(row, scraper_id, name) if row is not None and row["saved_at"] > saved_after else b""

    async def change(self, scraper_id: str, name: str, change: SessionChange, now: float) -> None:
        """Replace what is stored. Of two concurrent changes, the second receives what the first stored."""
        key, made = _session_key(scraper_id, name), False

        def session(old: Item | None) -> Item:
            nonlocal made
            made = old is None
            cookies = change(b"" if old is None else self._opened(old, scraper_id, name))
            sealed = self._sealer.seal(cookies, session_place(scraper_id, name)) if cookies else b""
            return {"cookies": sealed, "saved_at": now, "due_pk": _SESSION, "due_at": now}

        await self._table.change(key, session)
        if made:
            await self._make_room(key[0])

    async def forget_before(self, saved_before: float) -> None:
        """Drop sessions that were not changed since then."""
        for row in await self._table.query(_SESSION, DUE, sort=below("due_at", saved_before)):
            await self._table.delete(key_of(row), below("saved_at", saved_before))

    async def _make_room(self, pk: str) -> None:
        if await self._table.count(pk) > MAX_SESSIONS:
            rows = sorted(await self._table.query(pk), key=lambda row: float(row["saved_at"]))
            await self._table.delete_many([key_of(row) for row in rows[: len(rows) - MAX_SESSIONS]])

    def _opened(self, row: Item, scraper_id: str, name: str) -> bytes:
        """The cookies in clear; none if they cannot be opened, so that the session begins anew."""
        try:
            return self._sealer.open(row["cookies"], session_place(scraper_id, name))
        except SealBroken as error:
            log.error("secrets.seal_broken", problem=error.message)
            return b""


def _session_key(scraper_id: str, name: str) -> Key:
    return f"session/{scraper_id}", f"name/{name}"


class DynamoState(DynamoPart):
    """The StateStore: a partition for each scraper, with a row that counts its keys."""

    places: ClassVar[Mapping[str, str]] = {"value": "scraper_state.value"}

    async def read(self, scraper_id: str, key: str) -> bytes | None:
        """The value; None if there is none."""
        return await self._value(await self._table.get(_state_key(scraper_id, key)))

    async def change(
        self, scraper_id: str, key: str, value: bytes | None, now: float, *, only_if: StateCheck | None = None
    ) -> bool:
        """Write or remove a value, if `only_if` agrees. False if nothing was changed."""
        place = _state_key(scraper_id, key)
        old = await self._table.get(place)
        while only_if is None or only_if(await self._value(old)):
            if value is None and old is None:
                return False
            try:
                await self._write(place, old, value, now)
            except WriteRefused as refused:
                if 1 in refused.items and 0 not in refused.items:
                    raise BadRequest(
                        f"the state of {scraper_id} has {MAX_STATE_KEYS} keys already; delete some"
                    ) from None
                old = refused.items[0]
            else:
                return True
        return False

    async def entries(self, scraper_id: str) -> tuple[StateEntry, ...]:
        """Every key of a scraper, in order."""
        rows = await self._table.query(_state(scraper_id), sort=begins("sk", _VALUE))
        return tuple(
            StateEntry(key=row["sk"].removeprefix(_VALUE), bytes=row["bytes"], changed_at=row["changed_at"])
            for row in rows
        )

    async def clear(self, scraper_id: str) -> int:
        """Remove the whole state of a scraper. Returns how many keys it had."""
        removed = 0
        while True:
            rows = await self._table.query(_state(scraper_id), sort=begins("sk", _VALUE), limit=MAX_ACTIONS - 1)
            if not rows:
                return removed
            try:
                deletes = [Delete(key_of(row), exists()) for row in rows]
                await self._table.transact([*deletes, _counted(scraper_id, -len(rows))])
            except WriteRefused:
                continue
            await self._contents.clean(rows)
            removed += len(rows)

    async def remove_about(self, matches: Callable[[Item], bool], *, dry: bool) -> int:
        """Remove the values whose rows match; returns how many. Reads all state."""
        count = 0
        async for page in self._table.pages(_STATE, LIST):
            rows = list((await self._table.get_many(map(key_of, page))).values())
            for row in await self._contents.opened(rows):
                if matches(row | {"key": row["sk"].removeprefix(_VALUE)}):
                    count += 1
                    if not dry:
                        await self.change(row["pk"].removeprefix("state/"), row["sk"].removeprefix(_VALUE), None, 0.0)
        return count

    async def _write(self, key: Key, old: Item | None, value: bytes | None, now: float) -> None:
        scraper_id = key[0].removeprefix("state/")
        if value is None:
            await self._table.transact([Delete(key, unchanged(old)), _counted(scraper_id, -1)])
            await self._contents.clean([old] if old else [])
            return
        row = {"pk": key[0], "sk": key[1], "value": value, "bytes": len(value), "changed_at": now}
        row |= {"list_pk": _STATE, "list_sk": f"{scraper_id}{_SEPARATOR}{key[1]}"}
        new = await self._contents.stored(row)
        if old is None:
            await self._table.transact([Put(new, absent()), _counted(scraper_id, 1)])
        else:
            await self._table.write(changed(key, old, new))
            await self._contents.clean([old])

    async def _value(self, row: Item | None) -> bytes | None:
        if row is None:
            return None
        (opened,) = await self._contents.opened([row])
        value: bytes | None = opened["value"]
        return value


def _state(scraper_id: str) -> str:
    return f"state/{scraper_id}"


def _state_key(scraper_id: str, key: str) -> Key:
    return _state(scraper_id), f"{_VALUE}{key}"


def _counted(scraper_id: str, more: int) -> Update:
    room = any_of(absent("keys"), below("keys", MAX_STATE_KEYS)) if more > 0 else None
    return Update((_state(scraper_id), "count"), add={"keys": more}, when=room)
