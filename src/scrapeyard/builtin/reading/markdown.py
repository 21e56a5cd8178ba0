"""A page's main content as Markdown, without navigation and forms."""

from collections.abc import Iterator

from html_to_markdown import ConversionError, ConversionOptions, PreprocessingOptions, convert
from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_MARKDOWN = 1_000_000
_MAX_HTML = 2_000_000
_PIECE = 64 * 1024
"""Characters converted at once. The converter keeps Python's lock; other threads get their turn between pieces."""

_NOISE = 'nav, footer, aside, form, dialog, [role="navigation"], [role="banner"], [role="contentinfo"]'
_CONTAINERS = frozenset({"body", "main", "article", "section", "div"})


def to_markdown(tree: LexborHTMLParser, base: str) -> str:
    """The main part of the page; all of its body where none is marked. The tree is changed.

    Pages without text give an empty string, as do ones nested deeper than about a thousand elements.
    """
    root = _main(tree)
    if root is None:
        return ""
    for node in root.css(_NOISE):
        # css() also returns the root itself when it fits, and without it nothing would be left.
        if node.mem_id != root.mem_id:
            node.decompose()
    options = ConversionOptions(
        extract_metadata=False,
        preprocessing=PreprocessingOptions(preset="standard", remove_navigation=False, remove_forms=True),
        base_url=base,
    )
    pieces = (_convert(html, options) for html in _pieces(root))
    return "\n\n".join(piece.strip() for piece in pieces if piece.strip())[:MAX_MARKDOWN]


def _convert(html: str, options: ConversionOptions) -> str:
    try:
        return convert(html, options).content or ""
    except ConversionError:
        # The converter refuses what looks binary to it; the words are still worth having.
        return LexborHTMLParser(html).text(separator=" ", strip=True)


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    marked = tree.css('main, [role="main"]') or tree.css("article")
    if len(marked) == 1 and marked[0].text(strip=True):
        return marked[0]
    return tree.body


def _pieces(root: LexborNode) -> Iterator[str]:
    piece, room = "", _MAX_HTML
    for html in _blocks(root, depth=0):
        room -= len(html)
        if room < 0:
            break
        if len(piece) + len(html) > _PIECE:
            yield piece
            piece = ""
        piece += html
    yield piece


def _blocks(node: LexborNode, depth: int) -> Iterator[str]:
    html = node.html or ""
    if len(html) <= _PIECE or node.tag not in _CONTAINERS or depth > 20:
        yield html
        return
    for child in node.iter(include_text=True):
        yield from _blocks(child, depth + 1)
