"""Hearing a channel for as long as the gateway lives."""

import asyncio
from collections.abc import Callable

import msgspec

from scrapeyard.errors import ScrapeyardError
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
PAUSE_SECONDS = 0.5


async def hear_forever(queue: Queue, channel: str, hear: Callable[[bytes], None], heard: asyncio.Event) -> None:
    """Give every message of `channel` to `hear` until cancelled; one that it cannot decode is dropped. `heard` is set
    once the channel is listened to."""
    while True:
        try:
            async with queue.listen(channel) as messages:
                heard.set()
                async for message in messages:
                    _give(channel, message, hear)
        except ScrapeyardError as error:
            log.warning("gateway.not_heard", channel=channel, error=error.message)
        await asyncio.sleep(PAUSE_SECONDS)


def _give(channel: str, message: bytes, hear: Callable[[bytes], None]) -> None:
    try:
        hear(message)
    except msgspec.MsgspecError as error:
        log.warning("queue.dropped_message", channel=channel, error=str(error))
