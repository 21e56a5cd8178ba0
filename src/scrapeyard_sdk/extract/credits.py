"""Who wrote a page, and when: what it publishes for machines first, then its byline, then its address."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.dates import parse_date
from scrapeyard_sdk.extract.page import folded
from scrapeyard_sdk.extract.structured import items, kinds, read_json_ld

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_AUTHORS = 20
MAX_NAME = 100
_ARTICLES = re.compile(r"Article$|Posting$|^(?:Report|Recipe|WebPage|CreativeWork|Blog|NewsStory|TechArticle)$")
_AUTHOR_METAS = (
    *("author", "article:author", "parsely-author", "dc.creator", "dcterms.creator", "citation_author", "byl"),
    *("sailthru.author", "book:author", "cxenseparse:author", "dc.contributor"),
)
_PUBLISHED_METAS = (
    *("article:published_time", "datepublished", "og:article:published_time", "parsely-pub-date", "sailthru.date"),
    *("citation_publication_date", "citation_date", "dc.date.issued", "dcterms.created", "dcterms.date", "dc.date"),
    *("publishdate", "publish-date", "pubdate", "date", "article.published", "cxenseparse:recs:publishtime"),
)
_MODIFIED_METAS = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified")
_BYLINE = '[rel~="author"], [itemprop="author"], [class*="byline" i], [class*="author" i], [id*="byline" i]'
_DATED = '[itemprop="datePublished"], time[pubdate], article time[datetime], main time[datetime], time[datetime]'
_DATE_NAMED = '[class*="date" i], [class*="publish" i], [class*="posted" i], [class*="byline" i], [id*="date" i]'
_NOT_HERE = re.compile(
    r"comment|related|sidebar|footer|widget|recommend|teaser|bio|avatar|card|review|rating|opinion|testimonial|feedback",
    re.IGNORECASE,
)
_BY = re.compile(
    r"^(?:written by|posted by|story by|words by|by|von|par|por|di|de|door|av|af|przez|autor(?:in)?|auteur|autore|"
    r"author|автор|yazar|작성자|기자|著者|作者)\s*[:：]?\s+",
    re.IGNORECASE,
)
_CUT = re.compile(r"\s*(?:[|•·—–]|\s-\s|\bon\b|\bupdated\b|\bpublished\b|\bposted\b|\d).*$", re.IGNORECASE | re.DOTALL)
_AND = re.compile(r"\s*(?:,|;|&|\band\b|\bund\b|\bet\b|\by\b|\be\b)\s*")
_IN_URL = re.compile(r"/((?:19|20)\d\d)[/-](0?[1-9]|1[0-2])(?:[/-](0?[1-9]|[12]\d|3[01]))?(?=[/-]|$)")
_CLIMB = 6


def read_credits(tree: "LexborHTMLParser", url: str) -> dict[str, Any]:
    """`authors`, and `published` and `modified` as ISO 8601; None where the page does not say."""
    said = [item for item in items(read_json_ld(tree)) if any(_ARTICLES.search(kind) for kind in kinds(item))][:20]
    said.sort(key=lambda item: "WebPage" in kinds(item))
    metas = _metas(tree)
    return {
        "authors": _authors(tree, said, metas),
        "published": _published(tree, said, metas, url),
        "modified": _first_date((*_texts(said, "dateModified"), *(metas.get(name, "") for name in _MODIFIED_METAS))),
    }


def _metas(tree: "LexborHTMLParser") -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree.css("meta[content]")[:500]:
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        key, value = name.strip().lower(), folded(attributes.get("content") or "")
        if key in found and key == "citation_author":
            found[key] += f"; {value}"
        elif key:
            found.setdefault(key, value)
    return found


def _authors(tree: "LexborHTMLParser", said: list[dict[str, Any]], metas: dict[str, str]) -> list[str]:
    ways: Iterable[Iterable[str]] = (
        (name for item in said for name in _names(item.get("author") or item.get("creator"))),
        (name for key in _AUTHOR_METAS for name in _split(metas.get(key, ""))),
        (name for node in _near(tree, _BYLINE) for name in _in_byline(node)),
    )
    for way in ways:
        found = list(dict.fromkeys(filter(None, map(_name, way))))[:MAX_AUTHORS]
        if found:
            return found
    return []


def _names(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield from _names(each.get("name"))
        elif isinstance(each, str):
            yield from _split(each)


def _split(text: str) -> list[str]:
    """`A. Smith, B. Jones` are two; `Smith, Anna` in a catalogue is one."""
    if ";" in text:
        return text.split(";")
    parts = [part for part in _AND.split(_BY.sub("", text.strip())) if part]
    return [text] if len(parts) == 2 and all(" " not in part for part in parts) else parts


def _in_byline(node: "LexborNode") -> list[str]:
    inner = node.css_first('[itemprop="name"], [rel~="author"]')
    text = folded((inner or node).text())[:300]
    shown = _CUT.sub("", _BY.sub("", text))
    return _split(shown)


def _name(text: str) -> str | None:
    name = folded(text).strip(" ,;:|")[: MAX_NAME + 1]
    words = name.split()
    if not words or len(name) > MAX_NAME or len(words) > 6 or "://" in name or name.startswith("@"):
        return None
    return name if any(letter.isalpha() for letter in name) and not _BY.fullmatch(f"{name} ") else None


def _near(tree: "LexborHTMLParser", selector: str) -> "Iterator[LexborNode]":
    """Matches that do not stand in comments, teasers and the like."""
    for node in tree.css(selector)[:40]:
        place: LexborNode | None = node
        for _ in range(_CLIMB):
            if place is None or place.tag in ("body", "html"):
                yield node
                break
            if place.tag in ("footer", "aside") or _NOT_HERE.search(_named(place)):
                break
            place = place.parent
        else:
            yield node


def _named(node: "LexborNode") -> str:
    attributes = node.attributes
    return " ".join(attributes.get(name) or "" for name in ("class", "id", "itemprop", "itemtype"))


def _published(tree: "LexborHTMLParser", said: list[dict[str, Any]], metas: dict[str, str], url: str) -> str | None:
    stated = _first_date((*_texts(said, "datePublished"), *(metas.get(name, "") for name in _PUBLISHED_METAS)))
    return stated or _shown_date(tree) or _date_in(url) or _first_date(_texts(said, "dateCreated"))


def _texts(said: list[dict[str, Any]], name: str) -> list[str]:
    return [item[name] for item in said if isinstance(item.get(name), str)]


def _shown_date(tree: "LexborHTMLParser") -> str | None:
    for node in _near(tree, _DATED):
        attributes = node.attributes
        if found := _first_date(
            (attributes.get("datetime") or attributes.get("content") or folded(node.text())[:100],)
        ):
            return found
    for node in _near(tree, _DATE_NAMED):
        if found := _first_date((folded(node.text())[:120],)):
            return found
    return None


def _first_date(texts: Iterable[str]) -> str | None:
    for text in texts:
        found = parse_date(text[:120]) if text else None
        if found is not None and 1990 <= found.year <= 2100:
            return _written(found)
    return None


def _written(found: date) -> str:
    midnight = (
        isinstance(found, datetime) and found.tzinfo is None and (found.hour, found.minute, found.second) == (0, 0, 0)
    )
    return found.date().isoformat() if midnight and isinstance(found, datetime) else found.isoformat()


def _date_in(url: str) -> str | None:
    match = _IN_URL.search(url)
    if match is None or match[3] is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).isoformat()
    except ValueError:
        return None
