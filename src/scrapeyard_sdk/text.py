"""The text a reader sees, from a parsed HTML tree. Works on selectolax nodes without importing selectolax."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

_BREAK = "\v"
_UNSEEN = frozenset({"script", "style", "noscript", "template", "title", "head"})
BLOCKS = frozenset(
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


_APART = frozenset({"a", "button", "label"})
"""Inline elements that stand apart on a page even with nothing between them."""
_INDENT = "\0"
_MAX_CLIMB = 10


def lines(node: Any, most: int | None = None, *, indent: bool = False) -> list[str]:
    """The text of a node and all below it, one entry for each block, white space folded, no empty entries.

    Inline elements join as they stand (`J<b>o</b>hn` is one word), except links and buttons side by side. Each line of
    `<pre>` is an entry of its own, with its leading blanks if `indent`. The text of scripts and styles is left out. No
    more than `most` nodes are looked at; None: all.
    """
    return lines_in(islice(node.traverse(include_text=True), most), node, indent=indent)


def lines_in(nodes: Iterable[Any], root: Any, *, indent: bool = False) -> list[str]:
    """The same for nodes in order, of which `root` is the first."""
    pieces = "".join(_pieces(nodes, root, indent))
    folded = (" ".join(piece.split()) for piece in pieces.split(_BREAK))
    return [line.replace(_INDENT, " ") for line in folded if line.strip(_INDENT)]


def _pieces(nodes: Iterable[Any], root: Any, indent: bool) -> Iterator[str]:
    formatted = False
    for node in nodes:
        tag = node.tag
        if tag in BLOCKS:
            formatted = formatted or tag == "pre"
            yield _BREAK
            continue
        before = node.prev
        beside = before.tag if before is not None else ""
        if beside in BLOCKS:
            yield _BREAK
        elif tag in _APART and beside in _APART:
            yield " "
        if tag == "-text" and _is_seen(node, root):
            text = node.text_content or ""
            yield _formatted(text, indent) if formatted and "\n" in text and _is_in_pre(node) else text


def _is_seen(node: Any, root: Any) -> bool:
    parent = node.parent
    return parent is None or parent.tag not in _UNSEEN or parent.mem_id == root.mem_id


def _is_in_pre(node: Any) -> bool:
    above = node.parent
    for _ in range(_MAX_CLIMB):
        if above is None or above.tag == "pre":
            break
        above = above.parent
    return above is not None and above.tag == "pre"


def _formatted(text: str, indent: bool) -> str:
    first, *rest = text.split("\n")
    return _BREAK.join((first, *(_indented(line) if indent else line for line in rest)))


def _indented(line: str) -> str:
    line = line.expandtabs(4)
    return _INDENT * (len(line) - len(line.lstrip())) + line.lstrip()


def clean(text: str) -> str:
    """The same text without lone surrogates, which no encoding takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
