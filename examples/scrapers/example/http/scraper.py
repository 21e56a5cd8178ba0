"""The smallest scraper as a class: one request, one answer."""

from typing import Any

from scrapeyard_sdk import BaseHttpScraper


class HttpExample(BaseHttpScraper):
    """Sends a word and returns the JSON that comes back."""

    async def scrape(self, test_param: str, url: str = "") -> dict[str, Any]:
        page = await self.get(url or self.ctx.config["url"], params={"test_param": test_param})
        return {"test_param": test_param, "url": page.url, "answer": page.json()}
