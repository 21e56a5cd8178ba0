"""Refreshing the repository now: because somebody asked, a Git host called, or another process says so."""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping

from scrapeyard.errors import Unavailable
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.model import Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.listeners import subscribe_forever
from scrapeyard.queues.port import Queue
from scrapeyard.repository.catalogue.channels import ChannelOverrides
from scrapeyard.repository.catalogue.refresh import CoalescedRefresh
from scrapeyard.repository.port import Catalogue
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import GatewayMetrics

EVENTS = ("x-github-event", "x-gitea-event", "x-forgejo-event", "x-gogs-event", "x-gitlab-event")
SIGNATURES = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature", "x-gogs-signature")
"""An HMAC of the body by SHA-256 in hex, the first with `sha256=` before it."""
TOKEN = "x-gitlab-token"  # noqa: S105  a header's name
"""The secret as it is."""
HEADERS = (*EVENTS, *SIGNATURES, TOKEN)


def event_of(headers: Mapping[str, str], body: bytes, secret: str) -> str | None:
    """What happened at the host (`push`, `ping`, …); None when this is no call of a Git host. Raises Refusal (401) when
    there is a secret and the call does not prove that it knows it."""
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
    """The bytes that came; a header is read as Latin-1 whatever it holds."""
    return header.encode("latin-1")


log = get_log("gateway")
PATIENCE_SECONDS = 2.0


class Refreshing:
    """Looks here, and tells everyone else to look."""

    def __init__(
        self, catalogue: Catalogue, queue: Queue, moved: ChannelOverrides, metrics: GatewayMetrics, gateway_id: str
    ) -> None:
        self._catalogue = catalogue
        self._queue = queue
        self._moved = moved
        self._metrics = metrics
        self._gateway_id = gateway_id
        self._looks = CoalescedRefresh(self._poll, self._ended)
        self._report = False
        self._ear: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Hear what others say. Returns when they are heard, or after two seconds without a broker."""
        if self._ear is not None:
            return
        self._looks = CoalescedRefresh(self._poll, self._ended)
        heard = asyncio.Event()
        hearing = subscribe_forever(self._queue, messages.SIGNALS, self._receive, heard)
        self._ear = asyncio.create_task(hearing, name="gateway-signals")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await heard.wait()
        except TimeoutError:
            return

    async def stop(self) -> None:
        """Hear no more and break off what is under way. May be called twice."""
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.cancel()
            await asyncio.gather(ear, return_exceptions=True)
        await self._looks.stop()

    def close(self) -> None:
        """Those who wait are answered now."""
        self._looks.cancel()

    async def refresh(self) -> None:
        """Look here and tell everyone to look. Raises QueueUnavailable when only this gateway could, Unavailable when
        it stops."""
        look = self.begin(tell=True)
        try:
            await asyncio.shield(look)
        except asyncio.CancelledError:
            if look.cancelled():
                raise Unavailable("this gateway stops; ask another, or again when it is back") from None
            raise

    def begin(self, *, tell: bool) -> asyncio.Task[None]:
        """The same in the background, with `tell` also everywhere else. A failure is counted and logged."""
        self._report = self._report or tell
        return self._looks.begin()

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

    def _receive(self, message: bytes) -> None:
        signal = messages.decode_signal(message)
        if isinstance(signal, Refresh) and signal.sender != self._gateway_id:
            self._moved.look_soon()
            self.begin(tell=False)
