"""What the processes write down for themselves: heartbeats, leadership, load, traffic."""

from collections.abc import Sequence
from typing import Final, cast

from msgspec import convert, json
from msgspec.structs import asdict, replace

from scrapeyard.model import WorkerInfo
from scrapeyard.model.worker import DrainWish
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import (
    Put,
    Update,
    absent,
    any_of,
    at_least,
    at_most,
    below,
    equals,
    exists,
)
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.values import Item, key_of
from scrapeyard.store.ports.operations import LoadSample, Meter, Use, UseBy, UseFilter

_WORKER: Final = "worker"
_LEADER: Final = "leader"
_LOAD: Final = "load"
_DAYS: Final = "meter_day"
_SEPARATOR: Final = "\x1f"
_INFO: Final = json.Decoder(WorkerInfo)
_SAMPLE: Final = json.Decoder(LoadSample)


def at_text(at: float) -> str:
    """A time as a sort key: later times sort later."""
    return f"{at:020.6f}"


class DynamoWorkers(DynamoPart):
    """The WorkerStore."""

    async def beat(self, worker: WorkerInfo) -> DrainWish:
        """Write a worker's heartbeat. Returns what was asked of it; its `drain` counts if it was not known."""
        told = {"seen_at": worker.seen_at, "info": json.encode(worker)}

        def beaten(old: Item | None) -> Item:
            return {"drain": worker.drain, **told} if old is None else old | told

        row = await self._table.change((_WORKER, worker.id), beaten)
        return cast("DrainWish", row["drain"] if row else worker.drain)

    async def set_drain(self, worker_id: str, wish: DrainWish) -> bool:
        """Ask a worker to drain, or no longer; its next heartbeat tells it. False if there is no such worker."""
        try:
            await self._table.write(Update((_WORKER, worker_id), {"drain": wish}, when=exists()))
        except WriteRefused:
            return False
        return True

    async def alive(self, seen_after: float) -> tuple[WorkerInfo, ...]:
        """Workers seen since `seen_after`, by id."""
        rows = await self._table.query(_WORKER, where=at_least("seen_at", seen_after))
        return tuple(replace(_INFO.decode(row["info"]), drain=row["drain"]) for row in rows)

    async def forget(self, worker_id: str) -> None:
        """Remove a worker that shut down."""
        await self._table.delete((_WORKER, worker_id))

    async def forget_before(self, seen_before: float) -> None:
        """Remove workers that have been silent for long."""
        silent = below("seen_at", seen_before)
        for row in await self._table.query(_WORKER, where=silent):
            await self._table.delete(key_of(row), silent)


class DynamoLeaders(DynamoPart):
    """The LeaderStore."""

    async def claim(self, role: str, holder: str, now: float, until: float) -> bool:
        """Become or stay leader until then. True if `holder` leads now."""
        row = {"pk": _LEADER, "sk": role, "holder": holder, "until": until}
        try:
            await self._table.write(Put(row, any_of(absent(), equals("holder", holder), at_most("until", now))))
        except WriteRefused:
            return False
        return True

    async def resign(self, role: str, holder: str) -> None:
        """Let another lead at once. Does nothing if another leads."""
        await self._table.delete((_LEADER, role), equals("holder", holder))


class DynamoLoad(DynamoPart):
    """The LoadStore."""

    async def put(self, sample: LoadSample) -> None:
        """Write a sample; does nothing if the minute has one."""
        await self._table.add({"pk": _LOAD, "sk": at_text(sample.at), "sample": json.encode(sample)})

    async def since(self, at: float) -> tuple[LoadSample, ...]:
        """Samples from then on, the oldest first."""
        rows = await self._table.query(_LOAD, sort=at_least("sk", at_text(at)))
        return tuple(_SAMPLE.decode(row["sample"]) for row in rows)

    async def forget_before(self, at: float) -> None:
        """Drop earlier samples."""
        rows = await self._table.query(_LOAD, sort=below("sk", at_text(at)))
        await self._table.delete_many([key_of(row) for row in rows])


_COUNTED: Final = ("requests", "failures", "bytes", "runs", "browser_ms", "ai_tokens", "ai_millionths")
_KEY: Final = ("writer", "job_id", "site", "pool", "proxy_class", "client", "scraper")


class DynamoMeters(DynamoPart):
    """The MeterStore: a partition for each day, and one that names the days."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._days: set[str] = set()

    async def put(self, meters: Sequence[Meter]) -> None:
        """Write totals, replacing what the same writer wrote for the same key."""
        rows = {key_of(row): row for row in map(_meter_row, meters)}
        new = {meter.day for meter in meters} - self._days
        await self._table.put_many([{"pk": _DAYS, "sk": day} for day in sorted(new)])
        await self._table.put_many(list(rows.values()))
        self._days |= new

    async def use(
        self,
        by: Sequence[UseBy],
        since: str,
        *,
        sites: Sequence[str] | None = None,
        where: UseFilter | None = None,
        limit: int = 1000,
    ) -> tuple[Use, ...]:
        """Sums since a day, the most bytes first."""
        where = where or UseFilter()
        wanted = [frozenset(some) for some in (sites, where.sites) if some is not None]
        sums: dict[tuple[str, ...], dict[str, int]] = {}
        for day in await self._table.query(_DAYS, sort=at_least("sk", since)):
            if where.until is not None and day["sk"] > where.until:
                break
            async for page in self._table.pages(_day(day["sk"])):
                for row in page:
                    if _counts(row, where) and all(row["site"] in some for some in wanted):
                        _add(sums.setdefault(tuple(str(row[name]) for name in by), dict.fromkeys(_COUNTED, 0)), row)
        if not by and not sums:
            sums[()] = dict.fromkeys(_COUNTED, 0)
        ordered = sorted(sums.items(), key=lambda one: (-one[1]["bytes"], one[0]))
        return tuple(convert(dict(zip(by, group, strict=True)) | total, Use) for group, total in ordered[:limit])

    async def forget_before(self, day: str) -> None:
        """Drop earlier days."""
        for old in await self._table.query(_DAYS, sort=below("sk", day)):
            async for page in self._table.pages(_day(old["sk"])):
                await self._table.delete_many([key_of(row) for row in page])
            await self._table.delete(key_of(old))
            self._days.discard(old["sk"])

    async def rename_client(self, client: str, name: str) -> None:
        """Count what a client used under another name."""
        for day in await self._table.query(_DAYS):
            mine = await self._table.query(_day(day["sk"]), where=equals("client", client))
            fields = (*_KEY, *_COUNTED)
            renamed = [Meter(day=day["sk"], **({key: row[key] for key in fields} | {"client": name})) for row in mine]
            await self._table.put_many([_meter_row(meter) for meter in renamed])
            await self._table.delete_many([key_of(row) for row in mine])


def _day(day: str) -> str:
    return f"meter/{day}"


def _meter_row(meter: Meter) -> Item:
    row = asdict(meter)
    return {**row, "pk": _day(meter.day), "sk": _SEPARATOR.join(row[name] for name in _KEY)}


def _counts(row: Item, where: UseFilter) -> bool:
    return (where.client is None or row["client"] == where.client) and (
        where.scraper is None or row["scraper"] == where.scraper
    )


def _add(total: dict[str, int], row: Item) -> None:
    for name in _COUNTED:
        total[name] += row[name]
