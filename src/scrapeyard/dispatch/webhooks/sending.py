"""One message to one receiver: signed, sent once, and judged."""

import random
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from scrapeyard import __version__
from scrapeyard.engines.politeness.verdicts import wait_asked_by
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, HttpEngine
from scrapeyard.errors import FetchFailed, SealBroken
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.model.webhook import SIGNATURE, Attempt, DeliveryState, WebhookDelivery, secret_place, sign
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import WebhookSettings

MAX_ANSWER: Final = 64 * 1024
MAX_LOG: Final = 30
"""Maximum number of attempts in a delivery's log; the newest are stored."""
MAX_ERROR: Final = 500
_HOPELESS: Final = frozenset({ExitReason.FETCH_PRIVATE_ADDRESS, ExitReason.FETCH_NOT_ALLOWED, ExitReason.FETCH_BAD_URL})
_GONE: Final = 410
_NO_SECRET: Final = "there is no secret to sign with; set webhooks.secret, and replay"  # noqa: S105  words
_POLICY: Final = FetchPolicy(robots="ignore", escalate=False, cache="off", proxy="none")


class Sender:
    """Sends with its own engine, which refuses private addresses unless the operator allows them. Redirects are not
    followed: a receiver that moved must be configured again. `spread` returns the random part of a wait, 0 to 1."""

    def __init__(
        self,
        settings: WebhookSettings,
        engine: HttpEngine,
        sealer: Sealer,
        clock: Callable[[], float],
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._sealer = sealer
        self._clock = clock
        self._spread = spread

    async def send(self, delivery: WebhookDelivery) -> WebhookDelivery:
        """Send it once; returns the updated delivery. Never raises for an error of the receiver."""
        try:
            secret = self._secret(delivery)
        except SealBroken as error:
            return self._over(delivery, Attempt(at=self._clock(), error=error.message), DeliveryState.FAILED)
        if not secret:
            return self._over(delivery, Attempt(at=self._clock(), error=_NO_SECRET), DeliveryState.FAILED)
        began, at = time.perf_counter(), self._clock()
        try:
            answer = await self._engine.fetch(self._request(delivery, secret, at), Caller(policy=_POLICY))
        except FetchFailed as failure:
            ms = (time.perf_counter() - began) * 1000
            return self._unanswered(delivery, failure, Attempt(at=at, ms=ms, error=failure.message[:MAX_ERROR]))
        return self._answered(delivery, answer, Attempt(at=at, status=answer.status, ms=answer.elapsed_ms))

    def _secret(self, delivery: WebhookDelivery) -> str:
        """In clear; the operator's if the call gave none. Raises SealBroken."""
        if not delivery.secret:
            return self._settings.secret.get_secret_value()
        return self._sealer.open_text(delivery.secret, secret_place(delivery.url))

    def _request(self, delivery: WebhookDelivery, secret: str, now: float) -> FetchRequest:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"Scrapeyard-Webhooks/{__version__}",
            "Scrapeyard-Event": delivery.event,
            "Scrapeyard-Delivery": delivery.id,
            "Scrapeyard-Attempt": str(delivery.attempts),
            SIGNATURE: sign(secret, delivery.body, now),
        }
        return FetchRequest(
            url=delivery.url,
            method="POST",
            headers=headers,
            body=delivery.body,
            timeout_seconds=self._settings.timeout_seconds,
            follow_redirects=False,
            max_bytes=MAX_ANSWER,
            engine="http",
        )

    def _unanswered(self, delivery: WebhookDelivery, failure: FetchFailed, attempt: Attempt) -> WebhookDelivery:
        """A response that was too long or garbled still has a status, which decides."""
        if failure.site_status is not None and 200 <= failure.site_status < 300:
            taken = replace(attempt, status=failure.site_status, error="")
            return self._over(delivery, taken, DeliveryState.DELIVERED)
        attempt = replace(attempt, status=failure.site_status)
        if failure.reason in _HOPELESS:
            return self._over(delivery, attempt, DeliveryState.FAILED)
        return self._later(delivery, attempt, 0.0)

    def _answered(self, delivery: WebhookDelivery, answer: FetchResponse, attempt: Attempt) -> WebhookDelivery:
        if 200 <= answer.status < 300:
            return self._over(delivery, attempt, DeliveryState.DELIVERED)
        moved = "; redirects are not followed" if 300 <= answer.status < 400 else ""
        attempt = replace(attempt, error=f"the receiver answered {answer.status}{moved}")
        if answer.status == _GONE:
            return self._over(delivery, attempt, DeliveryState.FAILED)
        return self._later(delivery, attempt, wait_asked_by(answer))

    def _later(self, delivery: WebhookDelivery, attempt: Attempt, asked: float) -> WebhookDelivery:
        """Retry after a wait that doubles each time plus up to 20 % at random; fail if that is after `give_up_at`."""
        doubled = self._settings.first_seconds * 2.0 ** min(delivery.attempts - 1, 30)
        wait = min(max(doubled, asked), self._settings.cap_seconds) * (1 + 0.2 * self._spread())
        due = self._clock() + wait
        if due > delivery.give_up_at:
            return self._over(delivery, attempt, DeliveryState.FAILED)
        return replace(delivery, next_at=due, log=_logged(delivery, attempt))

    def _over(self, delivery: WebhookDelivery, attempt: Attempt, state: DeliveryState) -> WebhookDelivery:
        return replace(delivery, state=state, next_at=None, finished_at=self._clock(), log=_logged(delivery, attempt))


def _logged(delivery: WebhookDelivery, attempt: Attempt) -> tuple[Attempt, ...]:
    return (*delivery.log, replace(attempt, ms=round(attempt.ms, 1)))[-MAX_LOG:]
