"""Returns as much text as told."""

from typing import Any

from scrapeyard_sdk import SyncContext


def run(ctx: SyncContext, size: int) -> dict[str, Any]:
    line = "0123456789abcdef" * 64
    return {"text": (line * (size // len(line) + 1))[:size], "attempt": ctx.attempt}
