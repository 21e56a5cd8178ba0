from scrapy import signals


class Counted:
    """Counts what a crawl scraped, and says so when it ends."""

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        extension.items = 0
        crawler.signals.connect(extension.item_scraped, signals.item_scraped)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def item_scraped(self, item, spider):
        self.items += 1

    def spider_closed(self, spider, reason):
        spider.logger.info("counted %d items, %s", self.items, reason)
