"""A warm scraper: what the module holds is made once and serves many calls. It holds nothing that belongs to a call."""

import re
from collections import Counter
from typing import Any

from scrapeyard_sdk import Skip, SyncContext

WORD = re.compile(r"[^\W\d_]{4,}")
"""Made when the script is loaded, and so shared by all calls."""


def run(ctx: SyncContext, url: str) -> dict[str, Any]:
    page = ctx.fetch(url).raise_for_status()
    if page.css_first(".product") is None:
        raise Skip("the page shows no product")
    words = Counter(word.lower() for word in WORD.findall(page.text(".product")))
    return {"url": page.url, "words": dict(words.most_common(5))}
