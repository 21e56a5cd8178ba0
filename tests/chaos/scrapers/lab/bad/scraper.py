"""Misbehaves in the way it is told."""

import asyncio
import os
from typing import Any

from scrapeyard_sdk import Context


async def run(ctx: Context, way: str, url: str = "") -> dict[str, Any]:
    if way == "raise":
        raise ValueError("as told")
    if way == "exit":
        os._exit(7)
    if way == "hog":
        return {"held": len([bytearray(1 << 20) for _ in range(500)])}
    if way == "spin":
        while True:
            pass
    if way == "print":
        for _ in range(2000):
            print("x" * 500)  # noqa: T201  what a script prints is kept with its logs
    if way == "unread":
        for _ in range(20):
            asyncio.ensure_future(ctx.fetch(url))  # noqa: RUF006  nobody is to wait for it
        await asyncio.sleep(0.05)
    if way == "late":
        await asyncio.sleep(60)
    return {"way": way}
