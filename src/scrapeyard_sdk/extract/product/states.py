"""A product from the data that a page's own scripts work with: dataLayer, `__NEXT_DATA__`, state in inline scripts."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.lenient_json import Budget, plain
from scrapeyard_sdk.extract.product.values import (
    ProductFinding,
    Subject,
    amount_of,
    availability_of,
    first,
    gtin_of,
    likeness,
    text_of,
)

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_MAX_SCRIPTS = 100
_MAX_SCRIPT = 2_000_000
_MAX_LITERAL = 200_000
_MAX_STARTS = 40
_MAX_CHARACTERS = 4_000_000
"""Maximum characters of all literals tried, including those that turn out to be broken."""
_MAX_VALUES = 60_000
_ALIKE = 0.8

_START = re.compile(r"(?:dataLayer\.push\(\s*|(?<![=!<>])=\s*|\breturn\s+|['\"]detail['\"]\s*,\s*)(?=[{\[]\s*['\"\w{])")
_SIGNS = re.compile(r"price|sku|product", re.IGNORECASE)
_PIECES = re.compile(
    r"""("(?:[^"\\\n]|\\.)*+(?:"|$)|'(?:[^'\\\n]|\\.)*+(?:'|$)|`[^`]*+(?:`|$))"""
    r"|//[^\n]*|/\*(?:.*?\*/|.*$)|([A-Za-z_$][\w$]*)(?=\s*+:)|([{}\[\]])|,(?=\s*+[}\]])",
    re.DOTALL,
)
_KEYS = {
    "name": "name title productname itemname producttitle productfullname displayname",
    "price": "saleprice currentprice finalprice sellingprice specialprice price productprice unitprice pricevalue"
    " offerprice amount",
    "currency": "currency currencycode pricecurrency productcurrency",
    "sku": "sku productsku itemid productcode articlenumber articleid productid id",
    "gtin": "gtin gtin13 ean ean13 upc barcode isbn",
    "mpn": "mpn manufacturerpartnumber modelnumber",
    "brand": "brand itembrand brandname productbrand manufacturer",
    "category": "category itemcategory productcategory categoryname",
    "availability": "availability instock isinstock stockstatus available isavailable availabilitystatus",
}


def state_in(tree: "LexborHTMLParser", subject: Subject) -> ProductFinding | None:
    """The object that has the page's own name and the most fields; None if there is none."""
    budget = Budget(_MAX_VALUES)
    found = [each for value in _values(tree) for each in _objects(plain(value, budget)) if _fits(each, subject)]
    best = max(found, key=lambda each: sum(name in each for name in _KEYS), default=None)
    return _finding(best) if best is not None and len(best) > 1 else None


def _values(tree: "LexborHTMLParser") -> Iterator[Any]:
    room = _MAX_CHARACTERS
    for node in tree.css("script:not([src])")[:_MAX_SCRIPTS]:
        kind = (node.attributes.get("type") or "").lower()
        text = node.text() if "ld+json" not in kind else ""
        if not _SIGNS.search(text) or len(text) > _MAX_SCRIPT:
            continue
        end = 0
        for start in [0] if "json" in kind else _starts(text):
            if start < end or room < 0:
                continue
            value, end = _literal(text, start)
            room -= end - start if value is not None else min(len(text) - start, _MAX_LITERAL)
            yield value


def _starts(text: str) -> list[int]:
    return [match.end() for match in islice(_START.finditer(text), _MAX_STARTS)]


def _literal(text: str, start: int) -> tuple[Any, int]:
    """A value of JSON, or of JavaScript as far as it is written like it, and where it ends; None when it is neither."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(_as_json(text[start : start + _MAX_LITERAL]), strict=False), start + 1
    except (ValueError, RecursionError):
        return None, start


def _as_json(text: str) -> str:
    """The first balanced literal with its strings and keys in double quotes."""
    out: list[str] = []
    at = depth = 0
    for piece in _PIECES.finditer(text):
        out.append(text[at : piece.start()])
        at = piece.end()
        string, key, bracket = piece.groups()
        out.append(_quoted(string) if string else f'"{key}"' if key else bracket or "")
        if bracket:
            depth += 1 if bracket in "{[" else -1
            if depth <= 0:
                break
    return "".join(out)


def _quoted(string: str) -> str:
    if string.startswith('"'):
        return string
    return json.dumps(re.sub(r"\\(.)", r"\1", string[1:-1]))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object, with its keys mapped to product fields."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield _by_field(each)
            waiting.extend(inner for inner in each.values() if isinstance(inner, (dict, list)))
        elif isinstance(each, list):
            waiting.extend(inner for inner in each if isinstance(inner, (dict, list)))


def _by_field(source: dict[str, Any]) -> dict[str, Any]:
    known = {
        re.sub(r"[\W_]", "", key).lower(): value for key, value in source.items() if value not in (None, "", [], {})
    }
    found = {field: first(known.get(key) for key in keys.split()) for field, keys in _KEYS.items()}
    return {field: value for field, value in found.items() if value is not None}


def _fits(source: dict[str, Any], subject: Subject) -> bool:
    name = text_of(source.get("name"))
    if name is None or len(name) < 4 or not {"price", "sku"} & source.keys():
        return False
    return any(likeness(name, each) >= _ALIKE and len(name) * 3 > len(each) for each in subject.names[:2])


def _finding(source: dict[str, Any]) -> ProductFinding:
    price = source.get("price")
    if isinstance(price, dict):
        inner = _by_field(price)
        source.setdefault("currency", inner.get("currency"))
        price = first((inner.get("price"), price.get("value"), price.get("current")))
    currency = text_of(source.get("currency"))
    amount = amount_of(price, currency)
    return ProductFinding(
        source="script",
        confidence=0.7 if amount else 0.2,
        name=text_of(source.get("name")),
        price=amount,
        currency=currency,
        availability=availability_of(source.get("availability")),
        sku=text_of(source.get("sku")),
        gtin=gtin_of(source.get("gtin")),
        mpn=text_of(source.get("mpn")),
        brand=text_of(source.get("brand")),
        category=text_of(source.get("category")),
    )
