"""Idempotency-Keys: who came first."""

from collections.abc import Sequence
from typing import Final

from msgspec import json
from sqlalchemy import RowMapping, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import Run
from scrapeyard.store.database.database import Database
from scrapeyard.store.ports.runs import KeyedAnswer
from scrapeyard.store.runs.rows import RunStatements, queued_row
from scrapeyard.store.tables.runs import KEYS

_RUN_IDS: Final = json.Decoder(tuple[str, ...])


class SqlKeys:
    """The IdempotencyStore."""

    _database: Database
    _statements: RunStatements

    async def remember(self, answer: KeyedAnswer, runs: Sequence[Run]) -> KeyedAnswer:
        """Claim the key and add its runs in one transaction. Returns the answer that holds the key: the given one if
        it is new, otherwise the first (nothing is then added)."""

        async def work(connection: AsyncConnection) -> KeyedAnswer | None:
            if await self._claim_key(connection, answer):
                await self._add_runs(connection, runs)
                return answer
            query = select(KEYS).where(KEYS.c.key == answer.key)
            row = (await connection.execute(query)).mappings().one_or_none()
            return None if row is None else _answer(row)

        # None: the first holder's key was forgotten between our two looks, so the next try claims it.
        while (holds := await self._database.write(work)) is None:
            continue
        return holds

    async def forget_keys_before(self, created_before: float) -> None:
        """Drop keys older than that."""
        await self._database.change(delete(KEYS).where(KEYS.c.created_at < created_before))

    async def _claim_key(self, connection: AsyncConnection, answer: KeyedAnswer) -> bool:
        row = {
            "key": answer.key,
            "body_digest": answer.body_digest,
            "run_ids": json.encode(answer.run_ids),
            "created_at": answer.created_at,
        }
        insert = self._database.insert(KEYS).values(row).on_conflict_do_nothing().returning(KEYS.c.key)
        return (await connection.execute(insert)).first() is not None

    async def _add_runs(self, connection: AsyncConnection, runs: Sequence[Run]) -> None:
        if runs:
            await connection.execute(self._statements.add, [queued_row(run) for run in runs])


def _answer(row: RowMapping) -> KeyedAnswer:
    return KeyedAnswer(
        key=row["key"],
        body_digest=row["body_digest"],
        run_ids=_RUN_IDS.decode(row["run_ids"]),
        created_at=row["created_at"],
    )
