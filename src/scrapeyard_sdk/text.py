"""The text a reader sees, from a parsed HTML tree. Works on selectolax nodes without importing selectolax."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

_BREAK = "\v"
_UNSEEN = frozenset({"script", "style", "noscript", "template", "title", "head"})
_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    }
)


def lines(node: Any, most: int | None = None) -> list[str]:
    """The text of a node and all below it, one entry for each block, white space folded, no empty entries.

    Inline elements join as they stand (`J<b>o</b>hn` is one word); the text of scripts and styles is left out. No more
    than `most` nodes are looked at; None: all.
    """
    return lines_in(islice(node.traverse(include_text=True), most), node)


def lines_in(nodes: Iterable[Any], root: Any) -> list[str]:
    """The same for nodes in order, of which `root` is the first."""
    pieces = "".join(_piece(each, root) for each in nodes)
    folded = (" ".join(piece.split()) for piece in pieces.split(_BREAK))
    return [line for line in folded if line]


def _piece(node: Any, root: Any) -> str:
    tag, before = node.tag, node.prev
    gap = _BREAK if tag in _BLOCKS or (before is not None and before.tag in _BLOCKS) else ""
    if tag != "-text":
        return gap
    parent = node.parent
    if parent is not None and parent.tag in _UNSEEN and parent.mem_id != root.mem_id:
        return gap
    return gap + (node.text_content or "")
