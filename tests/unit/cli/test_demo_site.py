"""The practice shop: what examples, docs and benchmarks rely on."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from scrapeyard.demo import create_app, serve
from scrapeyard.engines.blocks.recognise import recognise
from scrapeyard.engines.port import FetchResponse

HOME = "http://shop.test:8900"


@pytest.fixture
async def shop() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=create_app()), base_url=HOME) as client:
        yield client


async def page(shop: httpx.AsyncClient, path: str) -> LexborHTMLParser:
    answer = await shop.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "base.invalid" not in answer.text
    return LexborHTMLParser(answer.text)


async def test_home_leads_to_six_categories(shop: httpx.AsyncClient) -> None:
    links = [node.attributes["href"] for node in (await page(shop, "/")).css(".category-card")]
    assert len(links) == 6
    for link in links:
        assert link
        assert (await page(shop, link)).css_first("h1")


async def test_following_next_visits_every_product_once(shop: httpx.AsyncClient) -> None:
    found: list[str] = []
    for card in (await page(shop, "/")).css(".category-card"):
        link = card.attributes["href"]
        while link:
            tree = await page(shop, link)
            found += [node.attributes["href"] or "" for node in tree.css(".product-card")]
            assert len(tree.css(".product-card")) <= 12
            following = tree.css_first("a[rel=next]")
            link = following.attributes["href"] if following else None
    assert len(found) == len(set(found)) == 240


async def test_a_product_page_tells_the_same_in_every_way(shop: httpx.AsyncClient) -> None:
    tree = await page(shop, "/product/17")
    data = [json.loads(node.text()) for node in tree.css("script[type='application/ld+json']")]
    product, trail = data
    price = tree.css_first(".product .price")
    assert price is not None
    assert product["@type"] == "Product"
    assert tree.css_first("h1").text() == product["name"]
    assert tree.css_first(".sku").text() == product["sku"]
    assert price.attributes["data-amount"] == product["offers"]["price"]
    assert price.text() == "€" + f"{float(product['offers']['price']):,.2f}"
    assert tree.css_first("meta[property='og:title']").attributes["content"] == product["name"]
    assert tree.css_first("link[rel=canonical]").attributes["href"] == f"{HOME}/product/17"
    assert [item["name"] for item in trail["itemListElement"]] == [node.text() for node in tree.css(".crumbs li")]
    image = await shop.get(product["image"])
    assert image.headers["content-type"].startswith("image/svg+xml")


async def test_every_link_of_the_sitemap_is_there(shop: httpx.AsyncClient) -> None:
    robots = (await shop.get("/robots.txt")).text
    assert f"Sitemap: {HOME}/sitemap.xml" in robots
    tree = LexborHTMLParser((await shop.get("/sitemap.xml")).text)
    places = [node.text() for node in tree.css("loc")]
    assert len(places) == 1 + 6 + 240
    for place in places[::20]:
        assert (await shop.head(place)).status_code == 200


async def test_no_page_has_a_dead_link(shop: httpx.AsyncClient) -> None:
    for path in ("/", "/category/toys", "/product/1", "/search?q=lamp", "/login"):
        for node in (await page(shop, path)).css("a[href], img[src], link[href]"):
            target = urljoin(HOME + path, node.attributes.get("href") or node.attributes.get("src") or "")
            assert (await shop.get(target)).status_code == 200, target


async def test_the_api_pages_through_everything(shop: httpx.AsyncClient) -> None:
    first = (await shop.get("/api/products.json")).json()
    items = first["items"]
    for number in range(2, first["pages"] + 1):
        items += (await shop.get("/api/products.json", params={"page": number})).json()["items"]
    assert len({item["sku"] for item in items}) == first["total"] == 240
    assert items[0]["url"] == f"{HOME}/product/1"


async def test_the_goods_are_the_same_at_every_start(shop: httpx.AsyncClient) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=create_app()), base_url=HOME) as other:
        for path in ("/", "/product/99", "/image/5.svg"):
            assert (await shop.get(path)).content == (await other.get(path)).content


async def test_search_finds_and_escapes(shop: httpx.AsyncClient) -> None:
    assert (await page(shop, "/search?q=aurora+LAMP")).css_first(".hits").text() == "1"
    assert (await page(shop, "/search?q=")).css_first(".hits").text() == "0"
    assert "<script>alert" not in (await shop.get("/search?q=<script>alert(1)</script>")).text


@pytest.mark.parametrize("code", [200, 204, 304, 404, 429, 503, 599])
async def test_any_status_can_be_had(shop: httpx.AsyncClient, code: int) -> None:
    answer = await shop.get(f"/status/{code}")
    assert answer.status_code == code
    assert ("retry-after" in answer.headers) == (code in (429, 503))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/status/99", 400),
        ("/status/600", 400),
        ("/status/abc", 400),
        ("/slow?seconds=abc", 400),
        ("/slow?seconds=nan", 400),
        ("/redirect?to=javascript:alert(1)", 400),
        ("/product/0", 404),
        ("/product/241", 404),
        ("/category/toys?page=5", 404),
        ("/category/toys?page=" + "9" * 1000, 404),
        ("/nothing/here", 404),
    ],
)
async def test_what_cannot_be_served_says_so(shop: httpx.AsyncClient, path: str, status: int) -> None:
    answer = await shop.get(path)
    assert answer.status_code == status
    assert LexborHTMLParser(answer.text).css_first("h1")


async def test_slow_is_slow_and_bounded(shop: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("scrapeyard.demo.app.asyncio.sleep", sleep)
    for seconds in ("0.5", "1e9", "-3"):
        assert (await shop.get("/slow", params={"seconds": seconds})).status_code == 200
    assert slept == [0.5, 10.0, 0.0]


async def test_redirect_leads_on(shop: httpx.AsyncClient) -> None:
    answer = await shop.get("/redirect", params={"to": "/product/1"})
    assert (answer.status_code, answer.headers["location"]) == (302, "/product/1")


async def test_login_gives_a_cookie_that_opens_the_account(shop: httpx.AsyncClient) -> None:
    assert (await shop.get("/account")).headers["location"] == "/login"
    assert (await shop.post("/login", data={"user": "demo", "password": "no"})).status_code == 401
    assert (await shop.post("/login", content=b"x" * 20_000)).status_code == 413
    answer = await shop.post("/login", data={"user": "demo", "password": "demo"})
    assert answer.status_code == 303
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "Signed in as demo" in (await shop.get("/account")).text


async def test_the_changing_price_changes(shop: httpx.AsyncClient) -> None:
    prices = {(await page(shop, "/changing")).css_first(".product .price").text() for _ in range(5)}
    assert len(prices) == 5


async def test_a_host_header_that_is_no_host_is_not_repeated(shop: httpx.AsyncClient) -> None:
    answer = await shop.get("/", headers={"Host": '"><script>'})
    assert "<script>" not in answer.text
    assert "http://localhost/" in answer.text


async def test_serve_tells_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: told.append(str(sockets[0].getsockname()[1])))
    await asyncio.to_thread(serve, "127.0.0.1", 0, told.append)
    assert told[0] == f"http://127.0.0.1:{told[1]}"


async def test_the_countys_search_wants_what_its_form_sets(shop: httpx.AsyncClient) -> None:
    assert (await shop.post("/county/search", data={"query": "PC-0001"})).status_code == 403
    form = await page(shop, "/county")
    hidden = form.css_first("input[name=form_id]").attributes["value"]
    assert (await shop.post("/county/search", data={"query": "PC-0001"})).status_code == 403
    answer = await shop.post("/county/search", data={"query": "PC-0005", "form_id": hidden})
    results = [node.text() for node in LexborHTMLParser(answer.text).css("a.result")]
    assert results == ["PC-0005", "PC-0005-A"]


async def test_every_parcel_is_found_by_following_next(shop: httpx.AsyncClient) -> None:
    hidden = (await page(shop, "/county")).css_first("input[name=form_id]").attributes["value"]
    answer = await shop.post("/county/search", data={"query": "<test", "form_id": hidden})
    assert LexborHTMLParser(answer.text).css_first(".hits").text() == "0"
    answer = await shop.post("/county/search", data={"query": "testville", "form_id": hidden})
    found: list[str] = []
    while True:
        tree = LexborHTMLParser(answer.text)
        found += [node.attributes["href"] or "" for node in tree.css("a.result")]
        following = tree.css_first("a[rel=next]")
        if following is None:
            break
        answer = await shop.get(following.attributes["href"] or "")
    assert len(found) == len(set(found)) == 43
    for link in found:
        assert (await page(shop, link)).css_first("a.taxes")


@pytest.mark.parametrize("path", ["/county/parcel/PC-9999", "/county/parcel/x/values", "/county/parcel/%2e%2e/taxes"])
async def test_a_parcel_that_is_not_there(shop: httpx.AsyncClient, path: str) -> None:
    assert (await shop.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/scripted", "/endless"])
async def test_what_a_script_fills_is_empty_without_one(shop: httpx.AsyncClient, path: str) -> None:
    tree = await page(shop, path)
    assert tree.css_first("ul.grid").text(strip=True) == ""
    assert "/api/products.json" in tree.css_first("main script").text()


async def test_the_check_is_a_block_until_its_cookie_is_set(shop: httpx.AsyncClient) -> None:
    refused = await shop.get("/challenge")
    assert refused.status_code == 403
    block = recognise(
        FetchResponse(
            url=f"{HOME}/challenge",
            status=403,
            headers=tuple(refused.headers.items()),
            body=refused.content,
            encoding="utf-8",
            elapsed_ms=1,
        )
    )
    assert block is not None
    assert block.kind == "challenge"
    shop.cookies.set("checked", "1764")
    assert len((await page(shop, "/challenge")).css(".product-card")) == 12


async def test_orders_are_for_those_who_logged_in(shop: httpx.AsyncClient) -> None:
    assert (await shop.get("/account/orders")).headers["location"] == "/login"
    await shop.post("/login", data={"user": "demo", "password": "demo"})
    found: list[str] = []
    link: str | None = "/account/orders"
    while link:
        tree = await page(shop, link)
        found += [node.text() for node in tree.css(".order .number")]
        following = tree.css_first("a[rel=next]")
        link = following.attributes["href"] if following else None
    assert found == [f"PO-{number}" for number in range(1001, 1015)]
    assert (await shop.get("/account/orders?page=9")).status_code == 404
