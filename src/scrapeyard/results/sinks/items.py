"""Messages with the results of items, to the webhooks of jobs that want `item.ended`: one for each record."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw
from pydantic import SecretStr

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.errors import FetchFailed, SealBroken, SinkUnavailable
from scrapeyard.model import ExitReason
from scrapeyard.model.export import ITEMS_SINK
from scrapeyard.model.instants import instant
from scrapeyard.model.webhook import ITEM_ENDED, Webhook, secret_place
from scrapeyard.results.sinks.port import RefusedRecord, Repeats, SinkBatch, SinkRecord
from scrapeyard.results.sinks.webhook import SignedPost, send
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import SinkTarget, WebhookSettings
from scrapeyard.store.ports.jobs import JobStore

ITEMS_AT_ONCE: Final = 16
"""Jobs whose receivers get messages at the same time."""
ITEMS_TARGET: Final = SinkTarget(
    name="items", url=SecretStr("https://receiver.invalid/"), batch_records=50, batch_seconds=0.1
)
"""How they are gathered: a few, since noting a batch costs more than a message. The address is that of each job's
webhook."""
_REMEMBERED: Final = 1000
"""Batches whose taken records are remembered until the rest is taken, too."""
_HOOK: Final = msgspec.json.Decoder(Webhook)
_HOPELESS: Final = frozenset({ExitReason.FETCH_PRIVATE_ADDRESS, ExitReason.FETCH_NOT_ALLOWED, ExitReason.FETCH_BAD_URL})
_NEVER: Final = {410: "the receiver answered 410: it is gone", 413: "the receiver answered 413: too large"}
ForeignForm = Callable[[Webhook, SinkRecord], dict[str, Any]]
"""The message as another tool's receivers expect it."""


class ItemWebhookSink:
    """A ResultSink. `engine` refuses private addresses unless the operator allows them: a caller wrote the address."""

    name = ITEMS_SINK
    repeats: Repeats = "same_id"

    def __init__(
        self,
        settings: WebhookSettings,
        jobs: JobStore,
        engine: WreqEngine,
        *,
        sealer: Sealer,
        foreign: ForeignForm,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._jobs = jobs
        self._engine = engine
        self._sealer = sealer
        self._foreign = foreign
        self._clock = clock
        self._taken: OrderedDict[str, set[str]] = OrderedDict()
        """By batch, the items that its receiver took before one failed. Only after a kill they are sent again."""

    async def start(self) -> None:
        """Start the engine, which connects when it is first used. May be called twice."""
        await self._engine.start()

    async def stop(self) -> None:
        """Close connections. May be called twice."""
        await self._engine.stop()

    async def check(self) -> str:
        """There is no one receiver to ask."""
        return "the receivers of jobs"

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        """Send each record once. One that the receiver will never take is refused."""
        job = await self._jobs.get(batch.job_id)
        if job is None or job.webhook is None:
            raise SinkUnavailable("the job is gone, or has no webhook any more")
        webhook = _HOOK.decode(job.webhook)
        secret = self._secret(webhook)
        taken = self._taken.setdefault(batch.id, set())
        while len(self._taken) > _REMEMBERED:
            self._taken.popitem(last=False)
        refused = []
        for record in batch.records:
            if record.item_key in taken:
                continue
            name = f"{batch.id}-{record.item_key}"
            post = SignedPost(webhook.url, secret, ITEM_ENDED, name, self._body(name, webhook, record))
            if why := await self._sent(post):
                refused.append(RefusedRecord(item_key=record.item_key, why=why))
            else:
                taken.add(record.item_key)
        self._taken.pop(batch.id, None)
        return refused

    def _secret(self, webhook: Webhook) -> str:
        """In clear. Raises SinkUnavailable."""
        if not webhook.secret:
            found = self._settings.secret.get_secret_value()
        else:
            try:
                found = self._sealer.open_text(webhook.secret, secret_place(webhook.url))
            except SealBroken as error:
                raise SinkUnavailable(error.message) from None
        if not found:
            raise SinkUnavailable("there is no secret to sign with; set webhooks.secret")
        return found

    def _body(self, name: str, webhook: Webhook, record: SinkRecord) -> bytes:
        if webhook.form:
            return msgspec.json.encode(self._foreign(webhook, record))
        told = {"id": name, "event": ITEM_ENDED, "created_at": instant(record.finished_at), "job_id": record.job_id}
        return msgspec.json.encode({**told, "item": Raw(record.to_json())})

    async def _sent(self, post: SignedPost) -> str:
        """Why it will never be taken; empty if it was. Raises SinkUnavailable if it must be sent again."""
        try:
            answer = await send(self._engine, post.request(self._clock(), self._settings.timeout_seconds))
        except FetchFailed as failure:
            if failure.reason in _HOPELESS:
                return failure.message[:500]
            raise SinkUnavailable(failure.message[:500]) from None
        if 200 <= answer.status < 300:
            return ""
        if answer.status in _NEVER:
            return _NEVER[answer.status]
        moved = "; redirects are not followed" if 300 <= answer.status < 400 else ""
        raise SinkUnavailable(f"the receiver answered {answer.status}{moved}", retry_after=answer.wait)
