"""Reads pages in a thread of this process: for one run on a laptop, where a page that chokes hurts nobody else."""

import asyncio
from typing import Any

from scrapeyard.builtin.reading.port import RawPage


class ThreadExtractor:
    """Keeps the loop free, but not Python's lock: a hostile page can slow everything in the process for a while."""

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """As `Extractor`. Never raises PageUnreadable."""
        from scrapeyard.builtin.reading.page import extract_page  # noqa: PLC0415 - a run of a script here needs no parser

        return await asyncio.to_thread(
            extract_page, page.body, page.url, encoding=page.encoding, include=page.include, headers=page.headers
        )
