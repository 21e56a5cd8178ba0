"""Webhooks: events and ends of runs become deliveries, which are then sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from msgspec import json
from msgspec.structs import asdict, replace

from scrapeyard.model import Run
from scrapeyard.model.webhook import DeliveryState, Webhook, WebhookDelivery
from scrapeyard.store.database.paging import as_cursor, from_cursor, is_id
from scrapeyard.store.dynamo.jobs.events import DynamoEvents
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import JOB_NEWS, job_key
from scrapeyard.store.dynamo.runs import DynamoRuns
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.documents import DynamoDocuments
from scrapeyard.store.dynamo.table.expressions import (
    ConditionCheck,
    Delete,
    Put,
    Where,
    Write,
    above,
    absent,
    all_of,
    at_most,
    below,
    equals,
    exists,
    not_one_of,
)
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE, ENDED, LIST
from scrapeyard.store.dynamo.table.table import MAX_ACTIONS, SHARDS, changed, each, sharded, unchanged
from scrapeyard.store.dynamo.table.values import Columns, Item, Key, key_of
from scrapeyard.store.jobs.rules.rows import to_job
from scrapeyard.store.ports.webhooks import DeliveryFilter, DeliveryPage, EventCursor, JobNewsItem

_DELIVERY: Final = "delivery"
_WATCH: Final = "watch"
_LOOKS: Final = 1000
"""Watches that one call looks at."""
_CLAIMS: Final = 20
"""Deliveries that one claim tries, while others take them."""
_WEBHOOK: Final = json.Decoder(Webhook)


class DynamoDeliveries(DynamoPart):
    """The DeliveryStore."""

    places: ClassVar[Mapping[str, str]] = {
        "document": "webhook_deliveries.document",
        "body": "webhook_deliveries.body",
    }

    async def claim(
        self, holder: str, now: float, lease_until: float, but_hosts: Sequence[str]
    ) -> WebhookDelivery | None:
        """Claim the longest due unclaimed delivery to none of these hosts. None if there is none."""
        where = not_one_of("host", but_hosts) if but_hosts else None
        found = await self._table.query(_DELIVERY, DUE, sort=at_most("due_at", now), where=where, limit=_CLAIMS)
        for entry in found:
            row = await self._table.get(key_of(entry))
            if row is None or row.get("due_at") is None or row["due_at"] > now:
                continue
            delivery = await self._delivery(row)
            taken = replace(delivery, holder=holder, lease_until=lease_until, attempts=delivery.attempts + 1)
            if await self._replace(row, taken):
                return taken
        return None

    async def end_attempt(self, delivery: WebhookDelivery) -> bool:
        """Write the result. False if it is no longer this holder's."""
        row = await self._table.get(_place(delivery.id))
        while row is not None:
            known = await self._delivery(row)
            mine = known.holder == delivery.holder and known.attempts == delivery.attempts
            if known.state is not DeliveryState.WAITING or not mine:
                return False
            told = {name: getattr(delivery, name) for name in ("state", "next_at", "finished_at", "log")}
            if await self._replace(row, replace(known, **told, holder="", lease_until=None)):
                return True
            row = await self._table.get(_place(delivery.id))
        return False

    async def get(self, delivery_id: str) -> WebhookDelivery | None:
        """One delivery; None if there is none."""
        row = await self._table.get(_place(delivery_id)) if is_id(delivery_id) else None
        return None if row is None else await self._delivery(row)

    async def page(self, where: DeliveryFilter, cursor: str | None, limit: int) -> DeliveryPage:
        """Newest first, without bodies. Raises BadRequest for an invalid cursor."""
        sort = None if cursor is None else below("list_sk", from_cursor(cursor))
        if where.subject is not None and not is_id(where.subject):
            return DeliveryPage(deliveries=())
        named = {"subject": where.subject, "owner": where.owner, "status": where.state and where.state.value}
        conditions: list[Where] = [equals(name, value) for name, value in named.items() if value is not None]
        condition = all_of(*conditions) if conditions else None
        found = await self._table.spread(_DELIVERY, LIST, sort=sort, where=condition, descending=True, limit=limit + 1)
        rows = await self._table.get_many(map(key_of, found[:limit]))
        opened = await self._contents.opened(list(rows.values()), without=("body",))
        shown = [_to_delivery(row) for row in opened]
        fitting = [one for one in shown if where.state is None or one.state is where.state]
        return DeliveryPage(
            deliveries=tuple(sorted(fitting, key=lambda one: one.id, reverse=True)),
            next_cursor=as_cursor(found[limit - 1]["list_sk"]) if len(found) > limit else None,
        )

    async def replay(self, delivery_id: str, now: float, give_up_at: float) -> WebhookDelivery | None:
        """Send it once more, starting now; a waiting one becomes due at once. None if there is no such delivery."""
        while is_id(delivery_id) and (row := await self._table.get(_place(delivery_id))) is not None:
            known = await self._delivery(row)
            again = replace(known, state=DeliveryState.WAITING, next_at=now, give_up_at=give_up_at, finished_at=None)
            if await self._replace(row, again):
                return again
        return None

    async def forget_before(self, finished_before: float, limit: int) -> int:
        """Drop older final ones; returns how many."""
        old = await self._table.query(_DELIVERY, ENDED, sort=below("ended_at", finished_before), limit=limit)
        # One that was replayed meanwhile, which the index does not show yet, stays.
        await self._contents.drop([key_of(row) for row in old], below("ended_at", finished_before))
        return len(old)

    async def writes(self, deliveries: Sequence[WebhookDelivery], room: int) -> list[Write]:
        """What a transaction must write so that these are there. Those beyond `room` are written now: their ids follow
        from what they tell, so that whoever tells it again writes the same."""
        rows = [await self._row(delivery) for delivery in {one.id: one for one in deliveries}.values()]
        known = await self._table.get_many(map(key_of, rows))
        new = [row for row in rows if key_of(row) not in known]
        await each(new[room:], self._table.add)
        return [Put(row, absent()) for row in new[:room]]

    async def remove_about(self, matches: Callable[[Item], bool], *, dry: bool) -> int:
        """Remove the deliveries whose rows match; returns how many. Reads every delivery."""
        count = 0
        for shard in range(SHARDS):
            async for page in self._table.pages(f"{_DELIVERY}/{shard}", LIST):
                rows = list((await self._table.get_many(map(key_of, page))).values())
                found = [key_of(row) for row in await self._contents.opened(rows) if matches(row)]
                count += len(found)
                if not dry:
                    await self._contents.drop(found)
        return count

    async def _replace(self, row: Item, delivery: WebhookDelivery) -> bool:
        """Write a changed delivery. False if it changed meanwhile."""
        new = await self._row(delivery)
        try:
            await self._table.write(changed(key_of(row), row, new))
        except WriteRefused:
            return False
        await self._contents.clean([row])
        return True

    async def _row(self, delivery: WebhookDelivery) -> Item:
        waits, pk = delivery.state is DeliveryState.WAITING, _place(delivery.id)
        due = max(delivery.next_at or 0.0, delivery.lease_until or 0.0) if waits else None
        row = {
            "pk": pk[0],
            "sk": pk[1],
            "list_pk": sharded(_DELIVERY, delivery.id),
            "list_sk": delivery.id,
            "due_pk": _DELIVERY if waits else None,
            "due_at": due,
            "ended_pk": None if waits else _DELIVERY,
            "ended_at": delivery.finished_at,
            "subject": delivery.subject,
            "owner": delivery.owner,
            "host": delivery.host,
            "status": delivery.state.value,
            "document": json.encode(replace(delivery, body=b"")),
            "body": delivery.body,
        }
        return await self._contents.stored(row)

    async def _delivery(self, row: Item) -> WebhookDelivery:
        (opened,) = await self._contents.opened([row])
        return _to_delivery(opened)


_DECODER: Final = json.Decoder(WebhookDelivery)


def _to_delivery(row: Item) -> WebhookDelivery:
    return replace(_DECODER.decode(row["document"]), body=row.get("body") or b"")


def _place(delivery_id: str) -> Key:
    return f"delivery/{delivery_id}", "delivery"


class DynamoWebhooks(DynamoPart):
    """The WebhookStore."""

    def __init__(self, base: DynamoBase, jobs: DynamoJobRows) -> None:
        super().__init__(base)
        self._deliveries = DynamoDeliveries(base)
        self._runs = DynamoRuns(base)
        self._jobs = jobs
        self._events = DynamoEvents(base, jobs)
        self._watches = DynamoDocuments(base, Webhook, "run_watches.webhook")
        self._looked_until = 0.0

    async def untold_jobs(self, limit: int, events: int) -> list[JobNewsItem]:
        """Jobs with a webhook that have events after their mark, or another status than it says."""
        found: list[JobNewsItem] = []
        async for page in self._table.pages(JOB_NEWS):
            for news in page:
                item = await self._untold(news, events)
                if item is None:
                    await self._table.delete(key_of(news), unchanged(news))
                else:
                    found.append(item)
                if len(found) == limit:
                    return found
        return found

    async def tell_job(
        self, job_id: str, before: EventCursor, after: EventCursor, deliveries: Sequence[WebhookDelivery]
    ) -> bool:
        """Write deliveries and move the mark, atomically. False if it had moved, or the job is gone."""
        while True:
            old = await self._table.get(_mark_key(job_id))
            if _to_mark(old) != before:
                return False
            moved = changed(_mark_key(job_id), old, asdict(after))
            new = await self._deliveries.writes(deliveries, MAX_ACTIONS - 2)
            try:
                await self._table.transact([ConditionCheck(job_key(job_id), exists()), moved, *new])
            except WriteRefused as refused:
                if 0 in refused.items:
                    return False
            else:
                return True

    async def watch_runs(self, run_ids: Sequence[str], webhook: Webhook, now: float) -> None:
        """Notify this receiver when these runs end."""
        await each(run_ids, lambda run_id: self._watch(run_id, webhook, now))

    async def ended_runs(self, limit: int) -> list[tuple[Run, Webhook]]:
        """Watched runs that have ended, whole. One call looks at a thousand watches at most; the next one goes on from
        there."""
        found = await self._some_watches()
        finals = {run.id: run for run in await self._runs.finals([_run_of(row) for row in found])}
        rows = [row for row in found if _run_of(row) in finals][:limit]
        whole = await self._table.get_many(map(key_of, rows))
        return [(finals[_run_of(row)], await self._watches.value(row)) for row in whole.values()]

    async def tell_run(self, run_id: str, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write deliveries and remove the watch, atomically."""
        while True:
            new = await self._deliveries.writes(deliveries, MAX_ACTIONS - 1)
            try:
                await self._table.transact([Delete(_watch_key(run_id)), *new])
            except WriteRefused:  # another wrote one of them meanwhile
                continue
            return

    async def forget_watches_before(self, created_before: float) -> None:
        """Drop watches of runs that never ended or were never written."""
        old = await self._table.query(_WATCH, DUE, sort=below("due_at", created_before))
        await self._table.delete_many([key_of(row) for row in old])

    async def forget_runs(self, run_ids: Sequence[str]) -> None:
        """Drop the watches of runs that go."""
        await self._table.delete_many([_watch_key(run_id) for run_id in run_ids])

    async def _untold(self, news: Item, events: int) -> JobNewsItem | None:
        row = await self._jobs.get(news["sk"])
        if row is None or row["webhook"] is None:
            return None
        job, mark = to_job(Columns(row)), _to_mark(await self._table.get(_mark_key(news["sk"])))
        more = await self._events.after(job.id, mark.events, events) if row["events"] > mark.events else []
        same = mark.status == job.status and mark.finished_at == job.finished_at
        return None if same and not more else JobNewsItem(job=job, mark=mark, events=tuple(more))

    async def _watch(self, run_id: str, webhook: Webhook, now: float) -> None:
        await self._table.add(await self._watches.item(_watch_key(run_id), webhook, due_pk=_WATCH, due_at=now))

    async def _some_watches(self) -> list[Item]:
        """The next of them, by their times. Those of one time all belong to one call."""
        found = await self._table.query(_WATCH, DUE, sort=above("due_at", self._looked_until), limit=_LOOKS)
        if not found and self._looked_until:
            self._looked_until = 0.0
            return await self._some_watches()
        last = found[-1]["due_at"] if len(found) == _LOOKS else 0.0
        if last:
            found += await self._table.query(_WATCH, DUE, sort=equals("due_at", last))
        self._looked_until = last
        return list({key_of(row): row for row in found}.values())


def _watch_key(run_id: str) -> Key:
    return f"watch/{run_id}", "watch"


def _run_of(row: Item) -> str:
    return str(row["pk"]).removeprefix("watch/")


def _mark_key(job_id: str) -> Key:
    return f"job/{job_id}", "webhook_mark"


def _to_mark(row: Item | None) -> EventCursor:
    if row is None:
        return EventCursor()
    return EventCursor(events=row["events"], status=row["status"], finished_at=row.get("finished_at"))
