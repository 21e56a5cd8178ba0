from itemloaders.processors import Identity, MapCompose, TakeFirst
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, Rule

from scraper.items import Product


class ProductLoader(ItemLoader):
    default_output_processor = TakeFirst()
    price_in = MapCompose(float)
    tags_in = MapCompose(str.lower)
    tags_out = Identity()


class ProductSpider(CrawlSpider):
    """Every product of the shelves that `shelves` names, found by following links."""

    name = "product"
    allowed_domains = ["127.0.0.1"]
    custom_settings = {"CLOSESPIDER_ITEMCOUNT": 500}

    def __init__(self, shelves: str = "garden,office", *args, **kwargs):
        self.rules = (
            Rule(LinkExtractor(allow=[rf"/category/{shelf}" for shelf in shelves.split(",")])),
            Rule(LinkExtractor(allow=r"/product/\d+$", restrict_css="main ul.grid"), callback="parse_product"),
        )
        super().__init__(*args, **kwargs)

    start_urls = ["http://127.0.0.1:8800/"]

    def parse_product(self, response):
        loader = ProductLoader(item=Product(), response=response)
        loader.add_css("sku", ".sku::text")
        loader.add_css("name", "h1::text")
        loader.add_css("price", ".price::attr(data-amount)")
        loader.add_css("currency", ".price::attr(data-currency)")
        loader.add_css("tags", ".material::text, .brand::text")
        return loader.load_item()
