"""`builtin/extract` from page to data: the steps of the ladder, what they teach, and what is not believed."""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.builtin.extraction.book import CHECKED_ON
from scrapeyard.builtin.extraction.reduced import is_order
from scrapeyard.builtin.pages import bounds
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import BudgetLimits, ExitReason
from tests.services.ladders import LadderStand, open_ladder
from tests.services.made_shop import FIELDS, MadePage, ShopModel, made_page
from tests.services.models import ModelServer, model_server

__all__ = ["model_server"]
ORDERS = (Path(__file__).parents[2] / "data" / "orders.txt").read_text("utf-8").splitlines()


@pytest.fixture
def shop(model_server: ModelServer) -> ShopModel:
    model_server.script = made = ShopModel()
    return made


@pytest.fixture
async def ladder(model_server: ModelServer, tmp_path: Path) -> AsyncIterator[LadderStand]:
    async with open_ladder(tmp_path, model_server.url) as made:
        yield made


async def test_after_two_pages_no_model_is_needed_and_a_new_template_is_learned(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer
) -> None:
    right = total = 0
    ladder.budget(BudgetLimits(ai_tokens=20_000))
    for number in range(120):
        page = shop.add(made_page(number, "old" if number < 60 else "new"))
        found = await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
        right += sum(found["data"][name] == value for name, value in page.truth.items())
        total += len(page.truth)
    assert right / total >= 0.97, f"{right} of {total}"
    assert len(model_server.asked) <= 5
    assert 0 < ladder.caller.ledger.spent.ai_tokens <= 20_000
    await ladder.book.stop()
    patterns = await ladder.store.patterns.listed(site="made.example")
    assert [each.status for each in patterns] == ["ready", "ready"]
    assert patterns[0].health.filled["title"] == patterns[0].health.pages == 60 - 2 - CHECKED_ON
    versions = await ladder.store.patterns.versions(patterns[0].id)
    assert [each.origin for each in versions] == ["learned"] * len(versions) != []


SURE_FIELDS = "title, price: number, maker, in_stock: bool"


async def test_a_field_that_the_first_pages_lack_is_found_later(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer
) -> None:
    pages = [shop.add(made_page(number)) for number in range(60)]
    without = [page for page in pages if page.truth["weight"] is None][:2]
    rest = [page for page in pages if page.truth["weight"] is not None][:12]
    for page in (*without, *rest):
        found = await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
        assert found["data"] == page.truth
    assert len(model_server.asked) <= 4


def changed(number: int) -> MadePage:
    """The page after the shop changed: the maker stands at the end, and the ways of shipping where it stood."""
    page = made_page(number)
    maker = f'<b class="maker">{page.shown["maker"]}</b>'
    shipped = f'<b class="maker">Ships within {number % 3 + 2} days by post</b>'
    html = page.html.replace(maker, shipped).replace("</main>", f"<p>Made by <u>{page.shown['maker']}</u></p></main>")
    return replace(page, html=html, url=page.url + "?new")


async def read_shop(ladder: LadderStand, pages: Iterable[MadePage], every: int = 4) -> float:
    """Extract them, and look for drift now and then. The share of right values."""
    right = total = 0
    for number, page in enumerate(pages, 1):
        found = await ladder.extract(html=page.html, url=page.url, fields=SURE_FIELDS)
        right += sum(value == page.truth[name] for name, value in found["data"].items())
        total += len(found["data"])
        if number % every == 0:
            await ladder.drift.flush()
    return right / total


async def test_a_pattern_that_drifts_is_learned_anew(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer
) -> None:
    ladder.budget(BudgetLimits(ai_tokens=20_000))
    assert await read_shop(ladder, [shop.add(made_page(number)) for number in range(72)]) == 1
    (before,) = await ladder.store.patterns.listed()
    assert await read_shop(ladder, [shop.add(changed(number)) for number in range(100, 104)]) < 0.9
    assert len(model_server.asked) == 2, "the pattern is sure of what it reads"
    await read_shop(ladder, [shop.add(changed(number)) for number in range(104, 120)])
    (after,) = await ladder.store.patterns.listed()
    assert (before.status, after.status) == ("ready", "ready")
    assert after.version > before.version, "noticed and learned anew within 20 pages"
    assert await read_shop(ladder, [shop.add(changed(number)) for number in range(130, 150)]) == 1
    assert len(model_server.asked) <= 6


async def test_drift_without_a_budget_falls_back(ladder: LadderStand, shop: ShopModel) -> None:
    await read_shop(ladder, [shop.add(made_page(number)) for number in range(72)])
    ladder.budget(BudgetLimits(ai_tokens=0))
    await read_shop(ladder, [shop.add(changed(number)) for number in range(100, 120)])
    (stale,) = await ladder.store.patterns.listed()
    assert stale.status == "stale"
    page = shop.add(changed(130))
    found = await ladder.extract(html=page.html, url=page.url, fields=SURE_FIELDS, fallback={"maker": "main u"})
    assert (found["data"]["maker"], found["fields"]["maker"]["how"]) == (page.truth["maker"], "fallback")
    assert "budget" in found["warnings"][0]


async def test_each_field_tells_how_sure_it_is_and_where_it_stands(ladder: LadderStand, shop: ShopModel) -> None:
    page = shop.add(made_page(1))
    found = await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
    price = found["fields"]["price"]
    assert (price["value"], price["how"]) == (page.truth["price"], "model")
    assert price["evidence"]["text"] == page.shown["price"]
    assert price["evidence"]["selector"].startswith("/")
    assert 0.85 <= price["confidence"] < 1
    assert found["model"]["calls"] == 1
    assert found["pattern"]["status"] == "learning"


async def test_what_the_page_states_for_machines_needs_no_model(ladder: LadderStand, model_server: ModelServer) -> None:
    html = """<html><body><h1>Blue lamp</h1><script type="application/ld+json">{"@type": "Product", "name": "Blue lamp",
    "brand": {"name": "Norholm"}, "offers": {"@type": "Offer", "price": "12.50", "priceCurrency": "EUR",
    "availability": "https://schema.org/InStock"}}</script></body></html>"""
    found = await ladder.extract(
        html=html, url="http://a.example/", fields="name, price: number, brand, in_stock: bool"
    )
    assert found["data"] == {"name": "Blue lamp", "price": 12.5, "brand": "Norholm", "in_stock": True}
    assert {each["how"] for each in found["fields"].values()} == {"structured"}
    assert model_server.asked == []


async def test_inventions_are_flagged_or_refused(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer
) -> None:
    model_server.invents = 0.2
    told = 0
    for number in range(60):
        page = shop.add(made_page(number))
        given = {"html": page.html, "url": page.url, "fields": FIELDS, "learn": False}
        found = await ladder.extract(**given)
        refused = await ladder.extract(**given, invented="refuse")
        told += sum("does not stand in the page" in each for each in found["warnings"])
        for name, answer in found["fields"].items():
            is_invented = str(answer["value"]) in model_server.invented
            if is_invented or "not_in_page" in answer["flags"]:
                assert answer["confidence"] < 0.3
                assert "not_in_page" in answer["flags"]
                assert found["data"][name] is None
                assert refused["fields"][name]["value"] is None
    assert len(model_server.invented) > 30
    assert told >= 0.99 * len(model_server.invented)


async def test_orders_in_pages_change_no_answer(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer
) -> None:
    assert len(ORDERS) == 30
    model_server.obeys = True
    for number, order in enumerate(ORDERS):
        page = shop.add(made_page(number, extra=f'<p class="note">{order}</p>'))
        found = await ladder.extract(html=page.html, url=page.url, fields=FIELDS, learn=False)
        assert found["data"] == page.truth, order
    assert all("tools" not in each for each in model_server.asked), "a model has no tools"


@pytest.mark.parametrize("text", ["Ships in two days", "Model: X-200", "Use with the AI camera", "Answer key included"])
def test_plain_text_is_no_order(text: str) -> None:
    assert not is_order(text)


@pytest.mark.parametrize(
    "style",
    ["display:none", "visibility: hidden", "font-size:0", "opacity: 0", "position:absolute;left:-9999px"],
)
async def test_hidden_text_is_not_shown_to_models(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer, style: str
) -> None:
    page = shop.add(made_page(1, extra=f'<p style="{style}">Secret words</p>'))
    await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
    assert "Secret words" not in model_server.asked[0]["messages"][1]["content"]


async def test_a_page_that_is_cut_is_told(
    ladder: LadderStand, shop: ShopModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shop.add(made_page(1))
    monkeypatch.setattr(bounds, "MAX_HTML", len(page.html) // 2)
    monkeypatch.setattr(bounds, "is_light", lambda _: False)
    example = {"html": page.html, "url": page.url, "values": {"title": page.shown["title"]}}
    found = await ladder.extract(html=page.html, url=page.url, fields="title, weight", examples=[example])
    cut = f"the page is read up to character {len(page.html) // 2:,} of {len(page.html):,}"
    assert [each for each in found["warnings"] if "up to character" in each] == [f"example 1: {cut}", cut]


async def test_a_page_that_is_too_long_for_the_model_is_told(
    ladder: LadderStand, shop: ShopModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shop.add(made_page(1, extra="".join(f"<p>{'long ' * 70}{number}</p>" for number in range(20))))
    monkeypatch.setattr(ladder.models, "room", lambda *_: 3000)
    found = await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
    assert len([each for each in found["warnings"] if "too long for the model" in each]) == 1
    monkeypatch.setattr(ladder.models, "room", lambda *_: 30_000)
    whole = await ladder.extract(html=page.html, url=page.url, fields="maker", learn=False)
    assert whole["warnings"] == []


async def test_selectors_are_the_last_step(tmp_path: Path) -> None:
    async with open_ladder(tmp_path) as without_model:
        page = made_page(1)
        fallback = {"maker": ".maker", "weight": "//th[.='Weight']/following-sibling::td"}
        found = await without_model.extract(html=page.html, url=page.url, fields="maker, weight", fallback=fallback)
        assert found["data"] == {"maker": page.truth["maker"], "weight": page.truth["weight"]}
        assert {each["how"] for each in found["fields"].values()} == {"fallback"}


async def test_a_budget_that_is_used_up_fails_nothing(ladder: LadderStand, model_server: ModelServer) -> None:
    ladder.budget(BudgetLimits(ai_tokens=0))
    page = made_page(1)
    found = await ladder.extract(html=page.html, url=page.url, fields="maker", fallback={"maker": ".maker"})
    assert found["data"] == {"maker": page.truth["maker"]}
    assert "budget" in found["warnings"][0]
    assert model_server.asked == []


async def test_data_that_do_not_fit_the_schema_fail(ladder: LadderStand, shop: ShopModel) -> None:
    schema = {
        "type": "object",
        "properties": {"maker": {"type": "string"}, "colour": {"type": "string"}},
        "required": ["maker", "colour"],
    }
    page = shop.add(made_page(1))
    with pytest.raises(FetchFailed, match="colour") as failed:
        await ladder.extract(html=page.html, url=page.url, schema=schema)
    assert failed.value.reason is ExitReason.BAD_RESULT


async def test_a_model_that_is_away_is_tried_again_later(ladder: LadderStand, model_server: ModelServer) -> None:
    model_server.statuses, model_server.retry_after = [429] * 9, "60"
    schema = {"type": "object", "properties": {"maker": {"type": "string"}}, "required": ["maker"]}
    with pytest.raises(FetchFailed) as failed:
        await ladder.extract(html=made_page(1).html, schema=schema)
    assert failed.value.reason is ExitReason.AI_UNAVAILABLE
    assert failed.value.details["retry_after"] == 60


async def test_nested_schemas_and_lists(ladder: LadderStand, model_server: ModelServer) -> None:
    model_server.script = lambda _: {"shop.name": "Made", "tags": ["oak", "blue"]}
    schema = {
        "type": "object",
        "properties": {
            "shop": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["shop", "tags"],
    }
    html = "<html><body><p>Made</p><ul><li>oak</li><li>blue</li></ul></body></html>"
    found = await ladder.extract(html=html, schema=schema)
    assert found["data"] == {"shop": {"name": "Made"}, "tags": ["oak", "blue"]}


async def test_a_sentence_becomes_fields(ladder: LadderStand, shop: ShopModel, model_server: ModelServer) -> None:
    page = shop.add(made_page(1))
    found = await ladder.extract(html=page.html, url=page.url, prompt="maker title weight")
    assert found["data"] == {name: page.truth[name] for name in ("maker", "title", "weight")}
    assert page.html not in model_server.asked[0]["messages"][1]["content"]
    with pytest.raises(FetchFailed, match="no model") as failed:
        await ladder.extract(html=page.html, prompt="maker", ai={"provider": "none"})
    assert failed.value.reason is ExitReason.BAD_INPUT, "the call cannot be had here, whatever the page says"


async def test_a_persons_examples_teach(tmp_path: Path) -> None:
    async with open_ladder(tmp_path) as ladder:
        examples = [
            {"html": page.html, "url": page.url, "values": {"maker": page.shown["maker"], "title": page.shown["title"]}}
            for page in (made_page(1), made_page(2), made_page(3))
        ]
        page = made_page(9)
        found = await ladder.extract(html=page.html, url=page.url, fields="title, maker", examples=examples)
        assert found["data"] == {"title": page.truth["title"], "maker": page.truth["maker"]}
        assert found["fields"]["maker"]["how"] == "pattern"
        assert found["pattern"]["status"] == "ready"


def stated(number: int, *, told: bool = True) -> str:
    """A made page that also states its data for machines."""
    page = made_page(number)
    product = {"@type": "Product", "name": page.truth["title"], "brand": page.truth["maker"], "gtin13": "4006381333931"}
    offer = {"@type": "Offer", "price": page.truth["price"], "priceCurrency": "USD"}
    script = f'<script type="application/ld+json">{json.dumps(product | {"offers": offer})}</script>'
    return page.html.replace("</head>", f"{script}</head>" if told else "</head>")


async def test_structured_data_teach(ladder: LadderStand, model_server: ModelServer) -> None:
    wanted = "title, price: number, brand, gtin?"
    for number in range(4):
        found = await ladder.extract(html=stated(number), url=made_page(number).url, fields=wanted)
        assert found["data"]["gtin"] == "4006381333931", "what only scripts have is read as before"
        kept = await ladder.store.patterns.listed()
        assert [each.taught for each in kept] == [[], [2], [3], [3]][number], "one page alone is not stored"
    page = made_page(9)
    found = await ladder.extract(html=stated(9, told=False), url=page.url, fields=wanted)
    assert found["data"] == {
        "title": page.truth["title"],
        "price": page.truth["price"],
        "brand": page.truth["maker"],
        "gtin": None,
    }
    assert {found["fields"][name]["how"] for name in ("title", "price", "brand")} == {"pattern"}
    assert model_server.asked == []


async def test_a_new_pattern_is_checked_on_pages_without_answers(ladder: LadderStand, shop: ShopModel) -> None:
    for number in range(12):
        page = shop.add(made_page(number))
        found = await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
        assert found["data"] == page.truth
        (kept,) = await ladder.store.patterns.listed()
        assert kept.checked == (CHECKED_ON if number >= CHECKED_ON + 1 else 0)
    whole = await ladder.store.patterns.get(kept.id)
    assert whole is not None
    assert len(whole.examples) == 2


async def test_a_correction_stays(ladder: LadderStand, shop: ShopModel, model_server: ModelServer) -> None:
    pages = [shop.add(made_page(number)) for number in range(8)]
    wrong = {page.shown["title"]: {**page.shown, "maker": "Denmark"} for page in pages}
    right = model_server.script
    model_server.script = lambda lines: wrong.get(right(lines).get("title"), {})
    for page in pages[:3]:
        found = await ladder.extract(html=page.html, url=page.url, fields="title, maker")
    assert found["data"]["maker"] == "Denmark"
    examples = [{"html": each.html, "url": each.url, "values": {"maker": each.shown["maker"]}} for each in pages[:3]]
    await ladder.extract(html=pages[4].html, url=pages[4].url, fields="title, maker", examples=examples)
    for page in pages:
        found = await ladder.extract(html=page.html, url=page.url, fields="title, maker")
        assert found["data"] == {"title": page.truth["title"], "maker": page.truth["maker"]}
    (kept,) = await ladder.store.patterns.listed()
    whole = await ladder.store.patterns.get(kept.id)
    assert whole is not None
    assert [each.values["maker"] for each in whole.examples if each.by == "person"] == [
        each.shown["maker"] for each in pages[:3]
    ]


async def test_clients_do_not_share_what_they_learn(
    ladder: LadderStand, shop: ShopModel, model_server: ModelServer
) -> None:
    for number in range(4):
        page = shop.add(made_page(number))
        await ladder.extract("ann", html=page.html, url=page.url, fields=FIELDS)
    asked = len(model_server.asked)
    page = shop.add(made_page(50))
    await ladder.extract("bob", html=page.html, url=page.url, fields=FIELDS)
    assert (asked, len(model_server.asked)) == (2, 3)


async def test_samples_that_disagree_are_less_sure(ladder: LadderStand, model_server: ModelServer) -> None:
    answers = iter(["Norholm", "Norholm", "Casa Lume"])
    model_server.script = lambda _: {"maker": next(answers)}
    html = "<html><body><p>by Norholm</p><p>Casa Lume</p></body></html>"
    found = await ladder.extract(html=html, fields="maker", ai={"samples": 3})
    assert found["data"]["maker"] == "Norholm"
    assert 0.5 < found["fields"]["maker"]["confidence"] < 0.7


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fields": "title, title"}, "each once"),
        ({"fields": "price: money"}, "no type"),
        ({"fields": "1st"}, "not a field"),
        ({"schema": {"type": "object", "properties": {}}}, "1 to 50"),
        ({"schema": {"type": "object", "properties": {"a": {"$ref": "#/x"}}}}, r"\$ref"),
        ({"schema": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}}}, "list"),
        ({"fields": "title", "fallback": {"price": "p"}}, "not wanted"),
    ],
)
async def test_bad_calls_are_told(ladder: LadderStand, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        await ladder.extract(html="<p>x</p>", **given)
