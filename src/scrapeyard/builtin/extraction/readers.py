"""The first step: values that a page states for machines, and what the readers of products and heads find in it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from scrapeyard.builtin.extraction.confidence import DESCRIBED, STRUCTURED, Candidate
from scrapeyard.builtin.extraction.fields import FieldSpec, read_text
from scrapeyard.builtin.extraction.places import StatedPlace, StatedPlaces
from scrapeyard_sdk.extract.page import base_of, read_headings, read_meta
from scrapeyard_sdk.extract.patterns.tree import PageTree
from scrapeyard_sdk.extract.structured import items, kinds, read_json_ld, read_microdata, read_rdfa

_PRODUCT = {
    "name": ("name", "title", "product", "product_name", "product_title", "item_name"),
    "price": ("price", "amount", "cost", "current_price", "sale_price"),
    "currency": ("currency", "price_currency"),
    "list_price": ("list_price", "old_price", "original_price", "regular_price", "msrp"),
    "availability": ("availability", "in_stock", "available", "stock", "is_available"),
    "sku": ("sku", "item_number", "article_number"),
    "gtin": ("gtin", "ean", "upc", "isbn", "barcode", "isbn13", "isbn_13"),
    "mpn": ("mpn", "part_number", "manufacturer_part_number"),
    "brand": ("brand", "manufacturer", "brand_name"),
    "category": ("category",),
    "condition": ("condition",),
    "description": ("description", "product_description"),
    "images": ("images", "image", "image_url", "picture", "photo"),
}
"""Fields of the product reader, and the names that people give them."""
_META = {
    "title": ("title", "headline", "name"),
    "description": ("description", "summary"),
    "canonical": ("url", "canonical", "canonical_url", "link"),
    "language": ("language", "lang"),
}
_SCHEMA_ORG = {
    "author": ("author", "author_name", "writer", "byline"),
    "datePublished": ("date", "published", "published_at", "date_published", "publication_date", "release_date"),
    "dateModified": ("modified", "date_modified", "updated", "updated_at"),
    "headline": ("title", "headline"),
    "ratingValue": ("rating", "rating_value", "average_rating", "stars", "score"),
    "reviewCount": ("reviews", "review_count", "rating_count", "number_of_reviews"),
    "director": ("director",),
    "genre": ("genre", "genres"),
    "telephone": ("phone", "telephone", "phone_number"),
    "streetAddress": ("street", "street_address"),
    "addressLocality": ("city",),
    "postalCode": ("postal_code", "zip", "zip_code"),
    "publisher": ("publisher",),
    "jobTitle": ("job_title",),
    "hiringOrganization": ("company", "employer"),
    "servesCuisine": ("cuisine",),
}
"""Properties of schema.org under other names than their own."""
_SUBJECTS = frozenset(
    {"Product", "Article", "NewsArticle", "BlogPosting", "Book", "Movie", "Recipe", "Event", "JobPosting", "Person"}
    | {"Restaurant", "LocalBusiness", "Organization", "Place", "Car", "Vehicle", "SoftwareApplication", "Course"}
    | {"TVSeries", "VideoObject", "MusicAlbum", "Hotel", "CollegeOrUniversity", "ProductGroup", "Offer"}
    | {"AggregateRating", "PostalAddress"}
)
"""What a page may be about. Crumbs, sites and search boxes are not."""
_PRODUCT_OF = {name: field for field, names in _PRODUCT.items() for name in names}
_META_OF = {name: field for field, names in _META.items() for name in names}
_PLACE_NAMES = {
    "price": ("price", "lowPrice", "amount"),
    "list_price": ("price", "highPrice", "amount"),
    "currency": ("priceCurrency", "currency"),
    "gtin": ("gtin", "gtin13", "gtin12", "gtin14", "gtin8", "isbn", "ean", "upc"),
    "sku": ("sku", "productID", "retailer_item_id"),
    "images": ("image", "og", "thumbnailUrl"),
    "condition": ("itemCondition", "condition"),
}
"""Names that a product's fields have in the page, where they are not their own."""
_MAX_TEXT = 2000
_NAMING = ("name", "@value", "value", "url", "ratingValue", "@id")
"""What an item is called by, where a plain value is wanted."""
_Stated = Iterator[tuple[FieldSpec, str, Any, tuple[str, ...]]]
"""Field, source, value, and names that the value's place may have."""


def read_stated(source: str, url: str, fields: Sequence[FieldSpec], page: PageTree) -> dict[str, list[Candidate]]:
    """Candidates by field, each with its place in the page."""
    tree = LexborHTMLParser(source)
    base = base_of(tree, url)
    places = StatedPlaces(tree, page)
    found: dict[str, list[Candidate]] = {}
    taken = set[tuple[str, str]]()
    stated = (_of_items(tree, base, fields), _of_product(tree, url, fields), _of_meta(tree, url, base, fields))
    for number, each in enumerate(stated):
        for field, kind, value, names in each:
            if (number == 0 and (field.name, kind) in taken) or (read := _typed(value, field, base)) is None:
                continue
            taken.add((field.name, kind))
            found.setdefault(field.name, []).append(_candidate(field, read, kind, places.find(kind, value, names)))
    return found


def _of_items(tree: LexborHTMLParser, base: str, fields: Sequence[FieldSpec]) -> _Stated:
    kinds_of = (
        ("json-ld", read_json_ld(tree)),
        ("microdata", read_microdata(tree, base)),
        ("rdfa", read_rdfa(tree, base)),
    )
    for kind, documents in kinds_of:
        about = [item for item in items(documents) if kinds(item) & _SUBJECTS]
        for field in fields:
            for name in _properties(_plain_name(field.name)):
                value = next((item[name] for item in about if item.get(name) not in (None, "", [])), None)
                if value is not None:
                    yield field, kind, _flat(value), (name,)


def _properties(name: str) -> Iterator[str]:
    """Names that schema.org may have for a field."""
    first, *rest = name.split("_")
    yield first + "".join(word.capitalize() for word in rest)
    yield from (known for known, names in _SCHEMA_ORG.items() if name in names)


def _flat(value: Any) -> Any:
    """A property as plain values: of an item its name, value or address."""
    if isinstance(value, list):
        return [flat for each in value[:100] if (flat := _flat(each)) not in (None, "")]
    if isinstance(value, dict):
        return next((value[key] for key in _NAMING if key in value), None)
    return value


def _of_product(tree: LexborHTMLParser, url: str, fields: Sequence[FieldSpec]) -> _Stated:
    if not any(_plain_name(field.name) in _PRODUCT_OF for field in fields):
        return
    from scrapeyard_sdk.extract.product.product import read_product  # noqa: PLC0415 - its words load slowly

    product = read_product(tree, url)
    if product is None:
        return
    for field in fields:
        name = _PRODUCT_OF.get(_plain_name(field.name), "")
        if not name:
            continue
        source = product["sources"].get(name, "meta" if name in ("name", "description") else "page")
        value = product.get(name)
        if name == "availability" and field.kind != "bool":
            value = product.get("availability_detail") or value
        yield field, source, value, _PLACE_NAMES.get(name, (name,))


def _of_meta(tree: LexborHTMLParser, url: str, base: str, fields: Sequence[FieldSpec]) -> _Stated:
    if not any(_plain_name(field.name) in _META_OF for field in fields):
        return
    meta = read_meta(tree, url, base=base)
    headings = read_headings(tree)["h1"]
    for field in fields:
        match _META_OF.get(_plain_name(field.name)):
            case "title" if len(headings) == 1:
                yield field, "page", headings[0], ("h1",)
            case "title":
                yield field, "meta", meta["opengraph"].get("og:title") or meta["title"], ("title",)
            case None:
                continue
            case name:
                yield field, "meta", meta.get(name), (name,)


def _candidate(field: FieldSpec, value: Any, source: str, place: StatedPlace | None) -> Candidate:
    worth = STRUCTURED.get(source, 0.7)
    first = value[0] if isinstance(value, list) else value
    return Candidate(
        value=value,
        how="structured",
        reliability=min(worth, DESCRIBED) if field.description else worth,
        text=place.text if place is not None else str(first)[:_MAX_TEXT],
        selector=place.selector if place is not None else "",
        json_path=place.json_path if place is not None else "",
    )


def _typed(value: Any, field: FieldSpec, base: str) -> Any:
    """A stated value as the field's kind; None if it is not of that kind, or several where one is wanted."""
    listed = value if isinstance(value, list) else [value]
    read = [each for one in listed if (each := _one(one, field, base)) is not None]
    if field.many:
        return read or None
    return read[0] if read and (len(read) == 1 or field.kind == "url") else None


def _one(value: Any, field: FieldSpec, base: str) -> Any:
    if isinstance(value, bool):
        return value if field.kind == "bool" else None
    if field.kind in ("number", "integer") and isinstance(value, (int, float)):
        return int(value) if value == int(value) else value if field.kind == "number" else None
    if value in (None, "") or isinstance(value, (dict, list)):
        return None
    return read_text(str(value)[:_MAX_TEXT], field.kind, base)


def _plain_name(name: str) -> str:
    """`productName` and `Product.name` are `product_name` and `name`."""
    last = name.rpartition(".")[2]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
