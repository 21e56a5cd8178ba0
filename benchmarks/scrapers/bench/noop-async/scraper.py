"""As `bench/noop`, but `async def`: the child starts an event loop for it."""

from scrapeyard_sdk import Context


async def run(ctx: Context) -> dict[str, object]:
    """Nothing, with a result."""
    return {"ok": True, "given": len(ctx.input)}
