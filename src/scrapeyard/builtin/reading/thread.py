"""Reads pages in a thread of this process, for a single run."""

import asyncio
from typing import Any

from scrapeyard.builtin.pages.port import RawPage


class ThreadExtractor:
    """Leaves the event loop free but holds the GIL: a hostile page can slow the whole process for a while."""

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """As `Extractor`. Never raises PageUnreadable."""
        from scrapeyard.builtin.reading.raw import read_raw  # noqa: PLC0415 - loads slowly, and most runs read no page

        return await asyncio.to_thread(read_raw, page)
