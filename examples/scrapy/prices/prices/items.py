import scrapy


class PriceItem(scrapy.Item):
    name = scrapy.Field()
    price = scrapy.Field(serializer=str)
    shelf = scrapy.Field()
    seen = scrapy.Field()
