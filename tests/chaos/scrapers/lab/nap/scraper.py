"""Sleeps as long as told, says so every tenth of a second, and asks to do it `twice` if told so."""

import asyncio
from typing import Any

from scrapeyard_sdk import Context, Retry


async def run(ctx: Context, seconds: float, tag: str = "", twice: bool = False) -> dict[str, Any]:
    ticks = max(1, round(seconds * 10))
    for tick in range(ticks):
        ctx.log("tick", number=tick)
        await asyncio.sleep(seconds / ticks)
    if twice and ctx.attempt == 1:
        raise Retry("once more", after=0.2)
    return {"tag": tag, "attempt": ctx.attempt}
