"""Data to a schema through the real programs: calls, scripts, jobs, commands, and the patterns that are learned."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import httpx
import pytest

from tests.integration.cli_stand import Stand
from tests.job_calls import Jobs
from tests.leaks import until
from tests.programs import Embedded, Yard
from tests.services.linked_site import LinkedSite, linked_site
from tests.services.made_shop import FIELDS, ShopModel, made_page
from tests.services.models import ModelServer

SCRIPT = """
async def run(ctx, url: str):
    page = await ctx.fetch(url)
    found = await ctx.extract(page, "title, price: number", ai={"provider": "none"}, fallback={"title": ".name"})
    return {"title": found["data"]["title"], "how": found["fields"]["title"]["how"]}
"""
PAGES = {f"/p/{number}": made_page(number) for number in range(12)}


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    shop = ShopModel()
    for page in PAGES.values():
        shop.add(page)
    with ModelServer(shop) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def site() -> Iterator[LinkedSite]:
    with linked_site({path: [] for path in PAGES}, {path: page.html.encode() for path, page in PAGES.items()}) as site:
        yield site


@pytest.fixture(scope="module")
def yard(nothing_left: None, model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    file = tmp_path_factory.mktemp("settings") / "scrapeyard.toml"
    file.write_text(f'[[ai.providers]]\nname = "main"\nurl = "{model.url}"\nmodel = "m1"\ninput_price = 1000.0\n')
    with Embedded({"SCRAPEYARD_CONFIG": str(file)}) as yard:
        yard.add_scraper("extract", SCRIPT)
        yield yard
        assert not list(yard.errors())


@pytest.fixture
def api(yard: Yard) -> Iterator[httpx.Client]:
    with yard.client() as api:
        yield api


@pytest.fixture(scope="module")
def learned(yard: Yard, site: LinkedSite) -> str:
    """The id of a pattern that three pages taught."""
    with yard.client() as api:
        for number in range(3):
            answer = api.post("/api/extract", json={"url": f"{site.url}/p/{number}", "fields": FIELDS})
            run = answer.raise_for_status().json()
            assert run["result"]["data"] == PAGES[f"/p/{number}"].truth
        assert run["result"]["pattern"]["status"] == "ready"
        return str(run["result"]["pattern"]["id"])


def test_a_call_is_answered_by_the_model_and_then_by_the_pattern(
    api: httpx.Client, site: LinkedSite, learned: str, model: ModelServer
) -> None:
    asked = len(model.asked)
    run = api.post("/api/extract", json={"url": f"{site.url}/p/5", "fields": FIELDS}).raise_for_status().json()
    assert run["result"]["data"] == PAGES["/p/5"].truth
    assert run["result"]["fields"]["price"]["how"] == "pattern"
    assert (run["usage"]["ai_calls"], len(model.asked)) == (0, asked)
    assert run["result"]["pattern"]["id"] == learned


def test_money_is_counted_and_bounded(api: httpx.Client, site: LinkedSite) -> None:
    call = {"url": f"{site.url}/p/1", "fields": {"maker": "text"}, "learn": False}
    refused = api.post("/api/extract", json={**call, "ai": {"budget": {"cost": 0}}}).raise_for_status().json()
    assert "budget" in refused["result"]["warnings"][0]
    run = api.post("/api/extract", json=call).raise_for_status().json()
    assert run["result"]["data"] == {"maker": PAGES["/p/1"].truth["maker"]}
    assert run["usage"]["ai_cost"] > 0
    rows = until(
        lambda: [
            row
            for row in api.get("/api/usage", params={"by": "scraper"}).json()["rows"]
            if row["scraper"] == "builtin/extract" and row["ai_tokens"]
        ],
        "the use of models is written",
    )
    assert rows[0]["ai_cost"] > 0


def test_a_script_extracts_from_a_page_that_it_has(api: httpx.Client, site: LinkedSite, learned: str) -> None:
    call = {"scraper": "lab/extract", "input": {"url": f"{site.url}/p/3"}}
    run = api.post("/api/scrape", json=call).raise_for_status().json()
    assert run["result"] == {"title": PAGES["/p/3"].truth["title"], "how": "fallback"}


def test_a_job_reads_many_pages_by_the_pattern(
    api: httpx.Client, site: LinkedSite, learned: str, model: ModelServer
) -> None:
    asked = len(model.asked)
    items = [{"item_id": path.rpartition("/")[2], "url": f"{site.url}{path}", "fields": FIELDS} for path in PAGES]
    jobs = Jobs(api)
    job_id = jobs.create(items, "builtin/extract")
    assert jobs.ended(job_id)["counts"]["success"] == len(PAGES)
    assert len(model.asked) == asked


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"fields": "title"}, "give url, urls or html"),
        ({"html": "<p>x</p>"}, "one of fields, schema and prompt"),
        ({"html": "<p>x</p>", "fields": "title", "schema": {}}, "one of fields, schema and prompt"),
        ({"html": "<p>x</p>", "fields": "title", "sure": 2}, "sure"),
        ({"html": "<p>x</p>", "fields": "price: money"}, "no type"),
    ],
)
def test_bad_calls_are_told(api: httpx.Client, call: dict[str, object], words: str) -> None:
    answer = api.post("/api/extract", json=call)
    assert not answer.is_success
    assert words in answer.text


def test_patterns_are_listed_edited_and_exported(
    api: httpx.Client, yard: Yard, site: LinkedSite, learned: str, tmp_path: Path
) -> None:
    stand, server = Stand(tmp_path), {"SCRAPEYARD_URL": str(api.base_url)}
    listed = stand.cli("patterns", "list", "--json", **server)
    assert listed.status == 0, listed.err
    assert learned in [each["id"] for each in listed.json]
    shown = stand.cli("patterns", "show", learned, "--rules", **server)
    (tmp_path / "rules.json").write_text(shown.out)
    edited = stand.cli("patterns", "edit", learned, "rules.json", **server)
    assert edited.status == 0, edited.err
    whole = api.get(f"/api/patterns/{learned}").json()
    assert whole["versions"][0]["origin"] == "edited"
    exported = stand.cli("patterns", "export", learned, "shop/learned", **server)
    assert exported.status == 0, exported.err
    ran = stand.cli("run", "shop/learned", f"url={site.url}/p/7", "--allow-private")
    assert ran.status == 0, ran.err
    assert ran.json["title"] == PAGES["/p/7"].truth["title"]


def test_the_command_extracts(api: httpx.Client, site: LinkedSite, learned: str, tmp_path: Path) -> None:
    stand, server = Stand(tmp_path), {"SCRAPEYARD_URL": str(api.base_url)}
    found = stand.cli("extract", f"{site.url}/p/9", "--fields", FIELDS, **server)
    assert found.status == 0, found.err
    assert found.json == PAGES["/p/9"].truth
    (tmp_path / "page.html").write_text(PAGES["/p/9"].html)
    told = stand.cli(
        "extract",
        "page.html",
        "--fields",
        "maker",
        "--provider",
        "none",
        "--fallback",
        "maker=.maker",
        "--json",
        **server,
    )
    assert told.status == 0, told.err
    assert json.loads(told.out)["fields"]["maker"]["how"] == "fallback"


def test_a_correction_teaches(api: httpx.Client, site: LinkedSite, tmp_path: Path) -> None:
    stand, server = Stand(tmp_path), {"SCRAPEYARD_URL": str(api.base_url)}
    wanted = ("--fields", "price: number, maker", "--provider", "none", "--json")
    for number in range(2):
        shown = PAGES[f"/p/{number}"].shown
        said = ("--correct", f"price={shown['price']}", "--correct", f"maker={shown['maker']}")
        asked = site.asked[f"/p/{number}"]
        found = stand.cli("extract", f"{site.url}/p/{number}", *wanted, *said, **server)
        assert found.status == 0, found.err
        assert (found.json["taught"], found.json["pattern"]["examples"]) == (1, number + 1)
        assert site.asked[f"/p/{number}"] <= asked + 1  # learned from the page that was fetched, not from another one
    found = stand.cli("extract", f"{site.url}/p/8", *wanted, **server)
    assert found.json["data"] == {name: PAGES["/p/8"].truth[name] for name in ("price", "maker")}
    refused = stand.cli("extract", f"{site.url}/p/8", *wanted, "--correct", "price", **server)
    assert "write FIELD=VALUE" in refused.err


def test_one_that_is_not_there_is_told(api: httpx.Client) -> None:
    missing = f"pattern_{'0' * 32}"
    assert api.get(f"/api/patterns/{missing}").status_code == 404
    assert api.put(f"/api/patterns/{missing}", json={"status": "stale"}).status_code == 404
