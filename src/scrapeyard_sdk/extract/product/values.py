"""Small readings that every source of product data shares."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapeyard_sdk.extract import currencies
from scrapeyard_sdk.extract.lenient_json import clean
from scrapeyard_sdk.extract.prices import amount_in, parse_price

MAX_FIELD = 2000
_MOST = Decimal(10) ** 12
_AVAILABILITY = {
    "instock": "InStock",
    "instoreonly": "InStoreOnly",
    "onlineonly": "OnlineOnly",
    "limitedavailability": "LimitedAvailability",
    "lowstock": "LimitedAvailability",
    "preorder": "PreOrder",
    "presale": "PreSale",
    "backorder": "BackOrder",
    "madetoorder": "MadeToOrder",
    "reserved": "Reserved",
    "outofstock": "OutOfStock",
    "soldout": "SoldOut",
    "discontinued": "Discontinued",
    "available": "InStock",
    "availablefororder": "InStock",
    "unavailable": "OutOfStock",
    "notavailable": "OutOfStock",
    "oos": "OutOfStock",
    "pending": "BackOrder",
}
_GONE = frozenset({"OutOfStock", "SoldOut", "Discontinued", "Reserved"})
_ALIKE = 0.6
_WORD = re.compile(r"[^\W_]+")


def listed(value: Any) -> list[Any]:
    """A list as it is, None as an empty list, anything else as a list of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Any) -> str | None:
    """Text, a number as text, or the name of an item; the first of a list. None if there is no value."""
    for each in listed(value)[:10]:
        found = _text(each)
        if found:
            return found
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = next((value[key] for key in ("name", "@value", "value", "title", "label") if value.get(key)), None)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return " ".join(clean(str(value)).split())[:MAX_FIELD] or None


def amount_of(value: Any, currency: str | None = None) -> Decimal | None:
    """A price from a number or a text; None if it is negative or implausibly large.

    `currency` decides what a dot before three digits means: `1.250` is one and a quarter in Kuwait, and 1250 in Chile.
    """
    if isinstance(value, bool):
        return None
    code = currencies.iso_code(currency) if currency else None
    if isinstance(value, (int, float)):
        return _sane(_with_thousands(Decimal(str(value)), code))
    said = text_of(value)
    if said is None:
        return None
    # Machine-written prices use a decimal point, whatever the number of digits after it.
    is_doubtful = re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", said) and not currencies.has_three_decimals(code)
    if re.fullmatch(r"\d{1,15}(?:\.\d{1,10})?", said) and not is_doubtful:
        return _sane(_with_thousands(Decimal(said), code))
    return _sane(parse_price(said, currency).amount or amount_in(said, currency))


def _with_thousands(amount: Decimal, code: str | None) -> Decimal:
    """`12.990 CLP` is 12990, also after a program has taken it for a number and dropped the last zero."""
    is_cut = currencies.has_only_thousands(code) and 0 < amount < 1000 and amount % 1 and not amount * 1000 % 1
    return amount * 1000 if is_cut else amount


def _sane(amount: Decimal | None) -> Decimal | None:
    return amount if amount is not None and amount.is_finite() and 0 <= amount < _MOST else None


def availability_of(value: Any) -> str | None:
    """schema.org's word for an availability (`InStock`, `PreOrder`, …), from an address, a word or a flag."""
    if isinstance(value, bool):
        return "InStock" if value else "OutOfStock"
    said = text_of(value)
    if said is None:
        return None
    word = re.sub(r"[\W_]", "", said.rstrip("/").rpartition("/")[2]).lower()
    return _AVAILABILITY.get(word)


def in_or_out(detail: str) -> str:
    """`InStock` if it is available now or to order, otherwise `OutOfStock`."""
    return "OutOfStock" if detail in _GONE else "InStock"


def gtin_of(value: Any) -> str | None:
    """8, 12, 13 or 14 digits whose check digit is right; None otherwise."""
    said = text_of(value)
    digits = re.sub(r"[\s\-]", "", said) if said else ""
    if not re.fullmatch(r"\d{8}|\d{12,14}", digits) or not digits.strip("0"):
        return None
    total = sum(int(digit) * (3 if at % 2 == 0 else 1) for at, digit in enumerate(reversed(digits[:-1])))
    return digits if (total + int(digits[-1])) % 10 == 0 else None


def words_of(text: str | None) -> set[str]:
    """Its words, in lower case."""
    return {word.lower() for word in _WORD.findall((text or "")[:MAX_FIELD])}


def _letters(text: str | None) -> str:
    return "".join(_WORD.findall((text or "")[:MAX_FIELD])).lower()


def likeness(one: str | None, other: str | None) -> float:
    """The share of the shorter text's words that are in the other: 0 to 1; 1 if it contains the whole text."""
    short, long = sorted((_letters(one), _letters(other)), key=len)
    if len(short) > 3 and short in long:
        return 1.0
    mine, theirs = words_of(one), words_of(other)
    return len(mine & theirs) / min(len(mine), len(theirs)) if mine and theirs else 0.0


def is_name(text: str | None, names: Iterable[str]) -> bool:
    """Whether it is the name of what the page is about, and not only a word of it, such as the name of the site."""
    return any(likeness(text, name) >= _ALIKE and len(text or "") * 3 > len(name) for name in names)


def same_page(one: str | None, other: str | None) -> bool:
    """Whether two addresses have the same path."""
    if not one or not other:
        return False
    try:
        mine, theirs = urlsplit(one), urlsplit(other)
    except ValueError:
        return False
    return bool(mine.path.strip("/")) and mine.path.rstrip("/") == theirs.path.rstrip("/")


def is_same_item(one: str, other: str) -> bool:
    """Whether two addresses have the same path, and no query that names different items."""
    if not same_page(one, other):
        return False
    mine, theirs = (dict(parse_qsl(urlsplit(each).query)[:50]) for each in (one, other))
    return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys() if name.lower() in _KEYS)


def first(values: Iterable[Any]) -> Any:
    """The first non-empty value; None if there is none."""
    return next((value for value in values if value not in (None, "", [], {})), None)


def unique(values: Iterable[str | None], most: int) -> list[str]:
    """Each once, in order, without empty ones."""
    return list(dict.fromkeys(_some(values)))[:most]


def _some(values: Iterable[str | None]) -> Iterator[str]:
    return (value for value in values if value)


@dataclass(kw_only=True)
class ProductFinding:
    """What one source says; None or empty for what it does not."""

    source: str
    confidence: float = 0.0
    """How surely the page is about a product, by this source alone: 0 to 1."""
    name: str | None = None
    price: Decimal | None = None
    list_price: Decimal | None = None
    high_price: Decimal | None = None
    currency: str | None = None
    availability: str | None = None
    """In schema.org's words."""
    sku: str | None = None
    codes: list[str] = field(default_factory=list)
    """Everything that stands under a label for `sku`."""
    gtin: str | None = None
    mpn: str | None = None
    brand: str | None = None
    category: str | None = None
    description: str | None = None
    condition: str | None = None
    images: list[str] = field(default_factory=list)
    rating: dict[str, Any] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    variants: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the page itself says it is about; sources are compared with it."""

    url: str
    names: tuple[str, ...]
    """Heading, Open Graph title, title: the likeliest first."""
    place: str
    """Country, as in the domain; empty when unknown."""


_TOKEN = re.compile(r"(?:[a-z]\d{1,6}[a-z])?([A-Za-z]{0,4}\d{5,20}|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{8,14})")
_KEYS = frozenset(
    {"sku", "pid", "id", "productid", "product_id", "itemid", "item_id", "item", "p", "asin", "goodsno", "code"}
)


def code_in(url: str) -> str | None:
    """The last token like an item's number: five digits or more, or capitals mixed with digits; None without one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    asked = [value for name, value in parse_qsl(parts.query)[:50] if name.lower() in _KEYS]
    segments = [segment for segment in unquote(parts.path).split("/") if segment]
    for text in (*asked, *reversed(segments)):
        tokens = [token for piece in re.split(r"[^A-Za-z0-9]+", text[:300]) if (token := _TOKEN.fullmatch(piece))]
        if tokens:
            return tokens[-1].group(1)
    return None
