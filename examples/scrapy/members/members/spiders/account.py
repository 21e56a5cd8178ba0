import scrapy
from scrapy.http import FormRequest


class AccountSpider(scrapy.Spider):
    """Logs in with a form, reads the account, and follows links that are gone or move."""

    name = "account"
    start_urls = ["http://127.0.0.1:8800/login"]
    handle_httpstatus_list = [404]

    def __init__(self, user="demo", password="demo", **kwargs):
        super().__init__(**kwargs)
        self.user, self.password = user, password

    def parse(self, response):
        return FormRequest.from_response(
            response,
            formcss="form.form",
            formdata={"user": self.user, "password": self.password},
            callback=self.logged_in,
        )

    def logged_in(self, response):
        yield {"page": "account", "title": response.css("h1::text").get(), "url": response.url}
        yield response.follow("/status/404", self.gone)
        yield response.follow("/status/503", self.gone, errback=self.failed)
        yield response.follow("/redirect?to=/product/1", self.moved)
        meta = {"dont_redirect": True, "handle_httpstatus_list": [302]}
        yield response.follow("/redirect?to=/product/2", self.unmoved, meta=meta)

    def gone(self, response):
        yield {"page": "gone", "status": response.status}

    def failed(self, failure):
        yield {"page": "failed", "status": failure.value.response.status}

    def moved(self, response):
        yield {"page": "moved", "url": response.url, "from": response.meta["redirect_urls"]}

    def unmoved(self, response):
        yield {"page": "unmoved", "status": response.status, "to": response.headers["Location"].decode()}
