"""The columns of exports, in their order."""

from typing import Final, Literal

from msgspec import Struct

Kind = Literal["text", "number", "integer", "boolean"]
Cell = str | int | float | bool | None
Row = list[Cell]
"""Values in column order. It may be shorter: missing values are None."""


class Column(Struct, frozen=True):
    """One column."""

    name: str
    kind: Kind = "text"


_ITEM: Final = (
    Column("item_status"),
    Column("exit_reason"),
    Column("error"),
    Column("attempts", "integer"),
    Column("depth", "integer"),
    Column("referrer"),
)
"""How the item ended and where its URL was found: what there is to know of a page that failed."""
FULL: Final = (
    Column("url"),
    Column("final_url"),
    Column("http_status", "integer"),
    Column("fetched_at"),
    Column("title"),
    Column("h1"),
    Column("price", "number"),
    Column("currency"),
    Column("availability"),
    Column("sku"),
    Column("brand"),
    Column("category"),
    Column("breadcrumbs"),
    Column("images"),
    Column("attrs_json"),
    Column("text_hash"),
    *_ITEM,
    Column("strategy_used"),
    Column("proxy_used"),
)
PAGES: Final = (
    Column("url"),
    Column("final_url"),
    Column("http_status", "integer"),
    Column("fetched_at"),
    Column("title"),
    Column("description"),
    Column("h1"),
    Column("canonical"),
    Column("language"),
    Column("word_count", "integer"),
    Column("text_hash"),
    *_ITEM,
    Column("markdown"),
    Column("duplicate_of"),
)
SEO: Final = (
    Column("url"),
    Column("fetched_at"),
    Column("title"),
    Column("meta_description"),
    Column("h1"),
    Column("og_title"),
    Column("og_description"),
    Column("og_image"),
    Column("twitter_title"),
    Column("twitter_description"),
    Column("canonical"),
    Column("robots"),
    Column("hreflang"),
    Column("images_alt_joined"),
    Column("http_status", "integer"),
    Column("redirect_url"),
    Column("word_count", "integer"),
    Column("size", "integer"),
    Column("indexable", "boolean"),
    Column("indexability"),
    *_ITEM,
)
DIFF: Final = (
    Column("url"),
    Column("prev_crawl_at"),
    Column("curr_crawl_at"),
    Column("change_type"),
    Column("fields_changed"),
    Column("price_prev", "number"),
    Column("price_curr", "number"),
    Column("availability_prev"),
    Column("availability_curr"),
    Column("title_prev"),
    Column("title_curr"),
    Column("reason"),
)
LINKS: Final = (
    Column("source_url"),
    Column("target_url"),
    Column("anchor_text"),
    Column("rel"),
    Column("internal", "boolean"),
    Column("target_status", "integer"),
    Column("target_exit_reason"),
    Column("broken", "boolean"),
    Column("redirect_url"),
    Column("redirect_chain"),
    Column("redirects", "integer"),
    Column("target_inlinks", "integer"),
)
FIXED: Final = {"full": FULL, "pages": PAGES, "seo": SEO, "diff": DIFF, "links": LINKS}
PARTS_OF: Final = {
    "full": ("product", "images"),
    "seo": ("images",),
    "diff": ("product", "images"),
    "links": ("anchors",),
}
"""What an export shows of a page beside its head: parts that `builtin/page` extracts on request."""
ON_REQUEST: Final = frozenset({"product", "images", "anchors", "links"})
"""Parts of a page that are there only if they were asked for."""
_PRODUCT: Final = ("price", "currency", "availability", "sku", "brand", "category", "breadcrumbs", "attrs_json")
_SAME: Final = ("title", "h1", "canonical", "robots", "hreflang", "word_count", "size")
FIELDS_OF: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "full": {
        "h1": ("h1",),
        **dict.fromkeys(_PRODUCT, ("product",)),
        "images": ("images", "product"),
        "text_hash": ("text_hash",),
    },
    "seo": {
        **{name: (name,) for name in _SAME},
        "meta_description": ("description",),
        **dict.fromkeys(("og_title", "og_description", "og_image"), ("opengraph",)),
        **dict.fromkeys(("twitter_title", "twitter_description"), ("twitter",)),
        "images_alt_joined": ("images",),
    },
    "links": {
        "source_url": ("links", "anchors"),
        "target_url": ("links", "anchors"),
        "anchor_text": ("anchors",),
        "rel": ("anchors",),
    },
}
"""By export and column: the fields of a page that fill it, any of them."""
