"""Asks for another attempt the first time."""

from typing import Any

from scrapeyard_sdk import Context, Retry


async def run(ctx: Context, after: float = 0.1) -> dict[str, Any]:
    if ctx.attempt == 1:
        raise Retry("not yet", after=after)
    return {"attempt": ctx.attempt}
