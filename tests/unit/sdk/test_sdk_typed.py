"""The types that a script sees: `mypy --strict` takes a script that uses them, and finds one that misuses them."""

from pathlib import Path

import pytest

SCRIPT = """
from scrapeyard_sdk import Context, Page, Retry, SyncContext
from scrapeyard_sdk.extract import parse_date, parse_number, parse_price


async def run(ctx: Context, url: str) -> dict[str, object]:
    page = await ctx.fetch(url, timeout=5)
    if page.status == 503:
        raise Retry("busy", after=30)
    names: list[str] = page.css("h1::text").getall()
    first: str | None = page.css("a").get()
    for row in page.css("tr"):
        parent = row.parent
        print(row["class"], parent.tag if parent else "", row.number())
    records = [record for table in page.tables() for record in table.records]
    result: Page = await page.follow(page.css("a")[0])
    found: Page = await page.forms()[0].submit({"q": "x"})
    await ctx.artifact("page.html", result.body)
    async with ctx.browser(device="iPhone 15", block=["image"]) as tab:
        status: int = (await tab.goto(url, wait_until="load")).status
        seen: str | None = await tab.frame("iframe").text("h1")
        data = [answer.json() for answer in await tab.responses("*/api/*")]
        other = await tab.new_tab()
        picture: bytes = await other.screenshot(save_as="page.png")
        print(status, seen, data, len(picture), (await tab.page()).title)
    return {"title": page.title, "names": names, "first": first, "records": records, "more": found.url}


def plain(ctx: SyncContext, text: str) -> object:
    page: Page = ctx.fetch(text)
    amount = parse_price(page.text("p")).amount
    with ctx.browser() as tab:
        status: int = tab.goto(text).status
        names: list[str] = [tab.title(), *tab.select_option("select", "x")]
        print(status, names, tab.wait_for_tab().url())
    return [amount, parse_number(text), parse_date(text), page.json("a.b[0]")]
"""


def _checked(tmp_path: Path, source: str) -> str:
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "scraper.py"
    script.write_text(source)
    told, errors, _ = api.run(["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(script)])
    return str(told) + str(errors)


def test_a_typed_script_passes_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    assert "Success" in _checked(tmp_path, SCRIPT)
    wrong = SCRIPT.replace("names: list[str]", "names: list[int]").replace("timeout=5", "timout=5")
    told = _checked(tmp_path, wrong)
    assert 'Unexpected keyword argument "timout"' in told
    wrong = SCRIPT.replace("status: int = tab.goto(text).status", "status: int = tab.goto(text, wait_til=1).status")
    assert 'Unexpected keyword argument "wait_til"' in _checked(tmp_path, wrong)
    wrong = SCRIPT.replace("bytes = await other.", "bytes = other.")
    assert "Incompatible types in assignment" in _checked(tmp_path, wrong)
    assert "incompatible type" in told or "Incompatible types" in told
