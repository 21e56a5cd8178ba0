"""Tells which text of the script ran."""

from typing import Any

from scrapeyard_sdk import Context


async def run(ctx: Context) -> dict[str, Any]:
    return {"mark": "first", "attempt": ctx.attempt}
