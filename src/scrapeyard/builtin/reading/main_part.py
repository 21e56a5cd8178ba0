"""The main part of a page: the box that holds its text, without what surrounds and interrupts it.

Every block of text counts for its box and for all boxes around it: plain words in favour, links against. The box with
the best sum is the main part. Pages without much plain text, such as lists and home pages, have none.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard_sdk.text import BLOCKS

MAX_NODES: Final = 100_000
_MARGIN: Final = 15
"""Bytes that a block must have to count in favour: buttons, dates and captions have fewer. Bytes and not characters,
because Chinese or Korean says more in a character than English."""
_LINK_WEIGHT: Final = 1.5
_LEAST: Final = 250
"""Bytes of plain text that a main part has at least."""
_LEAST_SHARE: Final = 0.4
"""A box with a smaller share of what counts in favour is one part of many."""
_NEARLY: Final = 0.94
"""A box around the best one is taken instead if it has this share of the best sum: it may have the first lines."""
_NEARLY_WITH_TITLE: Final = 0.7
"""The same for a box that also has the page's heading."""
_LARGE: Final = 0.4
"""A box with this share of all text on the page is no noise, whatever it is called."""
_MOSTLY: Final = 0.5
"""A list with this share of its words in links is a list of links."""
_MARKED, _NAMED = 1, 2
"""Noise by its element or role, and noise by its class or id. The latter is a guess."""

_NOISE_TAGS: Final = frozenset({"nav", "footer", "aside", "form", "dialog", "menu", "button", "select", "textarea"})
_NOISE_ROLES: Final = frozenset(
    {"navigation", "banner", "contentinfo", "complementary", "search", "dialog", "menu", "menubar", "alert"}
)
_NOISE_NAME: Final = re.compile(
    r"(?<![a-z])(?:share|sharing|social|related|recommend\w*|newsletter|subscri\w+|comments?|disqus|respond|sidebar|"
    r"side-?bar|breadcrumbs?|footer|navigation|navbar|nav|menu|cookies?|consent|gdpr|popup|modal|promo\w*|sponsor\w*|"
    r"advert\w*|ads?|banner|widget|toolbar|pagination|pager|skip-?link|tags?-?(?:list|cloud)|taglist|most-?(?:read|popular)|"
    r"trending|outbrain|taboola|byline-?social|print-?only|noprint|read-?(?:more|next)|more-?(?:stories|news|articles)|"
    r"see-?also|author-?(?:bio|box)|signup|sign-?up|login|paywall|teasers?|masthead|site-?header|page-?header|"
    r"post-?(?:meta|tags|navigation)|entry-?(?:meta|footer)|editsection|mw-editsection|toc|infobox-?nav|navbox)(?![a-z])",
    re.IGNORECASE,
)
_MAIN_NAME: Final = re.compile(
    r"(?<![a-z])(?:article|story|post|entry|main|content|body|text)(?:$|[-_ ]?(?:body|content|text|main|inner|wrap\w*))"
    r"(?![a-z])|articlebody",
    re.IGNORECASE,
)
_CELLS: Final = frozenset({"td", "th", "dt", "dd", "code"})
_KEPT: Final = frozenset({"html", "body", "main", "article", "h1"})
_NEVER_LARGE: Final = frozenset({"nav", "dialog", "menu", "button", "select", "textarea"})
_SMALL: Final = frozenset({"p", "h1", "h2", "h3", "li", "tr", "td"})
"""Never a main part themselves, but the box around them may be."""
_LISTS: Final = frozenset({"ul", "ol", "div", "section", "table", "dl", "p"})


@dataclass(slots=True)
class _Box:
    """An element. The sums are of its own words at first, then of all inside it without noise."""

    node: LexborNode
    parent: int
    tag: str
    block: int
    """The nearest block, itself included."""
    linked: bool
    noise: int
    text: int = 0
    links: int = 0
    score: float = 0.0
    good: float = 0.0
    """The blocks that count in favour, alone."""
    all: int = 0
    """Words and links, also of noise inside."""


def find_main(tree: LexborHTMLParser) -> LexborNode | None:
    """The element that holds the main text, or the body where no part stands out, without noise. Changes the tree.

    None for a page without a body.
    """
    body = tree.body
    if body is None:
        return None
    boxes = _boxes(body)
    _sum_up(boxes)
    best = _best(boxes)
    _prune(boxes, best or 0, guess=best is not None)
    return boxes[best or 0].node


def _boxes(body: LexborNode) -> list[_Box]:
    boxes: list[_Box] = []
    places: dict[int, int] = {}
    for order, node in enumerate(body.traverse(include_text=True)):
        if order > MAX_NODES:
            break
        above = node.parent
        parent = places.get(above.mem_id, -1) if above is not None else -1
        tag = node.tag or ""
        if tag == "-text":
            if parent >= 0:
                _count(boxes, parent, node.text_content or "")
            continue
        places[node.mem_id] = len(boxes)
        boxes.append(_new(boxes, node, parent, tag))
    return boxes


def _new(boxes: list[_Box], node: LexborNode, parent: int, tag: str) -> _Box:
    if parent < 0:
        return _Box(node, parent, tag, len(boxes), False, 0)
    outer = boxes[parent]
    return _Box(
        node,
        parent,
        tag,
        len(boxes) if tag in BLOCKS else outer.block,
        outer.linked or tag == "a",
        _noise(node, tag),
    )


def _count(boxes: list[_Box], parent: int, text: str) -> None:
    size = len(text.strip().encode())
    if not size:
        return
    block = boxes[boxes[parent].block]
    if boxes[parent].linked:
        block.links += size
    else:
        block.text += size


def _noise(node: LexborNode, tag: str) -> int:
    if tag in _NOISE_TAGS:
        return _MARKED
    if tag in _KEPT:
        return 0
    attributes = node.attributes
    if not attributes:
        return 0
    if "role" in attributes and (attributes["role"] or "").lower() in _NOISE_ROLES:
        return _MARKED
    if attributes.get("aria-hidden") == "true":
        return _NAMED
    return _noise_by_name(f"{attributes.get('class') or ''} {attributes.get('id') or ''}"[:300])


@lru_cache(4096)
def _noise_by_name(names: str) -> int:
    """Cached, because the elements of a page share a few names."""
    return _NAMED if len(names) > 1 and _NOISE_NAME.search(names) and not _MAIN_NAME.search(names) else 0


def _sum_up(boxes: list[_Box]) -> None:
    """Each box's text, links and score, with those of all boxes inside it."""
    for box in boxes:
        if box.text or box.links:
            margin = 0 if box.tag in _CELLS else _MARGIN
            box.score = box.text - _LINK_WEIGHT * box.links - margin
            box.all = box.text + box.links
            box.good = max(box.score, 0)
    for box in reversed(boxes):
        if box.parent >= 0:
            boxes[box.parent].all += box.all
    large = _LARGE * boxes[0].all
    for box in reversed(boxes):
        if box.noise and box.all > large and box.tag not in _NEVER_LARGE:
            box.noise = 0
        if box.parent >= 0 and not box.noise:
            outer = boxes[box.parent]
            outer.text += box.text
            outer.links += box.links
            outer.score += box.score
            outer.good += box.good


def _best(boxes: list[_Box]) -> int | None:
    inside: list[bool] = []
    for box in boxes:
        inside.append(not box.noise and (box.parent < 0 or inside[box.parent]))
    blocks = (at for at, box in enumerate(boxes) if box.block == at and inside[at])
    best = max(blocks, key=lambda at: (boxes[at].score, at))
    while boxes[best].tag in _SMALL and boxes[best].parent > 0:
        best = boxes[best].parent
    if boxes[best].text < _LEAST or boxes[best].good < _LEAST_SHARE * boxes[0].good:
        return None
    return _widened(boxes, best, _around_title(boxes, inside))


def _widened(boxes: list[_Box], best: int, titled: set[int]) -> int:
    """The outermost box around the best one, below the body, that is nearly as good."""
    most, at = boxes[best].score, best
    while (at := boxes[at].parent) > 0:
        share = _NEARLY_WITH_TITLE if at in titled else _NEARLY
        if boxes[at].block == at and boxes[at].score >= share * most:
            best = at
    return best


def _around_title(boxes: list[_Box], inside: list[bool]) -> set[int]:
    at = next((at for at, box in enumerate(boxes) if box.tag == "h1" and inside[at]), -1)
    found = set()
    while at > 0:
        found.add(at)
        at = boxes[at].parent
    return found


def _prune(boxes: list[_Box], root: int, *, guess: bool) -> None:
    """Remove noise from the root; if `guess`, also what is noise by its name, and lists of links."""
    inside = {root}
    for at in range(root + 1, len(boxes)):
        box = boxes[at]
        if box.parent not in inside:
            continue
        if box.noise == _MARKED or (guess and (box.noise or _is_link_list(box))):
            box.node.decompose()
        else:
            inside.add(at)


def _is_link_list(box: _Box) -> bool:
    return box.tag in _LISTS and box.score < 0 and box.links > _MOSTLY * (box.links + box.text)
