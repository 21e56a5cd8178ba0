"""Refreshing the repository now: on request, on a Git host's webhook, or on another process's signal."""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping

from scrapeyard.errors import Refusal, Unavailable
from scrapeyard.model import Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.queues.signals import Signals
from scrapeyard.repository.catalogue.channels import ChannelOverrides
from scrapeyard.repository.catalogue.refresh import CoalescedRefresh
from scrapeyard.repository.port import Catalogue
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

EVENTS = ("x-github-event", "x-gitea-event", "x-forgejo-event", "x-gogs-event", "x-gitlab-event")
SIGNATURES = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature", "x-gogs-signature")
"""HMAC-SHA256 of the body in hex; the first header prefixes it with `sha256=`."""
TOKEN = "x-gitlab-token"  # noqa: S105  a header's name
"""The plain secret."""
HEADERS = (*EVENTS, *SIGNATURES, TOKEN)


def event_of(headers: Mapping[str, str], body: bytes, secret: str) -> str | None:
    """The host's event (`push`, `ping`, …); None if the call is not from a Git host. Raises Refusal (401) if a secret
    is set and the call does not prove that it knows it."""
    given = [name for name in HEADERS if name in headers]
    if not given:
        return None
    if secret and not _knows(headers, body, secret.encode()):
        raise Refusal("hook_refused", 401, "the hook's signature or token does not fit repository.hook_secret")
    return next((headers[name].lower() for name in EVENTS if name in headers), "push")


def _knows(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    signed = hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
    signatures = [headers[name].removeprefix("sha256=") for name in SIGNATURES if name in headers]
    proven = [hmac.compare_digest(_sent(signature), signed) for signature in signatures]
    proven += [hmac.compare_digest(_sent(headers[TOKEN]), secret)] if TOKEN in headers else []
    return any(proven)


def _sent(header: str) -> bytes:
    """The header's bytes; headers are decoded as Latin-1 whatever they contain."""
    return header.encode("latin-1")


log = get_log("gateway")
PATIENCE_SECONDS = 2.0


class Refreshing:
    """Refreshes this gateway and signals all other processes to refresh."""

    def __init__(
        self, catalogue: Catalogue, queue: Queue, moved: ChannelOverrides, metrics: Metrics, gateway_id: str
    ) -> None:
        self._catalogue = catalogue
        self._queue = queue
        self._moved = moved
        self._metrics = metrics
        self._gateway_id = gateway_id
        self._looks = CoalescedRefresh(self._poll, self._ended)
        self._report = False
        self._signals = Signals(
            queue,
            "gateway-signals",
            wait_seconds=PATIENCE_SECONDS,
            log=log,
            on_away=lambda error: log.warning("gateway.not_heard", channel=messages.SIGNALS, error=error.message),
        )
        self._signals.subscribe(Refresh, self._receive)

    async def start(self) -> None:
        """Subscribe to signals. Returns once subscribed, or after two seconds without a broker."""
        if not self._signals.started:
            self._looks = CoalescedRefresh(self._poll, self._ended)
            await self._signals.start()

    async def stop(self) -> None:
        """Unsubscribe and abort the refresh under way. May be called twice."""
        await self._signals.stop()
        await self._looks.stop()

    def close(self) -> None:
        """Answer waiting callers now."""
        self._looks.cancel()

    async def refresh(self) -> None:
        """Refresh here and signal everyone. Raises QueueUnavailable if only this gateway could refresh, Unavailable if
        it is stopping."""
        look = self.begin(tell=True)
        try:
            await asyncio.shield(look)
        except asyncio.CancelledError:
            if look.cancelled():
                raise Unavailable("this gateway stops; ask another, or again when it is back") from None
            raise

    def begin(self, *, tell: bool) -> asyncio.Task[None]:
        """Refresh in the background; with `tell` also signal everyone. A failure is counted and logged."""
        self._report = self._report or tell
        return self._looks.request()

    async def _poll(self) -> None:
        tell, self._report = self._report, False
        work = [self._catalogue.refresh(), *([self._signal()] if tell else [])]
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _signal(self) -> None:
        await self._queue.send(messages.SIGNALS, messages.encode(Refresh(sender=self._gateway_id)))

    def _ended(self, error: BaseException | None) -> None:
        self._metrics.refreshed(well=error is None)
        if error is not None:
            log.warning("gateway.refresh_failed", error=str(error) or repr(error))

    def _receive(self, signal: Refresh) -> None:
        if signal.sender != self._gateway_id:
            self._moved.look_soon()
            self.begin(tell=False)
