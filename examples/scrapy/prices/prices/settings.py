BOT_NAME = "prices"
SPIDER_MODULES = ["prices.spiders"]
NEWSPIDER_MODULE = "prices.spiders"

DEFAULT_REQUEST_HEADERS = {"Accept": "text/html", "Accept-Language": "en"}
ITEM_PIPELINES = {
    "prices.pipelines.CheapOnly": 100,
    "prices.pipelines.NoDuplicates": 200,
    "prices.pipelines.Database": 300,
    "prices.pipelines.Csv": 400,
}
FEEDS = {
    "out/%(name)s.jsonl": {"format": "jsonlines", "overwrite": True, "fields": ["name", "price"]},
    "prices.xml": {"format": "xml"},
}
MAX_PRICE = 120
