"""The live view of a run: pictures of its page in a browser over a WebSocket, while somebody watches."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from scrapeyard.errors import BadRequest, NotFound, QueueUnavailable, ScrapeyardError, Unavailable
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.owned import owned_run
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import RUN_ID
from scrapeyard.gateway.http.problems import from_error
from scrapeyard.gateway.runs.answers import Lookup
from scrapeyard.gateway.runs.events import LISTEN_SECONDS
from scrapeyard.model import Watch
from scrapeyard.model.identity import Identity
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

WATCH_SECONDS = 2.0
"""Between two signals that somebody watches, and two looks whether the run has ended."""
_NORMAL = 1000

router = APIRouter(tags=["runs"])


@router.websocket("/api/scrape/{run_id}/live")
async def watch_run(gateway: GatewayDep, identity: IdentityDep, websocket: WebSocket, run_id: str) -> None:
    """Binary messages: pictures of the newest tab as JPEG, at most five a second, whenever it changes. Closed with 1000
    when the run has ended."""
    queue = gateway.services.queue
    async with AsyncExitStack() as stack:
        try:
            await _check_running(gateway, identity, run_id)
            pictures = await _listen(stack, queue, run_id)
        except ScrapeyardError as error:
            await websocket.send_denial_response(from_error(error))
            return
        await websocket.accept()
        ending = asyncio.create_task(_ask_until_end(queue, gateway.lookup, run_id))
        tasks = [ending, *map(asyncio.create_task, (_send(websocket, pictures), _until_gone(websocket)))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                await websocket.close(_NORMAL)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _check_running(gateway: "Gateway", identity: Identity, run_id: str) -> None:
    if not re.fullmatch(RUN_ID, run_id):
        raise NotFound(f"no run {run_id[:64]}")
    await owned_run(gateway, identity, run_id)
    if (await gateway.lookup.get(run_id)).status.is_final:
        raise BadRequest("the run has ended; its artifacts may have a screenshot, a trace or a video")


async def _listen(stack: AsyncExitStack, queue: Queue, run_id: str) -> AsyncIterator[bytes]:
    try:
        async with asyncio.timeout(LISTEN_SECONDS):
            return await stack.enter_async_context(queue.listen(channels.live(run_id)))
    except TimeoutError:
        raise QueueUnavailable("the queue does not answer; try again later") from None


async def _send(websocket: WebSocket, pictures: AsyncIterator[bytes]) -> None:
    async for picture in pictures:
        await websocket.send_bytes(picture)


async def _ask_until_end(queue: Queue, lookup: Lookup, run_id: str) -> None:
    """Tell the worker, wherever it is, that somebody watches."""
    while True:
        with suppress(Unavailable):
            await queue.send(channels.SIGNALS, channels.encode(Watch(run_id=run_id)))
            if (await lookup.get(run_id)).status.is_final:
                return
        await asyncio.sleep(WATCH_SECONDS)


async def _until_gone(websocket: WebSocket) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        while (await websocket.receive())["type"] != "websocket.disconnect":
            pass
