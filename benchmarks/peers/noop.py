"""The script of the comparison, as a plain function: the same that `bench/noop` does as a scraper."""

from typing import Any


def run(data: dict[str, Any]) -> dict[str, Any]:
    """Nothing, with a result."""
    return {"ok": True, "given": len(data)}
