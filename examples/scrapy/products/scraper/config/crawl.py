BOT_NAME = "products"
SPIDER_MODULES = ["scraper.crawlers"]
USER_AGENT = "products (+http://127.0.0.1/bot)"
DEPTH_LIMIT = 3
