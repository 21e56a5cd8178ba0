"""Fetches a page, which shows that it runs, then stays as long as told."""

import time
from typing import Any

from scrapeyard_sdk import SyncContext


def run(ctx: SyncContext, url: str, seconds: float) -> dict[str, Any]:
    status = ctx.fetch(url).status
    time.sleep(seconds)
    return {"status": status}
