"""The live view of a context: pictures of its newest tab, whenever it changes."""

import asyncio
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from scrapeyard.errors import FetchFailed

if TYPE_CHECKING:
    from scrapeyard.engines.browser.inside.context import HeldContext, Tab

_FORMAT: Final = {"format": "jpeg", "quality": 60, "maxWidth": 1280, "maxHeight": 1280}
_PAUSE: Final = 0.2
_LOOK_EVERY: Final = 1.0


async def show(context: "HeldContext", send: Callable[[bytes], None]) -> None:
    """Until it is cancelled, or the last tab is closed."""
    while tabs := context.open_tabs:
        with suppress(context.driver.error, FetchFailed):
            await _show_tab(context, tabs[-1], send)
        await asyncio.sleep(_PAUSE)


async def _show_tab(context: "HeldContext", tab: "Tab", send: Callable[[bytes], None]) -> None:
    """As long as it is the newest. The browser sends the next picture when it hears that the last one has come."""
    pictures: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    session = await context.new_devtools(tab, "watch")
    try:
        session.on("Page.screencastFrame", pictures.put_nowait)
        await session.send("Page.startScreencast", dict(_FORMAT))
        while context.open_tabs and context.open_tabs[-1] is tab:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    picture = await pictures.get()
                send(b64decode(picture["data"]))
                await asyncio.sleep(_PAUSE)
                await session.send("Page.screencastFrameAck", {"sessionId": picture["sessionId"]})
    finally:
        with suppress(context.driver.error):
            await session.detach()
