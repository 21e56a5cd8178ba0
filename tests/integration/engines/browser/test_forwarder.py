"""Connections of the browser on their way to the worker's proxy."""

import asyncio
import gc
from pathlib import Path
from typing import Any

from scrapeyard.engines.browser.inside.forwarder import Forwarder


async def test_a_browser_that_hangs_up_first_hears_the_proxy_end(short_path: Path) -> None:
    """Nobody but the forwarder holds such a connection: it must not be swept away as garbage."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
    hung_up, ended = asyncio.Event(), asyncio.Event()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        hung_up.set()
        await ended.wait()
        writer.close()

    server = await asyncio.start_unix_server(proxy, str(short_path / "proxy"))
    forwarder = Forwarder(str(short_path / "proxy"), "user", "password")
    await forwarder.start()
    _, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(b"GET http://shop.example/ HTTP/1.1\r\n\r\n")
    writer.close()
    async with asyncio.timeout(30):
        await hung_up.wait()
        await writer.wait_closed()
        del writer
        gc.collect()
        ended.set()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
    forwarder.stop()
    server.close()
    gc.collect()
    assert faults == []
