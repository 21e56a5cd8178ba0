"""What can be read of a page, by name. Without the readers, so that who only describes pages need not load them."""

PARTS = ("links", "text", "markdown", "anchors", "images", "structured", "product", "article")
"""The large fields, which are there only when asked for."""
DEFAULT = ("links", "text", "markdown")
FIELDS = (
    *("title", "description", "h1", "canonical", "language", "keywords", "robots", "hreflang", "opengraph", "twitter"),
    *("meta", "headings", "word_count", "text_hash"),
)
"""What every page has."""
MAX_TEXT = 1_000_000
