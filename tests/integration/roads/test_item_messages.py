"""Messages with the results of items, to the webhook of a job: in our shape, and in Firecrawl's."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from threading import Lock, Thread
from typing import Any

import pytest
from firecrawl.v2.client import FirecrawlClient
from firecrawl.v2.types import WebhookConfig

from tests.leaks import until
from tests.programs import Embedded, Yard
from tests.services.threads import ThreadedServer

SECRET = "sixteen-letters-at-least"


class Receiver(ThreadedServer):
    """Notes what it takes. Messages with items are answered as `answers` says, from its end; then, all are taken."""

    def __init__(self) -> None:
        super().__init__(_Takes)
        self.url = f"http://127.0.0.1:{self.server_port}/hook"
        self.taken: list[dict[str, Any]] = []
        self.answers: list[int] = []
        self.ids: list[str] = []
        self.lock = Lock()

    def of(self, job_id: str) -> list[dict[str, Any]]:
        with self.lock:
            return [each for each in self.taken if job_id in json.dumps(each)]


class _Takes(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stamp, signature = (part.partition("=")[2] for part in self.headers["Scrapeyard-Signature"].split(","))
        wanted = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        with self.server.lock:
            is_item = self.headers["Scrapeyard-Event"] == "item.ended"
            status = self.server.answers.pop() if is_item and self.server.answers else 204
            if status == 204 and signature == wanted:
                self.server.taken.append(json.loads(body))
                self.server.ids.append(self.headers["Scrapeyard-Delivery"])
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Yard]:
    quick = {"SCRAPEYARD_SINKS__FIRST_SECONDS": "0.1", "SCRAPEYARD_WEBHOOKS__SECRET": SECRET}
    with Embedded(quick) as yard:
        yield yard


def test_pages_of_a_crawl_as_firecrawl_tells_them(yard: Yard, receiver: Receiver) -> None:
    client = FirecrawlClient(api_key="any", api_url=yard.urls[0])
    receiver.answers = [503, 204, 503]
    urls = [f"{yard.shop.url}/product/1", f"{yard.shop.url}/product/2", yard.shop.url.replace("http:", "https:")]
    hook = WebhookConfig(url=receiver.url, metadata={"order": "17"})
    batch = client.start_batch_scrape(urls, formats=["markdown"], webhook=hook)

    def ended() -> list[dict[str, Any]]:
        told = receiver.of(batch.id)
        return told if any(each["type"] == "batch_scrape.completed" for each in told) else []

    told = until(ended, "the end is told")
    kinds = [each["type"].removeprefix("batch_scrape.") for each in told]
    assert sorted(kinds) == ["completed", "page", "page", "page", "started"]
    assert [kind for kind in kinds if kind != "started"][-1] == "completed", "the end comes last"
    assert all(each["metadata"] == {"order": "17"} for each in told)
    pages = {each["data"][0]["metadata"]["sourceURL"]: each for each in told if each["type"] == "batch_scrape.page"}
    assert pages.keys() == set(urls)
    assert [pages[url]["success"] for url in urls] == [True, True, False]
    assert "Aurora Lamp" in pages[urls[0]]["data"][0]["markdown"]
    assert pages[urls[2]]["error"]
    assert len(receiver.ids) == len(set(receiver.ids)) == 5, "what was taken does not come again when another failed"


def test_results_in_our_own_shape(yard: Yard, receiver: Receiver) -> None:
    with yard.client() as api:
        hook = {"url": receiver.url, "events": ["item.ended"], "secret": SECRET}
        items = [{"tag": "nul \u0000"}, {"tag": "日本"}]
        job = api.post("/api/jobs", json={"scraper": "builtin/echo", "items": items, "webhook": hook}).json()
        told = until(lambda: found if len(found := receiver.of(job["id"])) == 2 else None, "both have come")
        assert {each["event"] for each in told} == {"item.ended"}
        assert [each["item"]["data"] for each in told] == items
        (delivery,) = api.get(f"/api/jobs/{job['id']}").json()["sink_deliveries"]
        assert delivery["sink"] == "webhook-items"
        gone = {**hook, "url": f"{receiver.url}?gone"}
        receiver.answers = [410, 410]
        job = api.post("/api/jobs", json={"scraper": "builtin/echo", "items": items, "webhook": gone}).json()

        def given_up() -> dict[str, Any] | None:
            found: dict[str, Any] = api.get(f"/api/jobs/{job['id']}").json()["sink_deliveries"][0]
            return found if found["state"] == "done" else None

        stands = until(given_up, "a receiver that is gone is not asked again")
        assert (stands["delivered"], stands["failed"]) == (0, 2)
        again = api.post(f"/api/jobs/{job['id']}/sinks/webhook-items", params={"from_start": True})
        assert again.status_code == 200, again.text
        until(lambda: len(receiver.of(job["id"])) == 2, "it is delivered again")
