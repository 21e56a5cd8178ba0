"""A product from schema.org items, wherever they were marked up."""

from collections.abc import Iterable, Iterator
from typing import Any

from scrapeyard_sdk.extract.product.values import (
    ProductFinding,
    Subject,
    amount_of,
    availability_of,
    first,
    gtin_of,
    is_name,
    likeness,
    listed,
    same_page,
    text_of,
    unique,
)
from scrapeyard_sdk.extract.structured import items, kinds

Item = dict[str, Any]
_PRODUCTS = frozenset(
    {"product", "productgroup", "individualproduct", "productmodel", "someproducts", "vehicle", "car", "book", "event"}
)
_GTINS = ("gtin", "gtin13", "gtin14", "gtin12", "gtin8", "ean", "isbn")
_OLD_PRICES = frozenset({"listprice", "strikethroughprice", "msrp", "srp", "regularprice", "suggestedretailprice"})
_MAX_OFFERS = 200
_MAX_VARIANTS = 100


def product_in(documents: list[Any], subject: Subject, source: str) -> ProductFinding | None:
    """The product that the page is about; None when there is none among the items."""
    graph = _Graph(documents)
    products = list(graph.products())
    found = max(products, key=lambda item: _fits(graph, item, subject), default=None)
    if found is None:
        return None
    finding = _finding(graph, found, subject, source)
    finding.confidence = _confidence(graph, found, finding, subject)
    if finding.availability and any(_can_be_had(graph, each) for each in products if _is_sibling(each, found)):
        finding.availability = "InStock"
    return finding


def trail_in(documents: list[Any]) -> list[str]:
    """The names of a breadcrumb list, outermost first; empty when there is none."""
    for item in items(documents):
        if "breadcrumblist" in _kinds(item):
            names = unique((_crumb(each) for each in _in_order(listed(item.get("itemListElement")))), 20)
            if names:
                return names
    return []


class _Graph:
    """Items, and an index of those referenced by `@id`."""

    def __init__(self, documents: list[Any]) -> None:
        self.items = list(items(documents))
        self._named = {item["@id"]: item for item in reversed(self.items) if isinstance(item.get("@id"), str)}

    def get(self, item: Item, *names: str) -> Any:
        """The first property present; a bare `@id` reference is resolved, one level deep."""
        return first(self._seen(item.get(name)) for name in names)

    def all(self, item: Item, name: str) -> list[Item]:
        return [seen for each in listed(item.get(name))[:_MAX_OFFERS] if isinstance(seen := self._seen(each), dict)]

    def products(self) -> Iterator[Item]:
        return (item for item in self.items if _kinds(item) & _PRODUCTS)

    def _seen(self, value: Any) -> Any:
        if isinstance(value, dict) and set(value) <= {"@id", "@type"} and isinstance(value.get("@id"), str):
            return self._named.get(value["@id"], value)
        return value


def _kinds(item: Item) -> set[str]:
    return {kind.lower() for kind in kinds(item)}


def _fits(graph: _Graph, item: Item, subject: Subject) -> float:
    """How likely it is the page's own product and not a related one."""
    alike = max((likeness(text_of(item.get("name")), name) for name in subject.names[:2]), default=0.0)
    own = same_page(text_of(graph.get(item, "url", "@id")), subject.url)
    offered = bool(graph.get(item, "offers", "hasVariant"))
    main = "event" not in _kinds(item) and "book" not in _kinds(item)
    return alike * 3 + own * 2 + offered * 2 + main


def _confidence(graph: _Graph, item: Item, finding: ProductFinding, subject: Subject) -> float:
    """News sites publish a subscription, or a book that an article is about, as products."""
    own = is_name(finding.name, subject.names[:2]) or same_page(text_of(graph.get(item, "url", "@id")), subject.url)
    if finding.price is not None or finding.availability:
        return 0.95 if own else 0.6
    if "event" in _kinds(item) or "book" in _kinds(item):
        return 0.3
    known = finding.sku or finding.gtin or finding.mpn or finding.brand or finding.variants or finding.rating
    return (0.8 if known else 0.6) if own else 0.2


def _is_sibling(item: Item, other: Item) -> bool:
    """Sizes and colours are often published as products of the same name."""
    return item is not other and bool(item.get("name")) and item.get("name") == other.get("name")


def _can_be_had(graph: _Graph, item: Item) -> bool:
    return _availability(graph, item, list(_offers(graph, item))) == "InStock"


def _finding(graph: _Graph, item: Item, subject: Subject, source: str) -> ProductFinding:
    group = item
    variants = [each for each in graph.all(item, "hasVariant") if isinstance(each, dict)]
    if variants and not graph.get(item, "offers"):
        item = {**_parent(item), **_own(variants, subject)}
    offers = list(_offers(graph, item))
    offer = _best(offers)
    finding = ProductFinding(
        source=source,
        name=text_of(group.get("name")) or text_of(item.get("name")),
        sku=text_of(graph.get(item, "sku"))
        or text_of(offer.get("sku"))
        or text_of(graph.get(item, "productID", "productId")),
        gtin=first(gtin_of(each.get(name)) for each in (item, offer) for name in _GTINS),
        mpn=text_of(graph.get(item, "mpn")),
        brand=text_of(graph.get(item, "brand", "manufacturer")),
        category=text_of(graph.get(item, "category")),
        description=text_of(graph.get(item, "description")),
        condition=_last_word(graph.get(offer, "itemCondition") or item.get("itemCondition")),
        availability=_availability(graph, item, offers),
        images=unique((_image(graph, each) for each in listed(graph.get(item, "image"))), 50),
        rating=_rating(graph, item),
        attributes=_attributes(graph, item),
        variants=[_variant(graph, each) for each in variants[:_MAX_VARIANTS]],
    )
    _price(graph, finding, offer, text_of(first(each.get("priceCurrency") for each in (*offers, item))))
    return finding


def _parent(group: Item) -> Item:
    return {name: value for name, value in group.items() if name in ("brand", "description", "category", "image")}


def _own(variants: list[Item], subject: Subject) -> Item:
    """The variant that the address names, or else the first."""
    for variant in variants:
        link, sku = text_of(variant.get("url")), text_of(variant.get("sku"))
        if (link and link == subject.url) or (sku and len(sku) > 3 and sku in subject.url):
            return variant
    return variants[0]


def _offers(graph: _Graph, item: Item) -> Iterator[Item]:
    """Each offer, followed by the offers inside it. A product with its own price counts as an offer."""
    for offer in graph.all(item, "offers"):
        yield offer
        yield from graph.all(offer, "offers")
    if item.get("price") is not None:
        yield item


def _best(offers: list[Item]) -> Item:
    """The first available offer with a price; else the first with a price; else the first."""
    priced = [offer for offer in offers if _has_price(offer)]
    ready = [offer for offer in priced if availability_of(offer.get("availability")) == "InStock"]
    return next(iter((*ready, *priced, *offers)), {})


def _has_price(offer: Item) -> bool:
    return any(offer.get(name) not in (None, "") for name in ("price", "lowPrice", "priceSpecification", "highPrice"))


def _price(graph: _Graph, finding: ProductFinding, offer: Item, currency: str | None) -> None:
    """Price and currency of the offer; `currency` is for one that names none."""
    specs = sorted(graph.all(offer, "priceSpecification"), key=_is_conditional)
    said = text_of(first(each.get("priceCurrency") for each in (offer, *specs)))
    finding.currency = currency = said or currency
    finding.price = amount_of(offer.get("price"), currency)
    for spec in specs:
        amount = amount_of(first((spec.get("price"), spec.get("minPrice"))), currency)
        if str(_last_word(spec.get("priceType"))).lower() in _OLD_PRICES:
            finding.list_price = finding.list_price or amount
        elif finding.price is None:
            finding.price = amount
    low, high = (amount_of(offer.get(name), currency) for name in ("lowPrice", "highPrice"))
    if finding.price is None:
        finding.price = low if low is not None else high
    finding.high_price = high if high != finding.price else None


def _is_conditional(spec: Item) -> bool:
    """Whether it is the price of a kilogram, for members, or of several pieces."""
    return any(spec.get(name) for name in ("referenceQuantity", "validForMemberTier", "eligibleQuantity"))


def _availability(graph: _Graph, item: Item, offers: list[Item]) -> str | None:
    """The product's availability; one available offer is enough."""
    said = [word for each in (*offers, item) if (word := availability_of(graph.get(each, "availability")))]
    return "InStock" if "InStock" in said else first(said)


def _rating(graph: _Graph, item: Item) -> dict[str, Any] | None:
    rating = graph.get(item, "aggregateRating")
    rating = rating[0] if isinstance(rating, list) and rating else rating
    if not isinstance(rating, dict):
        return None
    value, count = amount_of(rating.get("ratingValue")), amount_of(graph.get(rating, "ratingCount", "reviewCount"))
    if value is None:
        return None
    best = amount_of(rating.get("bestRating"))
    return {
        "value": float(value),
        "best": float(best) if best else None,
        "count": int(count) if count is not None else None,
    }


def _attributes(graph: _Graph, item: Item) -> dict[str, str]:
    named = ((text_of(each.get("name")), text_of(each.get("value"))) for each in graph.all(item, "additionalProperty"))
    plain = (
        (name, text_of(item.get(name)))
        for name in ("color", "size", "material", "pattern", "weight", "width", "height")
    )
    return {name: value for name, value in (*plain, *named) if name and value}


def _variant(graph: _Graph, item: Item) -> dict[str, Any]:
    offer = _best(list(_offers(graph, item)))
    price = amount_of(first((offer.get("price"), offer.get("lowPrice"))), text_of(offer.get("priceCurrency")))
    return {
        "name": text_of(item.get("name")),
        "sku": text_of(item.get("sku")) or text_of(offer.get("sku")),
        "price": float(price) if price is not None else None,
        "availability": availability_of(offer.get("availability")),
    }


def _image(graph: _Graph, image: Any) -> str | None:
    if isinstance(image, dict):
        return text_of(graph.get(image, "contentUrl", "url", "@id"))
    return text_of(image)


def _last_word(value: Any) -> str | None:
    said = text_of(value)
    return said.rstrip("/").rpartition("/")[2] or None if said else None


def _in_order(elements: Iterable[Any]) -> list[Item]:
    found = [each for each in elements if isinstance(each, dict)]
    return sorted(found, key=lambda each: amount_of(each.get("position")) or 0)


def _crumb(element: Item) -> str | None:
    inner = element.get("item")
    return text_of(element.get("name")) or (text_of(inner.get("name")) if isinstance(inner, dict) else None)
