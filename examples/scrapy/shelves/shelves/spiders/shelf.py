import scrapy


class ShelfSpider(scrapy.Spider):
    """The products of one shelf, page after page."""

    name = "shelf"
    start_urls = ["http://127.0.0.1:8800/"]

    def parse(self, response):
        category = getattr(self, "category", "toys")
        yield response.follow(f"/category/{category}", self.parse_shelf, cb_kwargs={"category": category})

    def parse_shelf(self, response, category):
        for card in response.css("a.product-card"):
            yield {
                "name": card.css("h2::text").get(),
                "price": card.css(".price::text").re_first(r"[\d.]+"),
                "category": category,
                "url": response.urljoin(card.attrib["href"]),
            }
        next_page = response.css("a[rel=next]::attr(href)").get()
        if next_page is not None:
            yield response.follow(next_page, self.parse_shelf, cb_kwargs={"category": category})
