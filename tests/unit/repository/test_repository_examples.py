"""The example scrapers and the templates, on the practice shop: the scripts' own logic, without child or worker."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from scrapeyard.authoring.template import create
from scrapeyard.demo import create_app
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.loading import load_folder
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard_sdk import Fail, Page, Retry, Skip
from tests.leaks import PATIENCE

EXAMPLES = Path(__file__).parents[3] / "examples" / "scrapers" / "shop"
SHOP = "http://shop.test"


class ShopContext:
    """Fetches from the shop in this process; the pages are the SDK's own."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app=create_app()), follow_redirects=True)
        self.config: dict[str, Any] = {"batch": 2}
        self.lines: list[str] = []

    async def fetch(self, url: str) -> Page:
        answer = await self._client.get(url)
        return Page(
            url=str(answer.url),
            status=answer.status_code,
            headers=answer.headers.multi_items(),
            body=answer.content,
            encoding="utf-8",
            elapsed_ms=0.0,
            redirects=[],
        )

    def log(self, message: str, **_fields: Any) -> None:
        self.lines.append(message)

    def seconds_left(self) -> float:
        return 30.0

    async def close(self) -> None:
        await self._client.aclose()


class PlainShopContext(ShopContext):
    """For plain functions, which run in a thread here."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()

    def fetch_all(self, urls: Iterable[str]) -> list[Page]:
        return [asyncio.run_coroutine_threadsafe(self.fetch(url), self._loop).result(PATIENCE) for url in urls]


@pytest.fixture
async def ctx() -> AsyncIterator[ShopContext]:
    context = PlainShopContext()
    yield context
    await context.close()


def script(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{folder.name}", folder / "scraper.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(folder: Path, cache: Path, given: dict[str, Any], result: Any) -> None:
    scraper = load_folder(folder, cache, Limits())
    assert InputChecker().errors(scraper, given) == []
    assert InputChecker().output_errors(scraper, result) == []


async def test_product(ctx: ShopContext, tmp_path: Path) -> None:
    given = {"url": f"{SHOP}/product/17"}
    product = await script(EXAMPLES / "product").run(ctx, **given)
    assert (product["sku"], product["currency"]) == ("LIG-0017", "EUR")
    assert product["breadcrumbs"] == ["Home", "Lighting", product["title"]]
    check(EXAMPLES / "product", tmp_path, given, product)


@pytest.mark.parametrize(
    ("path", "verb"), [("/status/503", Retry), ("/product/999", Skip), ("/", Fail), ("/status/500", Fail)]
)
async def test_product_steers_by_verbs(ctx: ShopContext, path: str, verb: type[Exception]) -> None:
    with pytest.raises(verb):
        await script(EXAMPLES / "product").run(ctx, url=SHOP + path)


@pytest.mark.parametrize("given", [{}, {"url": 3}, {"url": "ftp://x.example/"}, {"url": f"{SHOP}/", "extra": 1}])
def test_product_refuses_bad_input(given: dict[str, Any], tmp_path: Path) -> None:
    assert InputChecker().errors(load_folder(EXAMPLES / "product", tmp_path, Limits()), given)


async def test_category(ctx: ShopContext, tmp_path: Path) -> None:
    given = {"url": f"{SHOP}/category/toys"}
    records = [record async for record in script(EXAMPLES / "category").run(ctx, **given)]
    assert len({record["url"] for record in records}) == len(records) == 40
    assert [records[0]["page"], records[-1]["page"]] == [1, 4]
    check(EXAMPLES / "category", tmp_path, given, records)


async def test_category_stops_where_it_is_told(ctx: ShopContext) -> None:
    found = [each async for each in script(EXAMPLES / "category").run(ctx, url=f"{SHOP}/category/toys", max_pages=2)]
    assert len(found) == 24
    assert ctx.lines == ["stopped before the last page"]


async def test_prices(ctx: ShopContext, tmp_path: Path) -> None:
    given = {"urls": [f"{SHOP}/product/{number}" for number in (1, 2, 3, 999)]}
    result = await asyncio.to_thread(script(EXAMPLES / "prices").run, ctx, **given)
    amounts = [each["amount"] for each in result["prices"]]
    assert amounts[3] is None
    assert result["cheapest"] == min(amounts[:3])
    check(EXAMPLES / "prices", tmp_path, given, result)


async def test_the_templates_work_as_they_are(ctx: ShopContext, tmp_path: Path) -> None:
    create(tmp_path / "one", "shop/one", "http")
    create(tmp_path / "many", "shop/many", "generator")
    assert (await script(tmp_path / "one").run(ctx, f"{SHOP}/product/1"))["title"] == "Aurora Lamp"
    assert len([each async for each in script(tmp_path / "many").run(ctx, f"{SHOP}/category/toys")]) == 40
