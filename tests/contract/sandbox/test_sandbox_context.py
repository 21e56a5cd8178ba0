"""What a script asks of its context besides pages, and what it is shown when it fails."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.model import ExitReason
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


STATE = """
from scrapeyard_sdk import StateError
{define} run(ctx, mode: str = ""):
    s = ctx.state
    if mode == "away": {wait}s.get("away")
    found = [{wait}s.get("n"), {wait}s.get("n", 7), {wait}s.update("n", None, 1), {wait}s.update("n", 5, 6)]
    {wait}s.set("list", [1, {{"a": "가"}}])
    found += [{wait}s.get("n"), {wait}s.get("list"), {wait}s.delete("n"), {wait}s.delete("n")]
    for key, value in (("bad key", 1), ("big", "x" * 70_000), ("odd", {{1}}), ("nan", float("nan"))):
        try:
            {wait}s.set(key, value)
        except StateError as error:
            found.append(str(error))
    return found
"""


@pytest.mark.parametrize(("define", "wait"), [("def", ""), ("async def", "await ")])
async def test_state_is_read_changed_and_compared(stand: Bench, define: str, wait: str) -> None:
    served = Served()
    source = STATE.format(define=define, wait=wait)
    found = result(await stand.run(source, served, limits=ROOMY))
    assert found[:8] == [None, 7, True, False, 1, [1, {"a": "가"}], True, False]
    assert ["is no key" in found[8], "70002 bytes" in found[9]] == [True, True]
    assert all("is not JSON" in each for each in found[10:])
    assert served.state == {"list": '[1,{"a":"가"}]'.encode()}
    verdict = await stand.run(source, served, limits=ROOMY, mode="away")
    assert verdict.exit_reason is ExitReason.INTERNAL_ERROR
    assert verdict.error is not None
    assert verdict.error.message == "the database is away"


async def test_a_child_that_invents_state_calls_is_refused(stand: Bench) -> None:
    source = """
def run(ctx):
    ask = lambda raw, **head: ctx._channel.wait_for(ctx._channel.ask({"t": "state", "key": "k", **head}, raw))[0]
    return [ask(b"{", action="set"), ask(b"[1]", action="update"), ask(b"[" + b"1" * 70000 + b",1]", action="update")]
"""
    served = Served()
    assert [each["t"] for each in result(await stand.run(source, served, limits=ROOMY))] == ["refused"] * 3
    assert served.state == {}


async def test_progress_is_told_a_few_times_and_always_at_the_end(stand: Bench) -> None:
    served = Served()
    source = """
async def run(ctx):
    for n in range(5000): ctx.progress(n + 1, 5000, f"page {n}")
    ctx.progress(float("nan"), None, 3)
    ctx.progress(5000, 5000, "done " + "x" * 1000)
"""
    assert result(await stand.run(source, served, limits=ROOMY)) is None
    assert (served.told[0].done, served.told[0].message) == (1, "page 0")
    assert (served.told[-1].done, served.told[-1].total, len(served.told[-1].message)) == (5000, 5000, 500)
    assert len(served.told) < 2500


@pytest.mark.parametrize(("define", "wait"), [("def", ""), ("async def", "await ")])
async def test_items_are_handed_to_the_job(stand: Bench, define: str, wait: str) -> None:
    served = Served()
    source = f"""
from scrapeyard_sdk import EnqueueError
{define} run(ctx):
    {wait}ctx.enqueue("https://x.example/1")
    {wait}ctx.enqueue({{"url": "https://x.example/2"}}, item_id="two")
    told = []
    for given in ("unfit", 3, {{"a": {{1}}}}, "x" * 300_000):
        try:
            {wait}ctx.enqueue(given)
        except EnqueueError as error:
            told.append(str(error)[:40])
    return told
"""
    told = result(await stand.run(source, served, limits=ROOMY))
    assert served.enqueued == [("https://x.example/1", ""), ({"url": "https://x.example/2"}, "two")]
    assert [each[:20] for each in told] == [
        "it does not fit",
        "enqueue takes a URL ",
        "the input is not JSO",
        "an input has at most",
    ]


async def test_a_script_that_cannot_be_loaded_names_the_authors_line(stand: Bench) -> None:
    for source, shown in {
        "def run(ctx):\n    return (": ['File "scraper.py", line 2', "return (", "SyntaxError"],
        "import json\njson.loads('{')": ['File "scraper.py", line 2, in <module>', "json.loads('{')"],
    }.items():
        verdict = await stand.run(source)
        assert verdict.error is not None
        assert all(each in verdict.error.traceback for each in shown), verdict.error.traceback
        assert "parent.py" not in verdict.error.traceback
