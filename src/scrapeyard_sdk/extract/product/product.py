"""A product page as data: reads every source and takes each field from the most trusted one.

In order of trust: data that shops publish for machines (JSON-LD, microdata, RDFa, Open Graph), data in their scripts
and elements, visible text, the URL. A labelled article number on the page comes first of all, because it is the one
that the shop's customers know.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from scrapeyard_sdk.extract.currencies import iso_code
from scrapeyard_sdk.extract.page import absolute, base_of, folded, read_meta
from scrapeyard_sdk.extract.product.labels import labelled_in, loose_in
from scrapeyard_sdk.extract.product.layout import Layout, LinkTargets, brand_seen, find_heading, trail_seen
from scrapeyard_sdk.extract.product.schema_org import product_in, trail_in
from scrapeyard_sdk.extract.product.states import state_in
from scrapeyard_sdk.extract.product.values import (
    ProductFinding,
    Subject,
    amount_of,
    availability_of,
    code_in,
    first,
    in_or_out,
    text_of,
    unique,
)
from scrapeyard_sdk.extract.product.visible import ShownPrices, seen_in
from scrapeyard_sdk.extract.product.words import BRAND
from scrapeyard_sdk.extract.structured import items, kinds, read_json_ld, read_microdata, read_rdfa

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_IMAGES = 50
FLOOR = 0.5
"""A page whose confidence is lower has no product: none is better than a wrong one."""
_ARTICLE_DOUBT = 0.4
_PUBLISHED = frozenset({"json-ld", "microdata", "rdfa", "opengraph"})
_WEAK = frozenset({"attributes", "page", "url"})
_TEXTS = ("name", "sku", "gtin", "mpn", "brand", "category", "description", "condition")
_JUNK = re.compile(
    r"[$@#]?\{|\$\w+$|\{\{|%\w+%|^(?:null|none|undefined|n/?a|nan|false|true|-+|default|unknown|no brand)$",
    re.IGNORECASE,
)
_BRAND_LABEL = re.compile(rf"^.{{0,40}}\b{BRAND.pattern}\s*:\s*(?=\S)", re.IGNORECASE)
_IDS = re.compile(r"^https?://", re.IGNORECASE)
_SKU_TRUST = ("page", "json-ld", "microdata", "rdfa", "opengraph", "attributes", "script", "url")


def read_product(tree: "LexborHTMLParser", url: str) -> dict[str, Any] | None:
    """The page's product; None for a page that shows none. Fields without an answer are None or empty.

    `confidence` says how surely the page is about this product; a page below `FLOOR` has none. `sources` gives the
    source of each field. `availability` is `InStock` or `OutOfStock`; if the page does not say, a product with a price
    counts as in stock, and `sources` says `assumed`. Does not change the tree.
    """
    return _Reading(tree, url).product()


class _Reading:
    """One page, read once."""

    def __init__(self, tree: "LexborHTMLParser", url: str) -> None:
        self._tree = tree
        self._base = base_of(tree, url)
        self._meta = read_meta(tree, url, base=self._base)
        self._cards: dict[str, Any] = self._meta["opengraph"]
        titles = [title for title in (text_of(self._cards.get("og:title")), self._meta["title"]) if title]
        links = LinkTargets(url, self._base)
        heading = find_heading(tree, [*titles, *_slug(url)], links)
        names = [folded(heading.text())[:300]] if heading is not None else []
        self._subject = Subject(url=url, names=(*names, *titles), place=_place(url, self._meta["language"]))
        self._layout = Layout(tree, heading, links)
        self._documents = (read_json_ld(tree), read_microdata(tree, self._base), read_rdfa(tree, self._base))

    def product(self) -> dict[str, Any] | None:
        findings = self._findings()
        sources: dict[str, str] = {}
        found: dict[str, Any] = {name: _taken(findings, name, sources) for name in _TEXTS}
        if not found["brand"] and (brand := brand_seen(self._tree, found["name"] or first(self._subject.names))):
            found["brand"], sources["brand"] = brand, "page"
        found["sku"] = _taken(_by_sku_trust(findings), "sku", sources)
        found |= self._price(findings, sources)
        detail = _taken(findings, "availability", sources)
        if detail is None and found["price"] is not None:
            detail, sources["availability"] = "InStock", "assumed"
        confidence = self._confidence(findings)
        if confidence < FLOOR or not _is_product(findings, found, sources):
            return None
        return {
            **found,
            "confidence": round(confidence, 2),
            "name": found["name"] or first(self._subject.names),
            "description": found["description"] or self._meta["description"],
            "availability": in_or_out(detail) if detail else None,
            "availability_detail": detail,
            **self._surroundings(findings, found),
            "sources": sources,
        }

    def _confidence(self, findings: list[ProductFinding]) -> float:
        """The strongest published source, or the sum of the weak signs; less on a page that calls itself an article."""
        weak = [each.confidence for each in findings if each.source in _WEAK]
        strong = [each.confidence for each in findings if each.source not in _WEAK]
        published = max((each.confidence for each in findings if each.source in _PUBLISHED), default=0.0)
        doubt = _ARTICLE_DOUBT if self._is_article() else 0.0
        return min(0.99, max(published, max(strong, default=0.0) - doubt, sum(weak) - doubt))

    def _is_article(self) -> bool:
        if "article" in str(self._cards.get("og:type")).lower():
            return True
        said = (kinds(item) for documents in self._documents for item in items(documents))
        return any(kind.endswith(("Article", "BlogPosting")) for each in said for kind in each)

    def _findings(self) -> list[ProductFinding]:
        """Findings, most trusted first. Reads expensive sources only while a field that they may provide is missing."""
        found = list(self._published())
        if not _knows(found, "price", "currency", "availability", "sku", "brand"):
            state = state_in(self._tree, self._subject)
            found += [state] if state is not None else []
            found.append(loose_in(self._tree, self._layout))
        if not _knows(found, "price", "availability"):
            found.append(seen_in(self._tree, self._layout))
        found.append(labelled_in(self._tree, self._layout, self._subject.url))
        return [*found, ProductFinding(source="url", sku=code_in(self._subject.url))]

    def _published(self) -> Iterator[ProductFinding]:
        kinds = ("json-ld", "microdata", "rdfa")
        for documents, source in zip(self._documents, kinds, strict=True):
            finding = product_in(documents, self._subject, source)
            if finding is not None:
                yield finding
        yield _from_cards(self._cards)

    def _price(self, findings: list[ProductFinding], sources: dict[str, str]) -> dict[str, Any]:
        """Amount and currency of one source; never mixes an amount with another source's currency."""
        priced = [each for each in findings if each.price]
        best = next(iter(priced), next((each for each in findings if each.price is not None), None))
        if best is None:
            return dict.fromkeys(("price", "currency", "list_price", "high_price"))
        if best.price and best.list_price is None:
            best = self._with_list_price(best, best.price)
        sources["price"] = best.source
        named = [best, *(each for each in findings if each is not best)]
        codes = ((each, iso_code(each.currency, self._subject.place)) for each in named if each.currency)
        by, currency = next(((each.source, code) for each, code in codes if code), ("", None))
        if currency:
            sources["currency"] = by
        return {
            "price": _number(best.price),
            "currency": currency,
            "list_price": _number(best.list_price),
            "high_price": _number(best.high_price),
        }

    def _with_list_price(self, finding: ProductFinding, price: Decimal) -> ProductFinding:
        """A published price may be the one that the page strikes out; the other may be struck out beside it."""
        shown = ShownPrices(self._layout)
        if finding.source in _PUBLISHED and (sale := shown.sale(price)):
            return replace(finding, source="page", price=sale, list_price=price)
        return replace(finding, list_price=shown.listed(price))

    def _surroundings(self, findings: list[ProductFinding], found: dict[str, Any]) -> dict[str, Any]:
        trail = first(trail_in(each) for each in self._documents) or trail_seen(self._tree)
        shown = [crumb for crumb in trail if crumb != found["name"]]
        attributes: dict[str, str] = {}
        for finding in findings:
            attributes = {**finding.attributes, **attributes}
        return {
            "category": found["category"] or (shown[-1] if len(shown) > 1 else None),
            "breadcrumbs": trail,
            "images": self._images(findings),
            "attributes": attributes,
            "rating": first(each.rating for each in findings),
            "variants": first(each.variants for each in findings) or [],
        }

    def _images(self, findings: list[ProductFinding]) -> list[str]:
        said = [image for each in findings for image in each.images]
        cards = self._cards.get("og:image") or []
        said += cards if isinstance(cards, list) else [cards]
        return unique((absolute(self._base, image) for image in said), MAX_IMAGES)


def _knows(findings: list[ProductFinding], *names: str) -> bool:
    return all(any(getattr(each, name) for each in findings) for name in names)


def _taken(findings: Sequence[ProductFinding], name: str, sources: dict[str, str]) -> Any:
    for finding in findings:
        value = getattr(finding, name)
        value = _sound(name, value) if isinstance(value, str) else value
        if value:
            sources[name] = finding.source
            return value
    return None


def _sound(name: str, value: str) -> str | None:
    """The value; None for an unfilled template placeholder or a code that is a URL."""
    if _JUNK.search(value) and name != "description":
        return None
    if name in ("sku", "mpn", "gtin", "brand") and (_IDS.match(value) or len(value) > 100):
        return None
    return _BRAND_LABEL.sub("", value) if name == "brand" else value


def _by_sku_trust(findings: list[ProductFinding]) -> list[ProductFinding]:
    """Codes that are both published and visible come first, then visible ones."""
    shown = {code for each in findings for code in each.codes}
    return sorted(
        findings, key=lambda each: (each.sku not in shown or each.source == "page", _SKU_TRUST.index(each.source))
    )


def _is_product(findings: list[ProductFinding], found: dict[str, Any], sources: dict[str, str]) -> bool:
    marked = any(each.source in ("json-ld", "microdata", "rdfa") for each in findings)
    coded = bool(found["sku"]) and sources.get("sku") != "url"
    return marked or found["price"] is not None or (coded and "availability" in sources)


def _from_cards(cards: dict[str, Any]) -> ProductFinding:
    def said(*names: str) -> str | None:
        return next((value for name in names if (value := text_of(cards.get(name)))), None)

    is_product = "product" in str(cards.get("og:type")).lower()
    currency = said("product:sale_price:currency", "product:price:currency", "og:price:currency")
    price = amount_of(said("product:sale_price:amount", "product:price:amount", "og:price:amount"), currency)
    listed = amount_of(said("product:original_price:amount", "product:price:amount", "og:price:amount"), currency)
    return ProductFinding(
        source="opengraph",
        confidence=0.85 if price is not None else 0.6 if is_product else 0.0,
        name=said("og:title") if is_product else None,
        price=price,
        list_price=listed if listed and price and listed > price else None,
        currency=currency,
        availability=availability_of(said("product:availability", "og:availability")),
        condition=said("product:condition"),
        sku=said("product:retailer_item_id", "product:sku", "og:sku", "product:retailer_part_no"),
        mpn=said("product:mfr_part_no"),
        gtin=said("product:ean", "product:upc", "product:isbn", "product:gtin"),
        brand=said("product:brand", "og:brand"),
        category=said("product:category"),
    )


def _place(url: str, language: str | None) -> str:
    """The country of the domain, or of the page's language: `de-CH` is written in Switzerland."""
    try:
        ending = (urlsplit(url).hostname or "").rpartition(".")[2]
    except ValueError:
        ending = ""
    region = (language or "").replace("_", "-").partition("-")[2].lower()
    return ending if len(ending) == 2 else region[:2]


def _slug(url: str) -> list[str]:
    """The words of the address, where it has some: a page's title may be that of the site alone."""
    try:
        path = unquote(urlsplit(url).path)
    except ValueError:
        return []
    words = [re.sub(r"[\W_]+", " ", part).strip() for part in path.split("/")]
    return [max(words, key=len)] if any(each.count(" ") >= 2 for each in words) else []


def _number(amount: Any) -> float | None:
    return float(amount) if amount is not None else None
