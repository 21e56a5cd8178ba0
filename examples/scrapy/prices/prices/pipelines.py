import sqlite3
from decimal import Decimal

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem
from scrapy.exporters import CsvItemExporter


class CheapOnly:
    def __init__(self, most):
        self.most = most

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings.getfloat("MAX_PRICE"))

    def process_item(self, item, spider):
        adapter = ItemAdapter(item)
        adapter["price"] = Decimal(adapter["price"])
        if adapter["price"] > self.most:
            raise DropItem(f"{adapter['name']} costs more than {self.most}")
        return item


class NoDuplicates:
    def open_spider(self, spider):
        self.seen = set()

    def process_item(self, item, spider):
        if item["name"] in self.seen:
            raise DropItem(f"{item['name']} is there twice")
        self.seen.add(item["name"])
        return item


class Database:
    def open_spider(self, spider):
        self.connection = sqlite3.connect("prices.db")
        self.connection.execute("CREATE TABLE price (name TEXT PRIMARY KEY, price TEXT)")

    def process_item(self, item, spider):
        self.connection.execute("INSERT INTO price VALUES (?, ?)", (item["name"], str(item["price"])))
        return item

    def close_spider(self, spider):
        self.connection.commit()
        self.connection.close()


class Csv:
    def open_spider(self, spider):
        self.file = open("prices.csv", "wb")
        self.exporter = CsvItemExporter(self.file, fields_to_export=["name", "price"])
        self.exporter.start_exporting()

    def process_item(self, item, spider):
        self.exporter.export_item(item)
        return item

    def close_spider(self, spider):
        self.exporter.finish_exporting()
        self.file.close()
