"""Forgetting a URL, a site or a client, in the store. It reads every row that may name the target: DynamoDB cannot look
into values."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from scrapeyard.model.job import Job
from scrapeyard.store.dynamo.jobs.forgetting import JobForgetting
from scrapeyard.store.dynamo.keys import DynamoApiKeys, DynamoKeys
from scrapeyard.store.dynamo.operations import DynamoMeters
from scrapeyard.store.dynamo.patterns import DynamoDrift, DynamoPatterns
from scrapeyard.store.dynamo.runs import DynamoRuns
from scrapeyard.store.dynamo.schedules import DynamoSchedules
from scrapeyard.store.dynamo.sessions import DynamoState
from scrapeyard.store.dynamo.table.part import DynamoBase
from scrapeyard.store.dynamo.table.values import Item
from scrapeyard.store.dynamo.webhooks import DynamoDeliveries, DynamoWebhooks
from scrapeyard.store.ports.forgetting import ForgetTarget


class DynamoForgetting:
    """The ForgetStore."""

    def __init__(self, base: DynamoBase, webhooks: DynamoWebhooks, jobs: JobForgetting) -> None:
        self._runs = DynamoRuns(base)
        self._jobs = jobs
        self._schedules = DynamoSchedules(base)
        self._deliveries = DynamoDeliveries(base)
        self._webhooks = webhooks
        self._state = DynamoState(base)
        self._patterns = DynamoPatterns(base)
        self._drift = DynamoDrift(base)
        self._keys = DynamoKeys(base)
        self._api_keys = DynamoApiKeys(base)
        self._meters = DynamoMeters(base)

    def runs(self, target: ForgetTarget) -> AsyncIterator[list[tuple[str, bool]]]:
        """Ids of runs, and whether each is final, in blocks."""
        return self._runs.about(_about(target, "owner", "input", "report"))

    async def jobs(self, target: ForgetTarget) -> list[Job]:
        """Jobs that are about it as a whole."""
        return await self._jobs.jobs(target)

    def other_jobs(self, target: ForgetTarget) -> AsyncIterator[tuple[Job, list[tuple[int, str, str]]]]:
        """Jobs of which some items are about it."""
        return self._jobs.other_jobs(target)

    async def scrub_items(self, job: Job, target: ForgetTarget, items: Sequence[int]) -> None:
        """Empty these items of a job, and remove what else names the target."""
        await self._jobs.scrub_items(job, target, items)

    async def remove_rest(self, target: ForgetTarget, subjects: Sequence[str], *, dry: bool) -> dict[str, int]:
        """Remove schedules, webhook messages, snapshots, state, patterns, sketches, keys; returns how many of each."""
        counts = {
            "schedules": await self._schedules.remove_about(_about(target, "owner", "template", "name"), dry=dry),
            "webhook_messages": await self._deliveries.remove_about(
                _about(target, "owner", "body", "document"), dry=dry
            ),
            "snapshots": await self._jobs.drop_snapshots(target, dry=dry),
            "state": await self._state.remove_about(_about(target, "", "value", "key"), dry=dry),
            "patterns": await self._patterns.remove_about(_about(target, "client", "document"), dry=dry),
            "drift": await self._drift.remove_site(target.value, dry=dry) if target.kind == "site" else 0,
        }
        if not dry and subjects:
            gone = frozenset(subjects)
            await self._deliveries.remove_about(lambda row: row["subject"] in gone, dry=False)
            await self._webhooks.forget_runs(subjects)
            await self._keys.forget_runs(gone)
        if target.kind == "client":
            counts["keys"] = await self._api_keys.remove_client(target.value, dry=dry)
            if not dry:
                alias = f"forgotten-{hashlib.sha256(target.value.encode()).hexdigest()[:12]}"
                await self._meters.rename_client(target.value, alias)
        return counts

    async def compact(self) -> None:
        """Nothing: DynamoDB overwrites what was deleted by itself."""


def _about(target: ForgetTarget, owner: str, *names: str) -> Callable[[Item], bool]:
    """Whether a row is about the target: it stands in one of these columns; of a client, whether it owns the row."""

    def is_about(row: Item) -> bool:
        if target.kind == "client":
            return bool(owner) and row[owner] == target.value
        return any(target.pattern.search(_bytes(row.get(name))) for name in names)

    return is_about


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value or b"")
