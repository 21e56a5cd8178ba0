"""Webhooks: notifies receivers of changes to jobs and runs, at least once.

    derive   news of jobs and ends of runs become deliveries, and are marked as told, one transaction each
    send     a delivery is taken under a lease, sent, and its end or its next time written

If the process is killed between sending and writing, the message is sent again once the lease has ended; receivers
recognise it by its id.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from scrapeyard.background import Background
from scrapeyard.dispatch.webhooks.news import Outbox
from scrapeyard.dispatch.webhooks.sending import Sender
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model.webhook import DeliveryState, JobEventKind, WebhookDelivery
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("webhooks")
JOBS: Final = 50
EVENTS: Final = 200
"""Events of one job read at once."""
ROUND_SECONDS: Final = 1.0
"""Maximum time spent on jobs in one round."""
RUNS: Final = 100
AT_ONE_HOST: Final = 4
"""Concurrent deliveries to one host, so that a slow receiver does not block others."""
TIDY_SECONDS: Final = 60.0
TIDY_ROWS: Final = 1000
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR


class Webhooks:
    """A MaintenanceTask. Sends in the background. After `stop`, pending deliveries are sent again once leases end."""

    name = "webhooks"
    waits_after_outage = False

    def __init__(
        self, settings: Settings, store: Store, sender: Sender, clock: Callable[[], float], holder: str
    ) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._holder = holder
        self._outbox = Outbox(settings.webhooks.give_up_hours * HOUR)
        self._most = settings.webhooks.concurrency
        self._lease = 2 * settings.webhooks.timeout_seconds + 20
        self._keep = settings.retention.webhooks_days * DAY
        self._watched = settings.retention.runs_days * DAY
        self._tasks = Background()
        self._hosts: Counter[str] = Counter()
        self._tidied = float("-inf")

    async def start(self) -> None:
        """Nothing to do: the first round starts sending."""

    async def stop(self) -> None:
        """Abort what is under way. May be called twice."""
        await self._tasks.stop()

    async def idle(self) -> None:
        """Wait until nothing is being sent."""
        await self._tasks.idle()

    async def run_once(self) -> None:
        """Run one round. The rest follows in the next round, since a leader must not be silent for long."""
        until = time.monotonic() + ROUND_SECONDS
        while await self._derive_jobs() and time.monotonic() < until:
            pass
        await self._derive_runs()
        await self._tidy()
        self._send_more()

    async def _derive_jobs(self) -> bool:
        """Write deliveries for jobs; whether there may be more."""
        found = await self._store.webhooks.untold_jobs(JOBS, EVENTS)
        for item in found:
            try:
                mark, deliveries = self._outbox.of_job(item, self._clock())
            except msgspec.MsgspecError as error:  # one job's events must not block the others
                log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)
                continue
            await self._store.webhooks.tell_job(item.job.id, item.mark, mark, deliveries)
        return any(item.events for item in found) or len(found) == JOBS

    async def _derive_runs(self) -> None:
        for run, webhook in await self._store.webhooks.ended_runs(RUNS):
            await self._store.webhooks.tell_run(run.id, self._outbox.of_run(run, webhook))

    async def _tidy(self) -> None:
        now = self._clock()
        if now - self._tidied < TIDY_SECONDS:
            return
        self._tidied = now
        await self._store.deliveries.forget_before(now - self._keep, TIDY_ROWS)
        await self._store.webhooks.forget_watches_before(now - self._watched)

    def _send_more(self) -> None:
        if len(self._tasks) < self._most:
            self._tasks.spawn(self._send_all(), name="webhooks")

    async def _send_all(self) -> None:
        """Send until nothing is due. A task that finds a delivery starts one more task."""
        try:
            delivery = await self._claim()
            if delivery is not None:
                self._send_more()
            while delivery is not None:
                await self._send(delivery)
                delivery = await self._claim()
        except ScrapeyardError as error:
            log.warning("dispatch.duty_failed", duty=self.name, error=error.message)
        except Exception as error:  # one delivery's error must not stop the others
            log.error("dispatch.duty_broken", duty=self.name, error=repr(error), exc_info=error)

    async def _claim(self) -> WebhookDelivery | None:
        now = self._clock()
        busy = [host for host, count in self._hosts.items() if count >= AT_ONE_HOST]
        delivery = await self._store.deliveries.claim(self._holder, now, now + self._lease, busy)
        if delivery is not None:
            self._hosts[delivery.host] += 1
        return delivery

    async def _send(self, delivery: WebhookDelivery) -> None:
        try:
            ended = await self._sender.send(delivery)
            if await self._store.deliveries.end_attempt(ended):
                await self._report(ended)
        finally:
            self._hosts[delivery.host] -= 1
            if not self._hosts[delivery.host]:
                del self._hosts[delivery.host]

    async def _report(self, delivery: WebhookDelivery) -> None:
        last = delivery.log[-1]
        facts = {"delivery": delivery.id, "event_name": delivery.event, "subject": delivery.subject}
        if delivery.state is DeliveryState.DELIVERED:
            log.debug("webhooks.delivered", **facts, status=last.status, ms=last.ms)
        elif delivery.state is DeliveryState.WAITING:
            log.info("webhooks.later", **facts, error=last.error, attempts=delivery.attempts)
        else:
            log.warning("webhooks.given_up", **facts, error=last.error, attempts=delivery.attempts)
            told = {"delivery": delivery.id, "event": delivery.event, "state": "failed", "error": last.error}
            await self._store.events.add(
                delivery.subject, JobEventKind.WEBHOOK, Raw(msgspec.json.encode(told)), self._clock()
            )
