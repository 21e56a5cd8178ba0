"""The main text of a page, and who wrote it when. By trafilatura, where it is installed."""

import json
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.credits import read_credits
from scrapeyard_sdk.extract.lenient_json import clean
from scrapeyard_sdk.extract.page import base_of, drop_unseen, read_meta

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_HTML = 2_000_000
"""Characters looked at."""
MAX_TEXT = 1_000_000
_MAX_JSON = 100_000
_CHATTER = ("trafilatura", "htmldate", "courlan", "justext")
_FIELDS = ("title", "author", "date", "language", "description", "sitename", "image")


def read_article(tree: "LexborHTMLParser", url: str) -> dict[str, Any] | None:
    """The page's main text without what surrounds it; None for a page that has none.

    Raises RuntimeError, which says what to do, where trafilatura is not installed.
    """
    try:
        trafilatura = import_module("trafilatura")
    except ImportError:
        raise RuntimeError(
            "article needs trafilatura, which is not installed; add it to the scraper's requirements, "
            "or run on the worker: pip install 'scrapeyard[article]'"
        ) from None
    for name in _CHATTER:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a page without an article is no error
    found = trafilatura.bare_extraction(
        _source(tree), url=url, with_metadata=True, include_comments=False, include_formatting=False
    )
    text = clean(found.text or "")[:MAX_TEXT] if found is not None else ""
    if not text:
        return None
    said = {name: clean(str(getattr(found, name)))[:2000] if getattr(found, name) else None for name in _FIELDS}
    tags = [clean(str(tag))[:200] for tag in (*(found.categories or ()), *(found.tags or ()))][:50]
    return {**said, **_own(tree, url, said), "tags": tags, "text": text}


def _own(tree: "LexborHTMLParser", url: str, said: dict[str, Any]) -> dict[str, Any]:
    """What the page says of itself, where it does; and its main part as Markdown."""
    found = read_credits(tree, url)
    authors = found["authors"] or [name.strip() for name in (said["author"] or "").split(";") if name.strip()]
    published = found["published"] or said["date"]
    return {
        "author": "; ".join(authors) or None,
        "authors": authors,
        "date": published[:10] if published else None,
        "published": published,
        "modified": found["modified"],
        "language": said["language"] or (read_meta(tree, url)["language"] or "").partition("-")[0] or None,
        "markdown": _markdown(tree, url),
    }


def _markdown(tree: "LexborHTMLParser", url: str) -> str | None:
    """None where html-to-markdown is not installed."""
    try:
        from scrapeyard_sdk.extract.markdown import to_markdown
    except ImportError:
        return None
    copy = type(tree)(tree.html or "")
    return to_markdown(drop_unseen(copy), base_of(copy, url))[:MAX_TEXT]


def _source(tree: "LexborHTMLParser") -> str:
    """The page as the parser understood it: the library refuses pages without `<html>` or `<body>`.

    Of its scripts only valid JSON-LD stays, because a broken script can keep the library's patterns busy for minutes.
    """
    copy = type(tree)(tree.html or "")  # clone() fails on pages with some legal doctypes
    for node in copy.css("script"):
        if "ld+json" not in (node.attributes.get("type") or "") or not _is_sound(node.text()):
            node.decompose()
    return (copy.html or "")[:MAX_HTML]


def _is_sound(text: str) -> bool:
    try:
        json.loads(text[:_MAX_JSON])
    except (ValueError, RecursionError):
        return False
    return True
