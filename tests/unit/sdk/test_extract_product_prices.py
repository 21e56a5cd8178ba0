"""Which of the prices on a page is the product's own, and how it is written."""

from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from scrapeyard_sdk.extract.product.product import read_product
from scrapeyard_sdk.extract.product.values import is_same_item
from tests.unit.sdk.product_pages import OFFER, TEAPOT, ld, page

URL = "https://shop.example/p/teapot"
OWN = '<h1>Blue Teapot</h1><div class="teapot-cost">{}</div><button>Add to cart</button>'
AMOUNTS = ("11,00 €", "12,00 €", "13,00 €")


def product(html: str, url: str = URL) -> dict[str, Any]:
    found = read_product(LexborHTMLParser(html), url)
    assert found is not None
    return found


def offered(**offer: Any) -> dict[str, Any]:
    return product(page("<h1>Blue Teapot</h1>", ld({**TEAPOT, "offers": {"@type": "Offer", **offer}})))


@pytest.mark.parametrize(
    "card",
    [
        '<a href="/p/{at}"><img src=/{at}.png><b class="price">{amount}</b></a>',
        '<div><a href="/p/{at}"><img src=/{at}.png></a><div><b class="price">{amount}</b></div></div>',
        '<div><h3><a href="/p/{at}">Cup</a></h3><div><b class="price">{amount}</b></div></div>',
        '<li><a href="https://other.example/{at}"><h3>Cup</h3></a><b class="price">{amount}</b></li>',
        '<div><h3><a href="/p/teapot?id={at}">Cup</a></h3><b class="price">{amount}</b></div>',
    ],
)
def test_prices_in_cards_of_other_pages_are_theirs(card: str) -> None:
    cards = "".join(card.format(at=at, amount=amount) for at, amount in enumerate(AMOUNTS))
    assert product(page(OWN.format("24,90 €") + cards), URL + "?id=9")["price"] == 24.9


@pytest.mark.parametrize(
    "box",
    [
        '<a href="#reviews"><b class="price">24,90 €</b></a>',
        '<a href="/p/teapot?colour=blue"><b class="price">24,90 €</b></a>',
        '<a href="/add-to-cart/9"><b class="price">24,90 €</b></a>',
        '<div><b class="price">24,90 €</b> <a href="/shipping">plus shipping</a></div>',
        '<div><b class="price">24,90 €</b> <a href="/pay"><img src="/pay.png"></a></div>',
    ],
)
def test_a_link_beside_the_price_does_not_make_it_another_products(box: str) -> None:
    found = product(page(f"<h1>Blue Teapot</h1>{box}"))
    assert (found["price"], found["confidence"]) == (24.9, 0.5)


def test_a_list_of_cards_alone_is_no_product() -> None:
    cards = "".join(
        f'<div><h3><a href="/p/{at}">Cup {at}</a></h3><b class="price">{amount}</b></div>'
        for at, amount in enumerate(AMOUNTS)
    )
    assert read_product(LexborHTMLParser(page(f"<h1>Cups</h1>{cards}", title="Cups")), "https://shop.example/c") is None


def test_the_name_of_another_page_is_not_the_heading() -> None:
    body = (
        '<h2>Blue Teapot with a lid</h2><b class="price">24,90 €</b><button>Buy now</button>'
        '<h1><a href="/p/8">Blue Teapot with lid and cup</a></h1><b class="price">31,00 €</b>'
    )
    found = product(page(body, title="Blue Teapot with a lid"))
    assert (found["name"], found["price"]) == ("Blue Teapot with a lid", 24.9)


@pytest.mark.parametrize("text", ["(-4,00 €)", "+ 5,00 €", "-$4", "(+€5)"])
def test_what_an_option_adds_is_no_price(text: str) -> None:
    body = f"<h1>Blue Teapot</h1><label>Small {text}</label><label>{text}</label><p>for only <b>24,90 €</b></p>"
    assert product(page(body + "<button>Add to cart</button>"))["price"] == 24.9


def test_a_price_without_tax_stays_one_in_every_box_around_it() -> None:
    body = (
        '<h1>Blue Teapot</h1><ul class="prices"><li><b class="price-old">24,90 €</b></li>'
        '<li class="price-row">excl. VAT <b class="price-net">20,92 €</b></li></ul><button>Add to cart</button>'
    )
    assert product(page(body))["price"] == 24.9


@pytest.mark.parametrize(
    ("price", "currency", "amount"),
    [
        ("12.990", "CLP", 12990),
        (12.99, "CLP", 12990),
        ("12.99", "VND", 12990),
        ("990", "CLP", 990),
        ("24990", "CLP", 24990),
        ("1299.5", "IDR", 1299.5),
        ("12.500", "KWD", 12.5),
        (12.5, "KWD", 12.5),
        ("1.299", "EUR", 1299),
        ("12.99", "JPY", 12.99),
    ],
)
def test_the_currency_decides_what_a_dot_separates(price: Any, currency: str, amount: float) -> None:
    assert offered(price=price, priceCurrency=currency)["price"] == amount
    card = f'<meta property="product:price:amount" content="{price}">'
    card += f'<meta property="product:price:currency" content="{currency}">'
    assert product(page("<h1>Blue Teapot</h1>", card))["price"] == amount


def test_a_price_keeps_the_currency_of_its_own_offer() -> None:
    gone = {**OFFER, "price": "20", "priceCurrency": "USD", "availability": "OutOfStock"}
    found = product(page("<h1>Blue Teapot</h1>", ld({**TEAPOT, "offers": [gone, OFFER]})))
    assert (found["price"], found["currency"]) == (24.9, "EUR")


@pytest.mark.parametrize(
    "condition",
    [{"referenceQuantity": {"value": 1, "unitCode": "KGM"}}, {"validForMemberTier": {"name": "Gold"}}],
)
def test_the_price_of_a_kilogram_or_for_members_is_not_the_price(condition: dict[str, Any]) -> None:
    specs = [{"price": 9.9, "priceCurrency": "EUR", **condition}, {"price": 24.9, "priceCurrency": "EUR"}]
    assert offered(priceSpecification=specs)["price"] == 24.9


@pytest.mark.parametrize(
    ("offer", "shown", "prices"),
    [
        (OFFER, "<del>30,00 €</del> <b class=price>24,90 €</b>", (24.9, 30.0)),
        (OFFER, "<b class=price>24,90 €</b> <span class=price-old>30,00 €</span>", (24.9, 30.0)),
        ({}, "<del>30,00 €</del> <b class=price>24,90 €</b>", (24.9, 30.0)),
        (OFFER, "<b class=price>24,90 €</b>" + "<p>far</p>" * 20 + "<del>30,00 €</del>", (24.9, None)),
        (OFFER, "<del>20,00 €</del> <b class=price>24,90 €</b>", (24.9, None)),
    ],
)
def test_a_higher_price_that_is_struck_out_beside_is_the_list_price(
    offer: dict[str, Any], shown: str, prices: tuple[float, float | None]
) -> None:
    head = ld({**TEAPOT, "offers": offer}) if offer else ""
    found = product(page(f"<h1>Blue Teapot</h1><div>{shown}</div>", head))
    assert (found["price"], found["list_price"]) == prices


def test_open_graph_sale_price() -> None:
    amounts = {"sale_price": "24.90", "price": "30.00"}
    head = "".join(f'<meta property="product:{name}:amount" content="{amount}">' for name, amount in amounts.items())
    found = product(page("<h1>Blue Teapot</h1>", head))
    assert (found["price"], found["list_price"]) == (24.9, 30.0)


@pytest.mark.parametrize("text", ["<b>Product code - </b>39139301", "<b>SKU \u2013</b> <i>39139301</i>"])
def test_a_dash_may_separate_a_label_from_its_number(text: str) -> None:
    assert product(page(f"<h1>Blue Teapot</h1><p>{text}</p>", ld({**TEAPOT, "offers": OFFER})))["sku"] == "39139301"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://shop.example/p/teapot/", True),
        ("https://shop.example/p/teapot?ref=x", True),
        ("https://shop.example/p/teapot?id=2", False),
        ("https://shop.example/p/cup?id=1", False),
    ],
)
def test_which_addresses_name_the_same_item(other: str, same: bool) -> None:
    assert is_same_item(other, "https://shop.example/p/teapot?id=1") is same
