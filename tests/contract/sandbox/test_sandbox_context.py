"""What a script asks of its context besides pages, and what it is shown when it fails."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.engines.port import FetchRequest, FetchResponse
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, bench

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOMY = replace(SMALL, memory_mb=256)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand() -> AsyncIterator[Bench]:
    async with bench(CONFIGURATIONS[0]) as made:
        yield made


FORM = b"<form method=post action='/send'><input type=hidden name=t value=1><input name=q></form>"
SYNC = """
def run(ctx):
    page = ctx.fetch("https://x.example/start/")
    return [page.follow("next").url, page.forms()[0].submit({"q": "tea"}).url]
"""
ASYNC = """
async def run(ctx):
    page = (await ctx.fetch_all(["https://x.example/start/"]))[0]
    return [(await page.follow("next")).url, (await page.forms()[0].submit({"q": "tea"})).url]
"""


class Forms(Served):
    async def fetch(self, request: FetchRequest) -> FetchResponse:
        return replace(await super().fetch(request), body=FORM)


@pytest.mark.parametrize("run", [SYNC, ASYNC], ids=["sync", "async"])
async def test_links_and_forms_go_through_the_engine(stand: Bench, run: str) -> None:
    served = Forms()
    found = result(await stand.run(run, served, limits=ROOMY))
    assert found == ["https://x.example/start/next", "https://x.example/send"]
    last = served.asked[-1]
    assert (last.method, last.body) == ("POST", b"t=1&q=tea")


TRACED = """
import json
from scrapeyard_sdk import parse_html
def parse(text):
    return json.loads(text)
{define} run(ctx, how: str):
    if how == "selector": parse_html("<p>").css("li[")
    try:
        parse("{bad")
    except ValueError as error:
        if how == "chain": raise KeyError("price") from error
        raise
"""


@pytest.mark.parametrize("define", ["def", "async def"])
async def test_a_traceback_shows_the_authors_lines_and_none_of_ours(stand: Bench, define: str) -> None:
    source = TRACED.replace("{define}", define)
    for how, shown in {
        "plain": ['File "scraper.py", line 9, in run', 'parse("{bad")', "return json.loads(text)", "JSONDecodeError"],
        "selector": ['File "scraper.py", line 7, in run', '.css("li[")', "ValueError"],
        "chain": ["JSONDecodeError", "direct cause", 'raise KeyError("price") from error', "KeyError: 'price'"],
    }.items():
        verdict = await stand.run(source, limits=ROOMY, how=how)
        assert verdict.error is not None
        told = verdict.error.traceback
        assert all(each in told for each in shown), told
        assert not any(ours in told for ours in ("scrapeyard_sdk", "asyncio", str(stand.folder))), told
