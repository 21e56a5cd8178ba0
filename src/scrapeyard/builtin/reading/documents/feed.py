"""RSS, RDF and Atom feeds: the feed's own fields and its entries."""

import re
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

from scrapeyard.builtin.pages.port import RawPage
from scrapeyard.builtin.reading.documents.document import Document, DocumentRefused
from scrapeyard_sdk.extract import parse_date
from scrapeyard_sdk.extract.lenient_json import clean

MAX_ENTRIES = 1000
_MAX_FIELD = 20_000
_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{1,2000}>")
_NAMES = {
    "title": ("title",),
    "summary": ("description", "summary", "subtitle"),
    "content": ("encoded", "content"),
    "author": ("author", "creator"),
    "id": ("guid", "id"),
}
_DATES = {"published": ("pubDate", "published", "date", "issued"), "updated": ("updated", "lastBuildDate", "modified")}


def read_feed(page: RawPage) -> Document:
    """`data` has the feed and its `entries`. Raises DocumentRefused for XML that is broken or declares entities."""
    if _ENTITY.search(page.body):
        raise DocumentRefused("it declares entities, which can grow without bound")
    try:
        root = ET.fromstring(page.body)  # noqa: S314 - without entities there is nothing to expand
    except (ET.ParseError, ValueError, LookupError) as error:
        raise DocumentRefused(f"its XML is broken: {error}") from None
    channel = next((node for node in root if _name(node) == "channel"), root)
    found = [node for node in root.iter() if _name(node) in ("item", "entry")]
    entries = [_entry(node, page.url) for node in found[:MAX_ENTRIES]]
    feed = _entry(channel, page.url)
    warnings = [f"only the first {MAX_ENTRIES} of {len(found):,} entries are read"] if len(found) > MAX_ENTRIES else []
    return Document(
        title=feed["title"],
        text="\n".join(filter(None, (_plain(each["title"]) for each in (feed, *entries)))),
        markdown=_markdown(feed, entries),
        links=list(dict.fromkeys(each["url"] for each in entries if each["url"])),
        data={**feed, "entries": entries},
        warnings=warnings,
    )


def _entry(node: ET.Element, base: str) -> dict[str, Any]:
    children: dict[str, ET.Element] = {}
    for child in node:
        children.setdefault(_name(child), child)
    told = {ours: _first(children, names) for ours, names in _NAMES.items()}
    dates = {ours: _date(_first(children, names)) for ours, names in _DATES.items()}
    tags = [_said(child) or child.get("term") for child in node if _name(child) in ("category", "subject")]
    return {"url": _link(node, base), **told, **dates, "tags": [tag for tag in tags if tag][:50]}


def _name(node: ET.Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _first(children: dict[str, ET.Element], names: tuple[str, ...]) -> str | None:
    return next((said for name in names if name in children and (said := _said(children[name]))), None)


def _said(node: ET.Element) -> str | None:
    """All text inside: Atom's authors have a name inside, and its content may be XHTML."""
    return clean("".join(node.itertext())).strip()[:_MAX_FIELD] or None


def _date(text: str | None) -> str | None:
    found = parse_date(text)
    return found.isoformat() if found is not None else None


def _link(node: ET.Element, base: str) -> str | None:
    """The entry's own address: RSS has it as text, Atom as an attribute of the `alternate` link."""
    links = [child for child in node if _name(child) == "link"]
    best = next((each for each in links if each.get("rel", "alternate") == "alternate"), None)
    written = (best.get("href") or best.text or "").strip() if best is not None else ""
    try:
        link = clean(urljoin(base, written)) if written else ""
    except ValueError:
        return None
    return link if link.startswith(("http://", "https://")) else None


def _markdown(feed: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    lines = [f"# {_plain(feed['title'])}"] if feed["title"] else []
    lines += [_plain(feed["summary"])] if feed["summary"] else []
    for entry in entries:
        title = _plain(entry["title"]) or entry["url"] or "…"
        title = title.replace("[", "\\[").replace("]", "\\]")
        lines.append(f"## [{title}]({entry['url']})" if entry["url"] else f"## {title}")
        lines += [entry["published"]] if entry["published"] else []
        lines += [said] if (said := _plain(entry["summary"] or entry["content"])) else []
    return "\n\n".join(lines)


def _plain(text: str | None) -> str:
    """Without the tags that feeds carry in their text."""
    return " ".join(_TAG.sub(" ", text or "").split())
