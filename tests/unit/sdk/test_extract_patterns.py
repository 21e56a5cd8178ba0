"""Learned patterns: two or three answered pages of a template, and the rest of its pages are read right."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard_sdk.extract.patterns import Example, Pattern, PatternField, PatternInvalid, PatternRule, learn
from scrapeyard_sdk.extract.patterns.tree import PageTree

NAMES = (
    "Aurora Lamp",
    "Birch Desk",
    "Cedar Chair",
    "Dune Rug",
    "Ember Stove",
    "Fjord Vase",
    "Glade Bench",
    "Heath Mat",
)


def page(number: int, *, is_wide: bool = False) -> str:
    """A shop's page. Which blocks and rows it has differs from page to page."""
    draw = random.Random(number)
    name = NAMES[number % len(NAMES)]
    rows = [("Maker", f"Maker {number % 3}"), ("Weight", f"{number + 1} kg"), ("SKU", f"AB-{1000 + number}")]
    rows = [row for row in rows if row[0] == "SKU" or draw.random() < 0.6]
    draw.shuffle(rows)
    table = "".join(f"<tr><th>{label}</th><td>{value}</td></tr>" for label, value in rows)
    advert = "<div><p>Only today</p></div>" if draw.random() < 0.5 else ""
    tags = "".join(f"<li><a href='/t/{tag}'>{tag}</a></li>" for tag in tags_of(number))
    wide = "<section><div>" if is_wide else ""
    return (
        f"<html><head><title>{name} | Shop</title></head><body>{advert}<div class='crumbs'>Home / Things</div>{wide}"
        f"<h1>{name}</h1><p class='price'>Price: {price_of(number)} EUR</p>"
        f"<a class='photo' href='/img/{number}.jpg'>Photo</a><table>{table}</table><ul class='tags'>{tags}</ul>"
        f"<p>Written <b>by</b> Shop</p></body></html>"
    )


def price_of(number: int) -> str:
    return f"{10 + number}.{number % 10}5"


def tags_of(number: int) -> list[str]:
    return [f"tag{number}", "new"] if number % 2 else [f"tag{number}"]


def values(number: int) -> dict[str, object]:
    return {
        "title": NAMES[number % len(NAMES)],
        "price": price_of(number),
        "amount": float(price_of(number)),
        "sku": f"AB-{1000 + number}",
        "photo": f"https://shop.example/img/{number}.jpg",
        "tags": tags_of(number),
        "colour": None,
    }


def example(number: int, **changed: object) -> Example:
    url = f"https://shop.example/p/{number}"
    return Example(html=page(number), values=values(number) | changed, url=url)


OTHERS = [page(number) for number in range(20, 28)]


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return learn([example(1), example(2), example(3)], OTHERS)


def test_every_field_of_other_pages_is_read(pattern: Pattern) -> None:
    assert set(pattern.fields) == {"title", "price", "amount", "sku", "photo", "tags"}
    for number in range(4, 20):
        wanted = {name: value for name, value in values(number).items() if value is not None}
        assert pattern.extract(page(number), f"https://shop.example/p/{number}") == wanted


def test_a_value_is_cut_out_of_its_text_and_a_number_is_a_number(pattern: Pattern) -> None:
    found = pattern.find(page(11), "https://shop.example/p/11")
    assert found["price"].value == "21.15"
    assert found["amount"].value == 21.15
    assert found["price"].confidence == 1


def test_rules_that_agree_survive_a_changed_layout(pattern: Pattern) -> None:
    found = pattern.find(page(12, is_wide=True), "https://shop.example/p/12")
    assert (found["title"].value, found["sku"].value) == (NAMES[4], "AB-1012")


def test_a_page_of_another_kind_gives_nothing(pattern: Pattern) -> None:
    found = pattern.find("<html><body><h2>About us</h2><p>We sell things.</p></body></html>")
    assert {name for name, each in found.items() if each.value not in (None, [])} == set()
    assert all(each.confidence == 0 for each in found.values())


@pytest.mark.parametrize("html", [b"", b"\x00", "<", "<table><tr><td>" * 3000, b"\xff\xfe<p>\xd8"])
def test_broken_pages_give_nothing(pattern: Pattern, html: str | bytes) -> None:
    assert pattern.extract(html)["sku"] is None


def test_a_wrong_answer_among_three_is_outvoted() -> None:
    learned = learn([example(1), example(2, sku="Things"), example(3, title=None)], OTHERS)
    assert [learned.extract(page(number))["sku"] for number in (7, 8)] == ["AB-1007", "AB-1008"]
    assert learned.extract(page(9))["title"] == NAMES[1]


def test_a_field_that_no_page_shows_is_left_out() -> None:
    assert learn([example(1, sku="not there")]).fields.keys() & {"sku", "colour"} == set()


def test_a_pattern_is_json_that_people_can_edit(pattern: Pattern) -> None:
    text = pattern.to_json()
    assert Pattern.from_json(text) == pattern
    edited = json.loads(text)
    edited["fields"]["title"] = {"rules": [{"xpath": "//title/text()"}]}
    assert Pattern.from_json(json.dumps(edited)).extract(page(1))["title"] == "Aurora Lamp | Shop".replace(
        "Aurora Lamp", NAMES[1]
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rules": []}, "1 to 20 rules"),
        ({"rules": [{"xpath": "//["}]}, "not an XPath"),
        ({"rules": [{"xpath": "//p", "weight": -1}]}, "weight"),
        ({"rules": [{"xpath": "//p", "colour": 1}]}, "colour"),
        ({"rules": [{"xpath": "//p"}], "reading": {"part": "("}}, "fields.title"),
        ({"rules": [{"xpath": "//p"}], "reading": {"part": "x"}}, "group"),
        ({"rules": [{"xpath": "//p"}], "reading": {"kind": "date"}}, "text, number or url"),
        ({"rules": [{"xpath": "//p"}], "more": 1}, "unknown keys"),
    ],
)
def test_a_bad_edit_is_told(change: dict[str, object], words: str) -> None:
    with pytest.raises(PatternInvalid, match=words):
        Pattern.from_json(json.dumps({"format": 1, "fields": {"title": change}}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2, "fields": {}}', "[" * 100_000])
def test_what_is_no_pattern_is_told(text: str) -> None:
    with pytest.raises(PatternInvalid):
        Pattern.from_json(text)


def test_rules_that_disagree_lower_the_confidence() -> None:
    rules = tuple(
        PatternRule(xpath=xpath, weight=weight) for xpath, weight in (("//h1/text()", 3), ("//title/text()", 1))
    )
    found = Pattern(fields={"title": PatternField(rules=rules)}).find("<title>A | Shop</title><h1>A</h1>")["title"]
    assert (found.value, found.confidence, found.xpath) == ("A", 0.75, "//h1/text()")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_learned_or_left_out_and_never_breaks(title: str, label: str) -> None:
    def made(number: int) -> str:
        return f"<h1>{label}</h1><p>{title}{number}</p>"

    learned = learn([Example(html=made(number), values={"title": f"{title}{number}"}) for number in (1, 2)])
    assert Pattern.from_json(learned.to_json()) == learned


def test_answers_that_are_missing_or_words_of_the_template_do_not_mislead() -> None:
    examples = [example(1), example(2, title=None), example(3, title="Home / Things")]
    learned = learn(examples, OTHERS)
    assert [learned.extract(page(number))["title"] for number in (7, 8)] == [NAMES[7], NAMES[0]]


NESTED = """<div class='a'>one<div class='a'>two<p>deep</p></div><p>three</p></div>
<div id='b'><p> </p><p class='x'>four</p></div><div class='a'><p>five</p></div>
<table><tr><th>Size</th><td>9</td></tr><tr><th>Size</th><td>10</td></tr></table>"""


@pytest.mark.parametrize(
    "anchor",
    [
        "//div[@id='b']",
        "//div[contains(concat(' ', normalize-space(@class), ' '), ' a ')]",
        "(//div[contains(concat(' ', normalize-space(@class), ' '), ' a ')])[2]",
        "(//div[contains(concat(' ', normalize-space(@class), ' '), ' a ')])[9]",
        "(//div[contains(concat(' ', normalize-space(@class), ' '), ' a ')])[last()]",
        "//th/text()[normalize-space()='Size']/..",
        "(//th/text()[normalize-space()='Size'])[1]/..",
    ],
)
@pytest.mark.parametrize(
    "path", ["", "/p", "/p[1]/text()", "//p", "/p/@class", "/following-sibling::td[1]/text()", "/.."]
)
def test_a_rule_finds_what_its_xpath_means(anchor: str, path: str) -> None:
    for xpath in (f"{anchor}{path}", f"({anchor}{path})[normalize-space()][1]"):
        page_tree = PageTree(NESTED)
        meant = page_tree.elements(xpath)
        texts = [" ".join((each if isinstance(each, str) else "".join(each.itertext())).split()) for each in meant]
        assert page_tree.find(xpath) == tuple(dict.fromkeys(filter(None, texts)))
