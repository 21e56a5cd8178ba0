"""Facts in attributes of single elements: `data-sku`, `<meta itemprop="price">` outside any item, hidden form fields.

A page full of products has many of them; one counts only where all that are not beside the product agree.
"""

from typing import TYPE_CHECKING

from scrapeyard_sdk.extract.product.layout import ASIDE, Layout
from scrapeyard_sdk.extract.product.values import ProductFinding, amount_of, availability_of, gtin_of, text_of
from scrapeyard_sdk.text import lines

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

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
    return ProductFinding(
        source="attributes",
        price=amount_of(found["price"]),
        currency=text_of(found["currency"]),
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
