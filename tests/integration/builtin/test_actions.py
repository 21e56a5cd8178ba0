"""`builtin/actions` in a real browser, on the practice shop."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvicorn

from scrapeyard.builtin.actions.interpreter import run_actions
from scrapeyard.demo import create_app
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.wiring.builtins import all_builtins
from tests.services.browser_contexts import LocalBrowser, local_browser
from tests.services.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
ACTIONS = all_builtins()["builtin/actions"].scraper
NEXT = "a[rel=next]"
ORDERS = {"do": "extract", "name": "orders", "selector": ".order", "fields": {"number": ".number"}, "append": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[LocalBrowser]:
    async with local_browser() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop() -> AsyncIterator[str]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(create_app(), port=port, log_level="warning", lifespan="off"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await serving


async def run(browser: LocalBrowser, given: dict[str, Any], fetch: Any = None) -> dict[str, Any]:
    assert InputChecker().errors(ACTIONS, given) == []
    result = await run_actions(browser.services(fetch), given)
    assert InputChecker().output_errors(ACTIONS, json.loads(json.dumps(result))) == []
    return result


async def failure(browser: LocalBrowser, given: dict[str, Any]) -> FetchFailed:
    with pytest.raises(FetchFailed) as failed:
        await run(browser, given)
    return failed.value


async def test_log_in_and_read_a_list_of_several_pages(browser: LocalBrowser, shop: str) -> None:
    result = await run(
        browser,
        {
            "url": f"{shop}/login",
            "variables": {"password": "demo"},
            "steps": [
                {"do": "fill", "selector": "[name=user]", "text": "demo"},
                {"do": "type", "selector": "[name=password]", "text": "{{password}}"},
                {"do": "press", "key": "Enter", "selector": "[name=password]"},
                {"do": "wait_for", "url": "**/account"},
                {"do": "extract", "name": "points", "selector": ".points"},
                {"do": "goto", "url": "/account/orders"},
                ORDERS,
                {
                    "do": "while",
                    "condition": {"element": NEXT},
                    "steps": [{"do": "click", "selector": NEXT}, ORDERS],
                },
            ],
        },
    )
    assert result["data"]["points"] == "Points: 1250"
    assert [each["number"] for each in result["data"]["orders"]] == [f"PO-{number}" for number in range(1001, 1015)]
    assert result["url"] == f"{shop}/account/orders?page=3"
    assert [step["path"] for step in result["steps"]][-4:] == [
        "steps[7].steps[0]",
        "steps[7].steps[1]",
        "steps[7].steps[0]",
        "steps[7].steps[1]",
    ]
    assert browser.told[-1] == "steps[7].steps[1] extract"


async def test_the_example_reads_all_orders(browser: LocalBrowser, shop: str) -> None:
    text = (Path(__file__).parents[3] / "examples" / "actions" / "orders.json").read_text("utf-8")
    result = await run(browser, json.loads(text.replace("http://127.0.0.1:8800", shop)))
    assert len(result["data"]["orders"]) == 14
    assert result["data"]["orders"][0] == {
        "number": "PO-1001",
        "title": "Birch Sconce",
        "total": "€132.77",
        "link": "/product/8",
    }


async def test_load_more_until_the_button_is_gone(browser: LocalBrowser, shop: str) -> None:
    cards = {"title": "h2", "price": ".price", "sku": "::attr(data-sku)"}
    steps: list[dict[str, Any]] = [
        {"do": "wait_for", "selector": ".product-card", "count": 12},
        {
            "do": "while",
            "condition": {"element": "#more"},
            "steps": [
                {"do": "click", "selector": "#more"},
                {"do": "wait_for", "response": "**/api/products.json?page=*", "name": "answer"},
                {"do": "set", "variables": {"page": "{{answer.page}}"}},
                {"do": "wait_for", "expression": "document.querySelectorAll('.product-card').length == 12 * {{page}}"},
            ],
        },
        {"do": "extract", "name": "products", "selector": ".product-card", "fields": cards},
        {"do": "evaluate", "name": "shown", "expression": "document.querySelectorAll('.product-card').length"},
    ]
    result = await run(browser, {"url": f"{shop}/scripted", "steps": steps})
    assert len(result["data"]["products"]) == result["data"]["shown"] == 60
    assert result["data"]["products"][59]["sku"] == "KIT-0060"
    assert result["data"]["answer"]["page"] == 5


async def test_an_endless_list_and_a_check_that_a_script_passes(browser: LocalBrowser, shop: str) -> None:
    scroll = {"do": "scroll", "to": "bottom", "rounds": 50}
    titles = {"do": "extract", "name": "titles", "selector": ".product-card h2", "many": True}
    endless = await run(browser, {"url": f"{shop}/endless", "steps": [scroll, titles]})
    assert len(endless["data"]["titles"]) == 60
    wait = {"do": "wait_for", "text": "Behind the check"}
    behind = await run(browser, {"url": f"{shop}/challenge", "steps": [wait, titles]})
    assert len(behind["data"]["titles"]) == 12


async def test_conditions_and_loops(browser: LocalBrowser, shop: str) -> None:
    def noted(condition: dict[str, Any], name: str) -> dict[str, Any]:
        yes, no = ({"do": "evaluate", "expression": word, "name": name} for word in ("'yes'", "'no'"))
        return {"do": "if", "condition": condition, "then": [yes], "else": [no]}

    link = {"do": "extract", "name": "links", "selector": "{{card}}", "what": "@href", "append": True}
    result = await run(
        browser,
        {
            "url": f"{shop}/",
            "variables": {"words": ["lamp", "kite"], "n": "3"},
            "steps": [
                noted({"element": ".category-card"}, "element"),
                noted({"element": ".nothing", "not": True}, "no_element"),
                noted({"text": "Things worth keeping"}, "text"),
                noted({"url": "**/category/*"}, "url"),
                noted({"variable": "n", "is": "<", "value": 10}, "variable"),
                noted({"expression": "document.title.startsWith('Home')"}, "expression"),
                {"do": "for_each", "selector": ".category-card", "as": "card", "limit": 2, "steps": [link]},
                {
                    "do": "for_each",
                    "items": "{{words}}",
                    "as": "word",
                    "steps": [
                        {"do": "goto", "url": "/search?q={{word}}"},
                        {"do": "extract", "name": "hits", "selector": ".hits", "append": True},
                    ],
                },
                {"do": "back"},
                {"do": "forward"},
                {"do": "reload"},
            ],
        },
    )
    found = result["data"]
    assert [found[name] for name in ("element", "no_element", "text", "url", "variable", "expression")] == [
        "yes", "yes", "yes", "no", "yes", "yes",
    ]  # fmt: skip
    assert found["links"] == ["/category/lighting", "/category/kitchen"]
    assert found["hits"] == ["8", "8"]
    assert result["url"].endswith("/search?q=kite")


FORM = """data:text/html,<form><input type=file id=f multiple><input type=checkbox id=c checked><select id=s>
<option value=1>One<option value=2>Two</select><p id=h onmouseover="this.title = 'over'">x</p></form>
<a id=d download="list.csv" href="data:text/csv,a,b">get</a>
<button id=o onclick="window.open('about:blank')">open</button>"""


async def test_forms_files_pictures_and_tabs(browser: LocalBrowser) -> None:
    async def fetch(request: FetchRequest) -> FetchResponse:
        return FetchResponse(url=request.url, status=200, headers=(), body=b"far", encoding="utf-8", elapsed_ms=1)

    names = "Promise.all([...document.querySelector('#f').files].map(async f => f.name + '=' + await f.text()))"
    near = {"name": "near.txt", "base64": base64.b64encode(b"near").decode()}
    browser.files.clear()
    result = await run(
        browser,
        {
            "url": FORM,
            "steps": [
                {"do": "upload", "selector": "#f", "files": [near, {"name": "far.txt", "url": "https://x.example/f"}]},
                {"do": "evaluate", "name": "files", "expression": names},
                {"do": "uncheck", "selector": "#c"},
                {"do": "select", "selector": "#s", "values": ["Two"]},
                {"do": "hover", "selector": "#h"},
                {"do": "extract", "name": "checked", "selector": "#c", "what": "checked"},
                {"do": "extract", "name": "value", "selector": "#s", "what": "value"},
                {"do": "extract", "name": "title", "selector": "#h", "what": "@title"},
                {"do": "extract", "name": "nothing", "selector": ".none"},
                {"do": "download", "selector": "#d", "name": "file"},
                {"do": "screenshot", "file": "page.jpg", "format": "jpeg", "full_page": True},
                {"do": "pdf"},
                {"do": "click", "selector": "#o"},
                {"do": "switch_tab"},
                {"do": "evaluate", "name": "tab", "expression": "location.href"},
                {"do": "close_tab"},
                {"do": "check", "selector": "#c"},
            ],
        },
        fetch,
    )
    assert result["data"] == {
        "files": ["near.txt=near", "far.txt=far"],
        "checked": False,
        "value": "2",
        "title": "over",
        "nothing": None,
        "file": {"name": "list.csv", "url": "data:text/csv,a,b", "size": 3, "artifact": "list.csv"},
        "tab": "about:blank",
    }
    assert browser.files["list.csv"] == b"a,b"
    assert browser.files["page.jpg"].startswith(b"\xff\xd8")
    assert browser.files["page.pdf"].startswith(b"%PDF")


async def test_a_failing_step_is_named_and_shown_without_what_was_typed(browser: LocalBrowser, shop: str) -> None:
    browser.files.clear()
    error = await failure(
        browser,
        {
            "url": f"{shop}/login",
            "variables": {"password": "very-secret"},
            "steps": [
                {"do": "extract", "name": "title", "selector": "h1"},
                {"do": "fill", "selector": "[name=password]", "text": "{{password}}"},
                {
                    "do": "if",
                    "condition": {"element": "[name=user]"},
                    "then": [{"do": "evaluate", "expression": "nothing.at.all('very-secret')"}],
                },
            ],
        },
    )
    assert error.reason == "browser_step"
    assert error.message.startswith("steps[2].then[0] (evaluate): ")
    assert error.details["step"] == "steps[2].then[0]"
    assert [step["ok"] for step in error.details["steps"]] == [True, True, True, False, False]
    assert "very-secret" not in error.message + json.dumps(error.details)
    assert browser.files["failure.png"].startswith(b"\x89PNG")
    assert b"<form" in browser.files["failure.html"]
    assert json.loads(browser.files["data.json"]) == {"title": "Log in"}


async def test_an_optional_step_may_fail(browser: LocalBrowser, shop: str) -> None:
    steps = [
        {"do": "click", "selector": "#cookies", "optional": True, "timeout": 0.5},
        {"do": "solve_captcha", "optional": True},
        {"do": "extract", "name": "title", "selector": "h1", "required": True},
    ]
    result = await run(browser, {"url": f"{shop}/product/1", "steps": steps, "screenshots": "each"})
    assert [step["ok"] for step in result["steps"]] == [True, False, False, True]
    assert "captchas are not solved here" in result["steps"][2]["error"]
    assert result["data"] == {"title": "Aurora Lamp"}
    assert browser.files[result["steps"][3]["screenshot"]].startswith(b"\xff\xd8")


async def test_a_loop_without_an_end_is_ended(browser: LocalBrowser) -> None:
    again = {
        "do": "while",
        "condition": {"variable": "x"},
        "limit": 10000,
        "steps": [{"do": "set", "variables": {"x": 1}}],
    }
    optional = {**again, "optional": True, "steps": [{**again, "optional": True}]}
    error = await failure(browser, {"steps": [optional], "variables": {"x": 1}})
    assert "more than 10000 steps" in error.message
    assert len(error.details["steps"]) == 50
