"""A page as clean HTML: without scripts, styles and tracking, with absolute links; and parts of a page by selectors."""

import re
from collections.abc import Sequence
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard_sdk.extract.main_part import find_main
from scrapeyard_sdk.extract.page import MAX_LINK, image_source

_GONE = "script, style, noscript, template, iframe, frame, object, embed, link, base, meta, svg, canvas"
_KEPT_ATTRIBUTES = frozenset(
    {"href", "src", "alt", "title", "id", "class", "name", "lang", "dir", "datetime", "cite", "value"}
    | {"colspan", "rowspan", "scope", "headers", "span", "start", "reversed", "type", "open", "width", "height"}
    | {"action", "method", "for", "rel", "controls", "poster", "label", "itemprop", "itemscope", "itemtype", "role"}
)
_ADDRESSES = ("href", "src", "action", "poster", "cite")
_SCRIPTED = re.compile(r"^[\s\x00-\x1f]*(?:javascript|vbscript|data)\s*:", re.IGNORECASE)
_TINY = frozenset({"0", "1"})
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def clean_html(html: str, base: str, *, main_only: bool) -> str:
    """The page, or its main part: no scripts, styles, frames, tracking pixels, comments and event handlers; links are
    absolute, and those that run a script lead nowhere."""
    tree = LexborHTMLParser(html)
    root = find_main(tree) if main_only else tree.root
    if root is None:
        return ""
    for node in reversed(root.css(_GONE)):
        node.decompose()
    for node in root.css("img"):
        if _is_pixel(node):
            node.decompose()
        elif late := image_source(node.attributes):
            node.attrs["src"] = late
    for node in root.css("*"):
        _clean_attributes(node, base)
    return _COMMENT.sub("", root.html or "")


def narrowed(
    tree: LexborHTMLParser, include: Sequence[str], exclude: Sequence[str], warnings: list[str]
) -> LexborHTMLParser:
    """The tree with only those parts of its body that `include` selects and `exclude` does not; the tree itself if both
    are empty. Warns of a selector that matches nothing."""
    if not include and not exclude:
        return tree
    copy = LexborHTMLParser(tree.html or "")
    for selector in exclude:
        _drop(copy, selector)
    if not include:
        return copy
    chosen: list[LexborNode] = []
    for selector in include:
        found = [node for node in copy.css(selector) if node.tag not in ("html", "head")]
        if not found:
            warnings.append(f"include_tags: {selector!r} matches nothing")
        chosen += found
    return LexborHTMLParser(f"<html><head></head><body>{_outermost(copy, chosen)}</body></html>")


def _drop(tree: LexborHTMLParser, selector: str) -> None:
    # Inner nodes come first: one that is gone with its parent must not be removed again.
    for node in reversed(tree.css(selector)):
        if node.tag not in ("html", "body"):
            node.decompose()


def _outermost(tree: LexborHTMLParser, chosen: list[LexborNode]) -> str:
    """The HTML of the chosen elements in the order of the page, each once."""
    wanted = {node.mem_id for node in chosen}
    pieces: list[str] = []
    taken: set[int] = set()
    for node in tree.root.traverse() if tree.root is not None and wanted else ():
        above = node.parent
        if above is not None and above.mem_id in taken:
            taken.add(node.mem_id)
        elif node.mem_id in wanted:
            taken.add(node.mem_id)
            pieces.append(_in_context(node))
    return "".join(pieces)


_CONTEXT = {
    **dict.fromkeys(("tr",), ("<table><tbody>", "</tbody></table>")),
    **dict.fromkeys(("td", "th"), ("<table><tbody><tr>", "</tr></tbody></table>")),
    **dict.fromkeys(("thead", "tbody", "tfoot", "caption", "colgroup"), ("<table>", "</table>")),
    **dict.fromkeys(("option", "optgroup"), ("<select>", "</select>")),
}
"""What must stand around an element for a parser to accept it."""


def _in_context(node: LexborNode) -> str:
    """The HTML of an element, so that it can be parsed alone."""
    before, after = _CONTEXT.get(node.tag or "", ("", ""))
    return f"{before}{(node.inner_html if node.tag == 'body' else node.html) or ''}{after}"


def _is_pixel(image: LexborNode) -> bool:
    attributes = image.attributes
    sizes = [(attributes.get(name) or "").strip().removesuffix("px") for name in ("width", "height")]
    return all(size in _TINY for size in sizes)


def _clean_attributes(node: LexborNode, base: str) -> None:
    for name, value in node.attributes.items():
        if name not in _KEPT_ATTRIBUTES:
            del node.attrs[name]
        elif name in _ADDRESSES and value is not None:
            if _SCRIPTED.match(value) or len(value) > MAX_LINK:
                del node.attrs[name]
            elif not value.strip().startswith("#"):
                node.attrs[name] = _absolute(base, value)


def _absolute(base: str, link: str) -> str:
    """Absolute with its fragment: a reader may follow it."""
    try:
        return urljoin(base, link.strip())
    except ValueError:
        return link
