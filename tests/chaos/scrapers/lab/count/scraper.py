"""Works as long as told and tells how many inputs its process has seen."""

import time
from typing import Any

from scrapeyard_sdk import Context

_seen = [0]


def run(_ctx: Context, n: int, seconds: float = 0.0, url: str = "") -> dict[str, Any]:
    _seen[0] += 1
    time.sleep(seconds)
    return {"n": n, "square": n * n, "seen": _seen[0], "url": url}
