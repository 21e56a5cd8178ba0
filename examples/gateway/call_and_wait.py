"""Call a scraper and wait: the data is in the answer. A wrong input and a failed run are answers, too."""

from api import SHOP, call

status, run = call(
    "POST", "/api/scrape", {"scraper": "shop/product", "input": {"url": f"{SHOP}/product/1"}, "wait": 60}
)
print(status, run["status"], run["result"]["sku"], run["result"]["price"])

status, problem = call("POST", "/api/scrape", {"scraper": "shop/product", "input": {"uri": "no"}})
print(status, problem["code"], [fault["message"] for fault in problem["errors"]])

status, problem = call(
    "POST", "/api/scrape", {"scraper": "shop/product", "input": {"url": f"{SHOP}/status/503"}, "wait": 60}
)
print(status, problem.get("exit_reason"), "try again later" if problem.get("retryable") else "do not try again")
