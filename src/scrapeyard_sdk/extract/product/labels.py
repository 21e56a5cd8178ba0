"""Facts beside their label (`SKU: 1234`, rows of a table) and in attributes of single elements (`data-sku`)."""

import re
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from scrapeyard_sdk.extract.page import folded
from scrapeyard_sdk.extract.product import words
from scrapeyard_sdk.extract.product.layout import ASIDE, Layout
from scrapeyard_sdk.extract.product.values import ProductFinding, amount_of, availability_of, gtin_of, text_of
from scrapeyard_sdk.text import lines

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# ruff: noqa: RUF001 - the letters of other scripts are meant


MAX_ATTRIBUTES = 200
_MAX_ROWS = 3000
_MAX_LABEL = 80
_MAX_VALUE = 1000
_MAX_TEXTS = 20_000
_MAX_BOXES = 100
_MAX_NODES = 200
_CODE = re.compile(r"[#№]?\s*([A-Za-z0-9](?:[\w./\-]| (?=[A-Z]{0,4}\d{2})){1,39})")
"""A blank belongs to a number only if digits follow: after it the next word may begin."""
_PAIR = re.compile(r"^([^:：]{2,60})\s*[:：]\s*(\S.{0,300})$")
_SPECS = re.compile(
    r"spec|attribut|propert|detail|feature|charact|tech|param|data-?sheet|eigenschaft|caract|fiche", re.IGNORECASE
)

_LABEL = re.compile(rf"^.{{0,30}}?(?<![^\W\d_]){words.SKU.pattern}\W{{0,4}}(?=\w*\d)", re.IGNORECASE)

Pair = tuple[str, str]


def labelled_in(tree: "LexborHTMLParser", layout: Layout, url: str) -> ProductFinding:
    """Codes and brand by their labels, and the table of the product's properties."""
    attributes = dict(reversed(list(islice(_properties(tree, layout), MAX_ATTRIBUTES))))
    attributes = dict(reversed(attributes.items()))
    pairs = [*_beside(layout), *attributes.items()]
    codes = _codes([*pairs, *_boxes(layout)], words.SKU, url)
    return ProductFinding(
        source="page",
        confidence=0.2 if codes else 0.0,
        sku=next(iter(codes), None),
        codes=codes,
        gtin=next((code for _, value in _named(pairs, words.GTIN) if (code := gtin_of(value.split(",")[0]))), None),
        mpn=next(iter(_codes(pairs, words.MPN, "")), None),
        brand=next(
            (value for _, value in _named(pairs, words.BRAND) if len(value) <= 60 and "http" not in value), None
        ),
        attributes=attributes,
    )


def _properties(tree: "LexborHTMLParser", layout: Layout) -> Iterator[Pair]:
    """Rows of two cells, pairs of definition lists, and `label: value` items of elements named as a specification."""
    for row in tree.css("tr")[:_MAX_ROWS]:
        yield from _pair_of([cell for cell in row.iter() if cell.tag in ("th", "td")], layout)
    for term in tree.css("dt")[:_MAX_ROWS]:
        yield from _pair_of([term, *_definition(term)], layout)
    for item in tree.css("li")[:_MAX_ROWS]:
        yield from _item(item, layout)


def _pair_of(cells: "list[LexborNode]", layout: Layout) -> Iterator[Pair]:
    if len(cells) != 2 or (layout.flags_of(cells[0]) or 0) & ASIDE or layout.flags_of(cells[0]) is None:
        return
    label, value = (" ".join(lines(cell, _MAX_NODES))[:_MAX_VALUE].strip(" :\u200e\u200f") for cell in cells)
    if label and value and len(label) <= _MAX_LABEL and label != value:
        yield label, value


def _definition(term: "LexborNode") -> "list[LexborNode]":
    after = term.next
    for _ in range(3):
        if after is None or after.tag == "dd":
            break
        after = after.next
    return [after] if after is not None and after.tag == "dd" else []


def _item(item: "LexborNode", layout: Layout) -> Iterator[Pair]:
    flags = layout.flags_of(item)
    if flags is None or flags & ASIDE or not _is_specification(item):
        return
    text = " ".join(lines(item, _MAX_NODES))
    if match := _PAIR.match(text[:_MAX_VALUE].replace("\u200e", "").replace("\u200f", "")):
        yield match[1].strip(), match[2].strip()


def _is_specification(node: "LexborNode") -> bool:
    above: LexborNode | None = node
    for _ in range(5):
        if above is None:
            return False
        names = f"{above.attributes.get('class') or ''} {above.attributes.get('id') or ''}"
        if _SPECS.search(names[:300]):
            return True
        above = above.parent
    return False


def _beside(layout: Layout) -> Iterator[Pair]:
    """Short texts in order: a label with its value, or a label and the text after it."""
    texts = [place for place in islice(layout.texts, _MAX_TEXTS) if not place.flags & ASIDE]
    for place, after in zip_longest(texts, texts[1:]):
        if len(place.text) > _MAX_LABEL * 2:
            continue
        if match := _PAIR.match(place.text):
            yield match[1], match[2]
        elif after is not None and len(place.text) <= _MAX_LABEL:
            yield place.text.rstrip(" :："), after.text[:_MAX_VALUE].lstrip(" :：")


def _boxes(layout: Layout) -> Iterator[Pair]:
    """Codes in elements whose names say so."""
    for place in layout.codes[:_MAX_BOXES]:
        text = " ".join(lines(place.node, _MAX_NODES)) if not place.flags & ASIDE else ""
        yield "sku", _LABEL.sub("", text).strip()


def _named(pairs: list[Pair], label: re.Pattern[str]) -> Iterator[Pair]:
    return ((name, value) for name, value in pairs if label.fullmatch(name.strip(" .:#-–—\u200e")))


def _codes(pairs: list[Pair], label: re.Pattern[str], url: str) -> list[str]:
    """Codes with this label; those that appear in the URL come first."""
    found = [code for _, value in _named(pairs, label) if (code := as_code(value))]
    return sorted(dict.fromkeys(found), key=lambda code: not (len(code) > 3 and code in url))


def as_code(text: str) -> str | None:
    """An article number at the beginning of a text: some letters, at least two digits; None when there is none."""
    match = _CODE.match(folded(text))
    code = match[1].rstrip(" .,-/") if match else ""
    return code if sum(letter.isdigit() for letter in code) >= 2 and len(code) >= 3 else None


_MAX_ELEMENTS = 300
_NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "price": (("price",), ("data-price", "data-product-price", "data-price-amount"), ("product_price",)),
    "currency": (("priceCurrency",), ("data-currency", "data-currency-code"), ("currency",)),
    "availability": (("availability",), ("data-availability",), ()),
    "sku": (
        ("sku",),
        ("data-sku", "data-product-sku", "data-product_sku", "data-product-code"),
        ("sku", "product_sku", "asin", "ASIN", "productcode"),
    ),
    "gtin": (("gtin13", "gtin", "gtin14", "gtin12", "gtin8"), ("data-ean", "data-gtin"), ("ean", "gtin")),
    "mpn": (("mpn",), ("data-mpn",), ("mpn",)),
    "brand": (("brand",), ("data-brand", "data-product-brand"), ("brand",)),
}
"""For each field: values of itemprop, attributes, and names of hidden inputs."""


def loose_in(tree: "LexborHTMLParser", layout: Layout) -> ProductFinding:
    """What single elements say."""
    found = {field: _agreed(tree, layout, *names) for field, names in _NAMES.items()}
    currency = text_of(found["currency"])
    price = amount_of(found["price"], currency)
    return ProductFinding(
        source="attributes",
        confidence=(0.4 if price else 0.0) + (0.2 if found["sku"] else 0.0),
        price=price,
        currency=currency,
        availability=availability_of(found["availability"]),
        sku=text_of(found["sku"]),
        gtin=gtin_of(found["gtin"]),
        mpn=text_of(found["mpn"]),
        brand=text_of(found["brand"]),
    )


def _agreed(
    tree: "LexborHTMLParser",
    layout: Layout,
    props: tuple[str, ...],
    attributes: tuple[str, ...],
    inputs: tuple[str, ...],
) -> str | None:
    ways = (
        [(f'[itemprop="{name}"]', "content") for name in props],
        [(f"[{name}]", name) for name in attributes],
        [(f'input[type="hidden"][name="{name}"]', "value") for name in inputs],
    )
    for way in ways:
        said = {value for selector, name in way for value in _said(tree, layout, selector, name)}
        if len(said) == 1:
            return said.pop()
    return None


def _said(tree: "LexborHTMLParser", layout: Layout, selector: str, name: str) -> set[str]:
    nodes = (node for node in tree.css(selector)[:_MAX_ELEMENTS] if not (layout.flags_of(node) or 0) & ASIDE)
    return {value for node in nodes if (value := _value(node, name))}


def _value(node: "LexborNode", name: str) -> str:
    said = node.attributes.get(name) or (node.attributes.get("href") if name == "content" else "") or ""
    if not said and name == "content":
        said = " ".join(lines(node, 50))
    return said.strip()[:200]
