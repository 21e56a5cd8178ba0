"""Sleeps as long as told, and says so every tenth of a second."""

import asyncio
from typing import Any

from scrapeyard_sdk import Context


async def run(ctx: Context, seconds: float, tag: str = "") -> dict[str, Any]:
    ticks = max(1, round(seconds * 10))
    for tick in range(ticks):
        ctx.log("tick", number=tick)
        await asyncio.sleep(seconds / ticks)
    return {"tag": tag, "attempt": ctx.attempt}
