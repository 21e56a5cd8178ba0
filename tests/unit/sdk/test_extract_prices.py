"""Prices as people write them."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard_sdk.extract import parse_price
from scrapeyard_sdk.extract.currencies import codes, iso_code


@pytest.mark.parametrize(
    ("text", "amount", "sign"),
    [
        ("24.90", "24.90", None),
        ("$1,299", "1299", "$"),
        ("1.299,00 €", "1299.00", "€"),
        ("1 299,00 zł", "1299.00", "zł"),
        ("1\u202f299,00\xa0€", "1299.00", "€"),
        ("CHF 1'299.50", "1299.50", "CHF"),
        ("₹ 1,23,456.00", "123456.00", "₹"),
        ("35€99", "35.99", "€"),
        ("35 € 99", "35.99", "€"),
        ("49,- Kč", "49", "Kč"),
        ("£.75", ".75", "£"),
        ("119. 95 $", "119.95", "$"),
        ("0.123 BTC", "0.123", "BTC"),
        ("12.500 KD", "12.500", "KD"),
        ("12.500 đ", "12500", "đ"),
        ("NZD $100.70", "100.70", "NZD"),
        ("AU $59.95", "59.95", "AU $"),
        ("32,000원", "32000", "원"),
        ("22000.00元/台", "22000.00", "元"),
        ("1128240 рублей", "1128240", "руб"),
        ("45 ج.م", "45", "ج.م"),
        ("R273.00", "273.00", "R"),
        ("Was $120.00 Now $60.00", "60.00", "$"),
        ("3 issues for only 14.85 EUR", "14.85", "EUR"),
        ("From 26 to 50 €", "26", "€"),
        ("20% off: 80 €", "80", "€"),
        ("881,00 169,00 Kn", "169.00", "Kn"),
        ("Free", "0", None),
        ("", None, None),
        ("Call us", None, None),
        ("50%", None, None),
        ("July, 2004", None, None),
        ("Free shipping on orders $49+", None, "$"),
        ("9" * 40, None, None),
    ],
)
def test_prices(text: str, amount: str | None, sign: str | None) -> None:
    price = parse_price(text)
    assert (price.amount, price.sign) == (Decimal(amount) if amount else None, sign)


def test_the_hint_names_the_currency_unless_the_text_does() -> None:
    assert parse_price("28", "Price in GBP").currency == "GBP"
    assert parse_price("28 €", "GBP").currency == "EUR"
    assert parse_price(None, "EUR") == parse_price("", "EUR")
    assert parse_price(None).amount is None


@pytest.mark.parametrize(
    ("sign", "place", "code"),
    [
        ("€", "", "EUR"),
        ("eur", "", "EUR"),
        ("$", "", "USD"),
        ("$", "ca", "CAD"),
        ("$", "de", "USD"),
        ("kr", "se", "SEK"),
        ("kr.", "dk", "DKK"),
        ("kr", "", None),
        ("¥", "cn", "CNY"),
        ("¥", "jp", "JPY"),
        ("Rs.", "pk", "PKR"),
        ("zł", "", "PLN"),
        ("тг.", "kz", "KZT"),
        ("nothing", "", None),
    ],
)
def test_what_a_sign_means(sign: str, place: str, code: str | None) -> None:
    assert iso_code(sign, place) == code


AMOUNTS = st.decimals(min_value=Decimal("0.01"), max_value=Decimal("9999999.99"), places=2)


@settings(max_examples=300)
@given(AMOUNTS, st.sampled_from(["$", "€", "£", "CHF", "zł", "원", "Kč", "R$", "₹", "грн."]), st.booleans())
def test_every_way_of_writing_the_same_amount_gives_it_back(amount: Decimal, sign: str, before: bool) -> None:
    english = f"{amount:,.2f}"
    continental = english.translate(str.maketrans(",.", ".,"))
    for written in (english, continental, english.replace(",", " "), english.replace(",", "'"), f"{amount:.2f}"):
        price = parse_price(f"{sign} {written}" if before else f"{written} {sign}")
        assert (price.amount, price.sign) == (amount, sign)


@settings(max_examples=200)
@given(AMOUNTS, st.sampled_from(sorted(codes())))
def test_every_code_is_known_beside_an_amount(amount: Decimal, code: str) -> None:
    price = parse_price(f"{amount:.2f} {code}")
    assert (price.amount, price.currency) == (amount, code)


@settings(max_examples=500)
@given(st.text(max_size=200), st.none() | st.text(max_size=50))
def test_any_text_is_survived(text: str, hint: str | None) -> None:
    price = parse_price(text, hint)
    assert price.amount is None or (price.amount >= 0 and price.amount.is_finite())
    assert price.currency is None or price.currency in codes()


@settings(max_examples=200)
@given(st.text(alphabet="0123456789.,' €$%-ftkg", max_size=2000))
def test_any_heap_of_digits_is_survived(text: str) -> None:
    price = parse_price(text)
    assert price.amount is None or price.amount >= 0
