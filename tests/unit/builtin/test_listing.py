"""`builtin/list` over the pages of the practice shop."""

from typing import Any

from scrapeyard.builtin.listing import MAX_PAGES
from scrapeyard.builtin.services import Services
from scrapeyard.demo.goods import CATEGORIES, make_products
from scrapeyard.demo.pages import build
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.repository.manifest.json_schemas import InputChecker
from tests.page_builtins import BUILTINS

SHOP = "https://shop.example"
LIST = BUILTINS["builtin/list"]
PRODUCTS = make_products()
SHELF = [product for product in PRODUCTS if product.category is CATEGORIES[0]]
START = f"{SHOP}/category/{CATEGORIES[0].slug}"


class _Shop:
    def __init__(self, **answers: int) -> None:
        self._pages = build(PRODUCTS)
        self._answers = answers
        self.asked: list[FetchRequest] = []

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        self.asked.append(request)
        page = f"page{request.url.partition('page=')[2] or 1}"
        if self._answers.get(page) == 0:
            raise FetchFailed(ExitReason.FETCH_TIMEOUT, "the site did not answer")
        kind, body = self._pages[request.url.removeprefix(SHOP)]
        status = self._answers.get(page, 200)
        return FetchResponse(
            url=request.url,
            status=status,
            headers=(("content-type", kind),),
            body=body,
            encoding="utf-8",
            elapsed_ms=1.0,
        )

    async def listed(self, **given: Any) -> dict[str, Any]:
        asked = {"url": START, **given}
        assert not InputChecker().errors(LIST.scraper, asked)
        return await LIST.run(Services(fetch=self.fetch), asked)


async def test_all_products_of_a_category() -> None:
    found = await _Shop().listed(pages=MAX_PAGES)
    assert [record["title"] for record in found["records"]] == [product.title for product in SHELF]
    assert [record["url"] for record in found["records"]] == [f"{SHOP}/product/{product.number}" for product in SHELF]
    assert (found["complete"], found["next_page"], found["warnings"]) == (True, None, [])
    assert sum(page["records"] for page in found["pages"]) == len(SHELF)


async def test_it_stops_at_its_limits_and_says_where_the_list_goes_on() -> None:
    shop = _Shop()
    found = await shop.listed(pages=2, headers={"X-Lab": "1"})
    assert (found["next_page"], found["complete"], len(found["pages"])) == (f"{START}?page=3", False, 2)
    assert all(request.headers == {"X-Lab": "1"} for request in shop.asked)
    few = await shop.listed(limit=3)
    assert (len(few["records"]), few["complete"], few["next_page"]) == (3, False, START)


async def test_a_later_page_that_fails_costs_nothing_before_it() -> None:
    for answer, words in ((500, "answers 500"), (0, "did not answer")):
        found = await _Shop(page2=answer).listed()
        assert found["records"]
        assert (found["complete"], found["next_page"]) == (False, f"{START}?page=2")
        assert words in found["warnings"][0]


async def test_a_list_that_leads_back_ends() -> None:
    body = "".join(f"<div class=card><h3><a href=/p/{n}>Thing {n}</a></h3><p>{n} of many</p></div>" for n in range(5))

    async def fetch(request: FetchRequest) -> FetchResponse:
        number = int(request.url.partition("page=")[2] or 1)
        html = f"<main>{body}<a rel=next href='/list?page={number + 1}'>Next</a></main>".encode()
        return FetchResponse(
            url=request.url,
            status=200,
            headers=(("content-type", "text/html"),),
            body=html,
            encoding="utf-8",
            elapsed_ms=1.0,
        )

    found = await LIST.run(Services(fetch=fetch), {"url": f"{SHOP}/list"})
    assert (len(found["records"]), len(found["pages"]), found["next_page"]) == (5, 2, None)
    assert "no new records" in found["warnings"][0]


def test_what_is_asked_is_bounded() -> None:
    for bad in ({"pages": 0}, {"pages": MAX_PAGES + 1}, {"limit": 10**9}, {"depth": 1}):
        assert InputChecker().errors(LIST.scraper, {"url": START, **bad})
