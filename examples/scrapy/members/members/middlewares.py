from itemadapter import ItemAdapter


class Signed:
    """Signs each request, and notes which pages came from where."""

    @classmethod
    def from_crawler(cls, crawler):
        middleware = cls()
        middleware.stats = crawler.stats
        return middleware

    def process_request(self, request, spider):
        request.headers["X-Signed"] = f"{spider.name} {request.method}"

    def process_response(self, request, response, spider):
        self.stats.inc_value(f"signed/{response.status}")
        return response


class Numbered:
    """Numbers the items of each page."""

    def process_spider_output(self, response, result, spider):
        number = 0
        for each in result:
            if not hasattr(each, "url"):
                number += 1
                ItemAdapter(each)["number"] = number
            yield each

    async def process_spider_output_async(self, response, result, spider):
        number = 0
        async for each in result:
            if not hasattr(each, "url"):
                number += 1
                ItemAdapter(each)["number"] = number
            yield each
