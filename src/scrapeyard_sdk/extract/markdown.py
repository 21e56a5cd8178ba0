"""A page as Markdown: its main part, or all of it."""

from collections.abc import Iterator
from dataclasses import replace

from html_to_markdown import (
    CodeBlockStyle,
    ConversionError,
    ConversionOptions,
    HeadingStyle,
    HiddenContent,
    HighlightStyle,
    InlineDataMedia,
    LinkStyle,
    ListIndentType,
    NewlineStyle,
    OutputFormat,
    PreprocessingOptions,
    PreprocessingPreset,
    TierStrategy,
    UrlEscapeStyle,
    WhitespaceMode,
    convert,
)
from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard_sdk.extract.main_part import find_main, is_in_noise

MAX_MARKDOWN = 1_000_000
_MAX_HTML = 2_000_000
_PIECE = 64 * 1024
"""Characters converted at once. The converter holds the GIL; other threads run between pieces."""
_CONTAINERS = frozenset({"body", "main", "article", "section", "div", "form"})
_CONTROLS = "button, input, select, textarea, datalist"
_MEDIA = "img, video, audio, picture, iframe"
_NO_LINK = ("javascript:", "data:", "vbscript:", "#")


_OPTIONS = ConversionOptions(
    # The library's own defaults: by name, each would be looked up again for every page.
    heading_style=HeadingStyle.ATX,
    list_indent_type=ListIndentType.SPACES,
    highlight_style=HighlightStyle.DOUBLE_EQUAL,
    whitespace_mode=WhitespaceMode.NORMALIZED,
    newline_style=NewlineStyle.SPACES,
    code_block_style=CodeBlockStyle.BACKTICKS,
    inline_data_media=InlineDataMedia.KEEP,
    hidden_content=HiddenContent.DROP,
    url_escape_style=UrlEscapeStyle.ANGLE,
    link_style=LinkStyle.INLINE,
    output_format=OutputFormat.MARKDOWN,
    tier_strategy=TierStrategy.AUTO,
    # Ours.
    extract_metadata=False,
    preprocessing=PreprocessingOptions(
        preset=PreprocessingPreset.STANDARD, remove_navigation=False, remove_forms=False
    ),
    sup_symbol="<sup>",
    sub_symbol="<sub>",
)


def to_markdown(tree: LexborHTMLParser, base: str, *, whole: bool = False) -> str:
    """Markdown of the page's main part under its heading; of all that is visible if `whole`. Changes the tree.

    A page in which no part stands out is taken whole, without navigation and footer. Pages without text give an empty
    string, as do ones nested deeper than about a thousand elements.
    """
    heading = _heading(tree)
    root = tree.body if whole else find_main(tree)
    if root is None:
        return ""
    if root.tag == "body" or root.css_first("h1") is not None:
        heading = ""
    _tidy(root)
    options = replace(_OPTIONS, base_url=base)
    pieces = (_convert(html, options) for html in _pieces(root, heading) if html)
    return "\n\n".join(piece.strip() for piece in pieces if piece.strip())[:MAX_MARKDOWN]


def _heading(tree: LexborHTMLParser) -> str:
    """The first `h1` with words, as HTML; one in a menu or a dialog only if there is no other."""
    titles = [node for node in tree.css("h1") if node.text(strip=True)]
    title = next((node for node in titles if not is_in_noise(node)), titles[0] if titles else None)
    if title is None:
        return ""
    if any(True for _ in title.iter()):
        _tidy(title)
    return title.html or ""


def _tidy(root: LexborNode) -> None:
    """Remove form controls, links that lead nowhere or have no words, images without an address, empty list items."""
    # Inner nodes come first: one that is gone with its parent must not be removed again.
    for node in reversed(root.css(f"{_CONTROLS}, img, a, li")):
        if node.tag == "a":
            _tidy_link(node)
        elif not (_has_address(node) if node.tag == "img" else node.tag == "li" and _shows(node)):
            node.decompose()


def _has_address(image: LexborNode) -> bool:
    attributes = image.attributes
    source = (attributes.get("src") or "").strip()
    lazy = any("src" in name and name != "src" and value for name, value in attributes.items())
    return lazy or bool(source and not source.startswith("data:"))


def _tidy_link(node: LexborNode) -> None:
    href = (node.attributes.get("href") or "").strip().lower()
    if not _shows(node):
        node.decompose()
    elif not href or href.startswith(_NO_LINK):
        node.unwrap()


def _shows(node: LexborNode) -> bool:
    return bool(node.text(strip=True)) or node.css_first(_MEDIA) is not None


def _convert(html: str, options: ConversionOptions) -> str:
    try:
        return convert(html, options).content or ""
    except ConversionError:
        # The converter refuses what looks binary to it; the words are still worth having.
        return LexborHTMLParser(html).text(separator=" ", strip=True)


def _pieces(root: LexborNode, piece: str) -> Iterator[str]:
    """The HTML in pieces of a convenient size, of which the first begins with `piece`."""
    room = _MAX_HTML
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
