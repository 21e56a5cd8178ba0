"""Fields without selectors: structured data teach a pattern, the pattern reads on, and its health is told.

`python learn_and_watch.py SERVER SHOP`. No model is asked.
"""

import json
import sys
from typing import Any
from urllib.request import Request, urlopen

SERVER, SHOP = (each.rstrip("/") for each in sys.argv[1:3])
FIELDS = "title, price: number, sku"


def call(method: str, path: str, body: Any = None) -> Any:
    """A JSON call."""
    data = json.dumps(body).encode() if body is not None else None
    asked = Request(f"{SERVER}{path}", data, {"content-type": "application/json"}, method=method)
    with urlopen(asked, timeout=120) as answer:
        return json.load(answer)


def extract(number: int, **more: Any) -> Any:
    """The fields of one product."""
    body = {"url": f"{SHOP}/product/{number}", "fields": FIELDS, "ai": {"provider": "none"}, "wait": 60, **more}
    return call("POST", "/api/extract", body)["result"]


for number in range(1, 12):
    result = extract(number)
    price = result["fields"]["price"]
    print(number, result["data"]["sku"], result["data"]["price"], price["how"], price["confidence"])

place = price["evidence"]
print("stands in", place["selector"], "as", place["text"])

corrected = extract(12, examples=[{"url": f"{SHOP}/product/12", "values": {"title": result["data"]["title"]}}])
print("a wrong correction is outvoted:", corrected["data"]["title"])

pattern = call("GET", f"/api/patterns/{result['pattern']['id']}")
print(pattern["status"], "from", pattern["examples"], "pages; reads", ", ".join(pattern["pattern"]["fields"]))
print("found:", pattern["health"]["fill_rates"])

call("POST", "/api/scrape", {"scraper": "shop/product", "input": {"url": f"{SHOP}/product/1"}, "wait": 60})
drift = call("GET", "/api/scrapers/shop/product/drift")
print("fields of shop/product that drift:", drift["drifted"])
