"""The drift of scrapers at the gateway's door: shown and accepted."""

from pathlib import Path

from scrapeyard.model.drift import sights_of
from tests.integration.gateway_stand import open_stand

HERE = "/api/scrapers/shop/product/drift"


async def test_drift_is_shown_and_accepted(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        assert (await stand.client.get(HERE)).json() == {"scraper": "shop/product", "drifted": 0, "sites": []}
        results = [{"title": f"Lamp {n}", "price": 3 + n} for n in range(60)] + [
            {"title": f"Vase {n}"} for n in range(20)
        ]
        pages = [sights_of(result) for result in results]
        await stand.services.store.drift.observe("shop/product", "shop.example", "1.0.0", pages, 1_700_000_000.0)
        told = (await stand.client.get(HERE)).json()
        (site,) = told["sites"]
        assert (told["drifted"], site["site"], site["version"], site["pages"]) == (1, "shop.example", "1.0.0", 80)
        assert site["fields"][1] == {
            "name": "price",
            "fill_rate": 1.0,
            "recent_fill_rate": 0.0,
            "drift": "emptied",
            "since": "2023-11-14T22:13:20.000Z",
            "before": "filled on 100% of pages",
            "now": site["fields"][1]["now"],
        }
        assert (await stand.client.delete(HERE)).json()["sites"] == []
        assert (await stand.client.get("/api/scrapers/shop/none/drift")).status_code == 404
