"""Invalidation: every worker forgets what a signal names, in its memory and in the shared tier."""

from collections.abc import Awaitable, Callable

from scrapeyard.engines.cache.port import PageStore
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import Invalidate
from scrapeyard.queues.port import Queue
from scrapeyard.queues.signals import Signals
from scrapeyard.telemetry.events import get_log

log = get_log("cache")
_PATIENCE_SECONDS = 2.0


async def forget(store: PageStore, signal: Invalidate) -> int:
    """How many pages went. Raises Unavailable."""
    if signal.url:
        return await store.drop(signal.url)
    if signal.site:
        return await store.drop_site(signal.site)
    return await store.drop_all()


def invalidation_signals(queue: Queue, obey: Callable[[Invalidate], Awaitable[None]]) -> Signals:
    """Passes what is invalidated to `obey`, one after the other.

    A signal that is sent while this process is cut off from the queue is missed; `RedisPages.on_return` is for that.
    """

    async def receive(signal: Invalidate) -> None:
        try:
            await obey(signal)
        except ScrapeyardError as error:
            log.warning("cache.not_dropped", error=error.message)

    signals = Signals(
        queue,
        "cache-invalidations",
        wait_seconds=_PATIENCE_SECONDS,
        on_away=lambda error: log.warning("cache.not_heard", error=error.message),
    )
    signals.subscribe(Invalidate, receive)
    return signals
