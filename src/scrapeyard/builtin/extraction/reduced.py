"""A page as a model gets it: numbered pieces of text, so that an answer can name the piece that it is from.

What a reader cannot see is left out, and so is text that speaks to a model instead of to readers: a page may carry
orders. That list of phrases cannot be complete. What bounds an order that slips through is what follows: a model has no
tools, and its answers count only as quotes of the page.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard_sdk.extract.patterns.tree import PageTree, fold

MAX_PIECES = 5000
"""Of a page that are shown to a model."""
MAX_PIECE = 2000
"""Characters of a piece that are kept; a model sees fewer."""
_SHOWN = 400
_MENU = 6
"""So many links in a row are a menu."""
_LINKS = {"a": "href", "img": "src", "time": "datetime"}
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "big", "cite", "code", "em", "font", "i", "ins", "mark", "q", "s", "small", "span"}
    | {"strong", "sub", "sup", "time", "u", "var", "wbr", "del", "kbd", "label", "data"}
)
_ASIDE = frozenset({"nav", "footer", "aside", "form", "select", "button", "menu"})
_ASIDE_NAMES = re.compile(
    r"\b(?:nav|menu|footer|breadcrumbs?|cookie|banner|sidebar|related|newsletter)\b", re.IGNORECASE
)
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}|(?:max-)?(?:height|width)\s*:\s*0(?![.\d])|clip\s*:\s*rect\(0",
    re.IGNORECASE,
)
_META = ("og:title", "og:description", "description", "author", "article:published_time", "og:price:amount")
_MODEL = r"(?:ai|llm|gpt|language|model|assistant|chatbot|bot|crawler|scraper|agent|automated|machine|extract)"
_HIDDEN_WORDS = r"(?:api\s*keys?|credentials?|passwords?|secrets?|environment\s+variables?|(?:system|your)\s+prompt)"
_PHRASES = (
    r"\b(?:ignore|disregard|forget|override|bypass|skip)\b[^.!?\n]{0,60}\b"
    r"(?:instruction|prompt|rule|direction|guideline|order|context|schema|message|above|previous)",
    r"\b(?:system|developer|hidden|secret|initial)\s*-?\s*(?:prompt|message|instruction|override|note\s+to)",
    r"\b(?:you\s+are|act\s+as|behave\s+as|pretend\s+to\s+be|roleplay)\b[^.!?\n]{0,40}\b"
    r"(?:ai|assistant|model|bot|chatbot|agent|llm|gpt|extractor|machine|developer\s+mode|dan)\b",
    r"\b(?:ai|llm|gpt|language\s+model|assistant|chatbot|crawler|scraper|extraction\s+(?:tool|system|agent))s?\b"
    r"[^.!?\n]{0,50}\b(?:must|should|shall|please|need\s+to|have\s+to|are\s+required|reading\s+this|instruct)",
    r"\b(?:note|attention|message|instructions?|warning|notice|important|reminder)\s*(?:to|for)\s+"
    rf"(?:the\s+|all\s+|any\s+)?{_MODEL}",
    r"\b(?:answer|respond|reply|output|return|print|say|report|extract|write|set|use|give|emit|produce)\b[^.!?\n]{0,60}"
    r"\b(?:instead\s+of|as\s+the\s+(?:value|answer|price|title|result|field)|in\s+(?:the\s+|your\s+)?"
    r"(?:json|answer|response|output|field)|for\s+(?:the\s+|every\s+|all\s+|each\s+)?(?:field|value|json|key|property)"
    r"|only\s+the\s+(?:word|string|value)|the\s+following\s+(?:json|value|text))",
    r"\bnew\s+(?:instruction|task|rule|order|objective)s?\b",
    r"\b(?:real|actual|true|correct)\s+(?:task|instruction)s?\b",
    r"\b(?:your|the)\s+(?:true\s+|real\s+|new\s+)?(?:task|instructions?|prompt|answer|output|response)\s+"
    r"(?:is|are|must|should|has|have)\b",
    r"\b(?:call|invoke|execute|run|use)\s+(?:the\s+|a\s+|your\s+)?(?:tool|function|shell|command|code|browser|api)",
    rf"\b{_HIDDEN_WORDS}\b[^.!?\n]{{0,60}}\b(?:reveal|print|send|include|output|show|leak|exfiltrate)",
    rf"\b(?:reveal|print|send|include|output|show|leak|repeat)\b[^.!?\n]{{0,40}}\b(?:{_HIDDEN_WORDS}|instructions)",
    r"<\|[a-z_]{2,30}\|>",
    r"\[/?(?:INST|SYS)\]|<</?SYS>>",
    r"\b(?:BEGIN|END)\s+(?:OF\s+)?(?:PAGE|DATA|SYSTEM|PROMPT)\b",
    r"^\s*(?:system|assistant|developer|human|user)\s*:",
    r"\bprompt\s*injection\b|\bjailbreak",
    r"(?:ignorier|vergiss|ignora|olvida|ignorez|oubliez)\w*\b[^.!?\n]{0,60}(?:anweisung|instruc|consigne|befehl)",
    r"(?:이전|위의|앞선)[^.!?\n]{0,20}(?:지시|명령|프롬프트)[^.!?\n]{0,12}(?:무시|잊)",
    r"(?:忽略|无视|忘记)[^。!?\n]{0,20}(?:指令|指示|提示|说明)",
)
"""How texts speak that are meant for a model."""
_ORDERS = re.compile("|".join(f"(?:{phrase})" for phrase in _PHRASES), re.IGNORECASE)
_LETTERS = re.compile(r"[\u200b-\u200f\u2060-\u2064\u00ad\ufeff\U000e0000-\U000e007f]")
"""Characters without a shape, which can hide an order or split its words."""


class PagePiece(Struct, frozen=True):
    """One numbered piece of a page."""

    text: str
    xpath: str
    tag: str = ""
    link: str = ""
    """Where it leads, or what picture or moment it is."""
    aside: bool = False
    """Whether it likely belongs to a menu or a footer."""
    link_xpath: str = ""
    """Where `link` stands."""

    def place_of(self, quote: str) -> str:
        """XPath of the node that has a quote; empty if that is spread over text and link."""
        words = fold(quote).casefold()
        places = ((self.text, self.xpath), (self.link, self.link_xpath))
        return next((xpath for text, xpath in places if words in fold(text).casefold()), "")


def pieces_of(tree: PageTree) -> list[PagePiece]:
    """The pieces of a page in its order: blocks of text, cells of tables, pictures, and what the head says. Of a page
    with more than MAX_PIECES, one more than that."""
    found = (each for each in (*_head(tree), *_body(tree)) if not is_order(each.text) and not is_order(each.link))
    return _without_menus([*islice(found, MAX_PIECES + 1)])


def _without_menus(pieces: list[PagePiece]) -> list[PagePiece]:
    """With long rows of links marked as aside."""
    kept, row = list[PagePiece](), list[PagePiece]()
    for piece in (*pieces, None):
        if piece is not None and piece.link and piece.tag in ("a", "li"):
            row.append(piece)
            continue
        kept += [replace(each, aside=True) for each in row] if len(row) >= _MENU else row
        row = []
        if piece is not None:
            kept.append(piece)
    return kept


def is_order(text: str) -> bool:
    """Whether a text speaks to a model."""
    return _ORDERS.search(_LETTERS.sub("", text)) is not None


def shown(pieces: list[PagePiece], room: int, *, links: bool = False) -> tuple[str, int]:
    """The pieces as lines, `[number] tag: text`. Where they do not all fit, menus and footers go first, then the end.
    With `links`, each tells where it leads. Also, how many pieces are left out, without those of menus and footers."""
    lines = [f"[{number}] {_line(piece, links)}" for number, piece in enumerate(pieces, 1)]
    left, kept = room, set[int]()
    for aside in (False, True):
        for number, piece in enumerate(pieces):
            if piece.aside is aside and len(lines[number]) < left:
                kept.add(number)
                left -= len(lines[number]) + 1
    left_out = sum(not piece.aside and number not in kept for number, piece in enumerate(pieces))
    return "\n".join(lines[number] for number in sorted(kept)), left_out


def _line(piece: PagePiece, links: bool) -> str:
    text = piece.text if len(piece.text) <= _SHOWN else f"{piece.text[:_SHOWN]}…"
    return f"{piece.tag}: {text}" + (f" → {piece.link[:200]}" if piece.link and (links or piece.tag == "time") else "")


def _head(tree: PageTree) -> Iterator[PagePiece]:
    for element in tree.elements("//head/title"):
        yield from _piece("".join(element.itertext()), element, "title")
    for element in tree.elements("//meta[@content]"):
        name = (element.get("property") or element.get("name") or "").lower()
        if name in _META:
            for piece in _piece(element.get("content"), element, f"meta {name}"):
                yield replace(piece, xpath=f"{piece.xpath}/@content")


def _body(tree: PageTree) -> Iterator[PagePiece]:
    root = next(iter(tree.elements("//body")), None)
    places = _Places(root) if root is not None else None
    block, texts = None, list[str]()
    for place in tree.texts:
        if places is None or place.element.tag in ("title", "head"):
            continue
        around = places.block(place.element)
        if around is not block:
            yield from _closed(block, texts, places)
            block, texts = around, []
        texts.append(place.text)
    if places is not None:
        yield from _closed(block, texts, places)
    for element in tree.elements("//body//img[@src]")[:100]:
        if places is not None and not places.is_hidden(element):
            alt = fold(element.get("alt") or "")
            yield PagePiece(
                alt[:MAX_PIECE],
                f"{path_of(element)}/@alt",
                "img",
                (element.get("src") or "")[:500],
                places.aside(element),
                f"{path_of(element)}/@src",
            )


def _closed(block: Any, texts: list[str], places: "_Places") -> Iterator[PagePiece]:
    if block is None or places.is_hidden(block):
        return
    yield from _piece(" ".join(texts), block, block.tag, aside=places.aside(block))


def _piece(text: str, element: Any, tag: str, *, aside: bool = False) -> Iterator[PagePiece]:
    text = fold(text)
    if text:
        linked = next((child for child in (element, *element.iterchildren()) if _link(child)), None)
        where = f"{path_of(linked)}/@{_LINKS[linked.tag]}" if linked is not None else ""
        link = _link(linked) if linked is not None else ""
        yield PagePiece(text[:MAX_PIECE], path_of(element), tag, link, aside, where)


def _link(element: Any) -> str:
    name = _LINKS.get(element.tag) if isinstance(element.tag, str) else None
    return (element.get(name) or "")[:500] if name else ""


class _Places:
    """What stands around an element; each is looked at once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._hidden: dict[Any, bool] = {}
        self._aside: dict[Any, bool] = {}

    def block(self, element: Any) -> Any:
        """The element whose text is one piece: the next above that is not part of a line."""
        while element.tag in _INLINE and element.getparent() is not None and element is not self._root:
            above = element.getparent()
            if above.tag not in _INLINE and (above.tag in ("body", "li", "td") or _has_blocks(above)):
                return element
            element = above
        return element

    def is_hidden(self, element: Any) -> bool:
        """Whether a reader cannot see it."""
        return self._with_those_above(element, self._hidden, _is_hidden)

    def aside(self, element: Any) -> bool:
        """Whether it stands in a menu, a footer or a form."""
        return self._with_those_above(element, self._aside, _is_aside)

    def _with_those_above(self, element: Any, known: dict[Any, bool], is_so: Any) -> bool:
        line = []
        while element is not None and element not in known:
            line.append(element)
            element = element.getparent()
        answer = known[element] if element is not None else False
        for each in reversed(line):
            answer = known[each] = answer or is_so(each)
        return answer


def _has_blocks(element: Any) -> bool:
    return any(isinstance(child.tag, str) and child.tag not in _INLINE and child.tag != "br" for child in element)


def _is_hidden(element: Any) -> bool:
    return (
        element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or bool(_HIDDEN_STYLE.search(element.get("style") or ""))
    )


def _is_aside(element: Any) -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''} {element.get('role') or ''}"
    return element.tag in _ASIDE or bool(_ASIDE_NAMES.search(names))


def path_of(element: Any) -> str:
    """An XPath to the element: from the nearest one with an id."""
    steps: list[str] = []
    while element is not None:
        given = element.get("id")
        if given and "'" not in given:
            return "/".join([f"//*[@id='{given}']", *reversed(steps)])
        before = sum(1 for each in element.itersiblings(element.tag, preceding=True))
        steps.append(f"{element.tag}[{before + 1}]")
        element = element.getparent()
    return "/" + "/".join(reversed(steps))
