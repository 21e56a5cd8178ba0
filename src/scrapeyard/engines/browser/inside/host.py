"""The process that holds driver and browser: `python -m scrapeyard.engines.browser.inside.host PLAN`.

Calls come on stdin, answers and events leave by stdout. It lives until its pipe closes, its browser is gone or its
worker ends; nothing that it started outlives it.
"""

import asyncio
import os
import sys

import msgspec

from scrapeyard.engines.browser import wire
from scrapeyard.engines.browser.inside.enclosure import find_obstacle, run_supervised
from scrapeyard.framed_process import prepare_child


def main() -> None:
    """Serve until there is nothing more to read."""
    plan = msgspec.json.decode(sys.argv[1], type=wire.HostPlan)
    prepare_child()
    obstacle = find_obstacle(plan.namespace)
    run_supervised(lambda: asyncio.run(_serve(plan, obstacle)), enclosed=not obstacle)


async def _serve(plan: wire.HostPlan, no_namespace: str) -> None:
    from scrapeyard.engines.browser.inside.forwarder import Forwarder  # noqa: PLC0415 - not before the forks
    from scrapeyard.engines.browser.inside.launch import NoBrowser, launch  # noqa: PLC0415
    from scrapeyard.engines.browser.inside.light import launch_light  # noqa: PLC0415
    from scrapeyard.engines.browser.inside.serving import ContextServer  # noqa: PLC0415

    reader, writer = await _open_pipes()
    try:
        if no_namespace and plan.namespace == "require":
            raise NoBrowser(f"there is no network namespace for the browser: {no_namespace}")
        forwarder = Forwarder(plan.socket)
        await forwarder.start()
        if plan.name == wire.LIGHT:
            launched = await launch_light(plan, no_namespace)
        else:
            launched = await launch(plan, forwarder.port, no_namespace)
    except NoBrowser as failure:
        facts = wire.HostFacts(driver=plan.driver, browser=plan.name, version="", failure=str(failure))
        writer.write(wire.FRAMING.pack(wire.HELLO, wire.encode(facts)))
        await writer.drain()
        return
    await ContextServer(plan, launched, reader, writer).run()
    os._exit(0)  # asyncio would wait for every task, and one whose page was loading may never end


async def _open_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Stdin and stdout. What anything else prints goes to stderr."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    calls, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), calls)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), answers
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


if __name__ == "__main__":
    main()
