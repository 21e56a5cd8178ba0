"""The main part of a page: the box that holds its text, without what surrounds and interrupts it.

Every block of text counts for its box and for all boxes around it: plain words in favour, links against. The box with
the best sum is the main part. Pages without much plain text, such as lists and home pages, have none.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard_sdk.text import BLOCKS

MAX_NODES: Final = 100_000
_MAX_CLIMB: Final = 50
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
_NEAR: Final = 4
"""The heading and boxes around it whose few words count as near to it."""
_FEW: Final = 60
_CONTENT: Final = frozenset({"main", "article", "section"})
"""A header in these is theirs and not the site's."""
_SMALL: Final = frozenset({"p", "h1", "h2", "h3", "li", "tr", "td"})
"""Never a main part themselves, but the box around them may be."""
_LISTS: Final = frozenset({"ul", "ol", "div", "section", "table", "dl", "p"})


@dataclass(slots=True)
class _Box:
    """A block, or an inline element that is noise. The sums are of its own words at first, then of all inside it
    without noise. Other inline elements have no box: their words are the block's."""

    node: LexborNode
    parent: int
    tag: str
    block: int
    """The nearest block, itself included."""
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


def is_in_noise(node: LexborNode) -> bool:
    """Whether a box around the element is noise, by its element, role or name."""
    above = node.parent
    for _ in range(_MAX_CLIMB):
        if above is None or above.tag == "body":
            return False
        if _noise(above, above.tag or ""):
            return True
        above = above.parent
    return False


def _boxes(body: LexborNode) -> list[_Box]:
    """The boxes in order, with their own words. Written out in one loop, because pages have thousands of nodes."""
    boxes = [_Box(body, -1, "body", 0, 0)]
    places = {body.mem_id: 0}  # the box that each element is in; the complement of its number inside a link
    for node in islice(body.traverse(include_text=True), 1, MAX_NODES + 1):
        tag = node.tag or ""
        if tag == "-text":
            text = node.text_content
            if not text or text.isspace():
                continue
            text = text.strip()
            size = len(text) if text.isascii() else len(text.encode())
            place = places[node.parent.mem_id]  # type: ignore[union-attr]
            if place >= 0:
                boxes[boxes[place].block].text += size
            else:
                boxes[boxes[~place].block].links += size
            continue
        place = places[node.parent.mem_id]  # type: ignore[union-attr]
        is_linked = place < 0 or tag == "a"
        at = ~place if place < 0 else place
        noise = _noise(node, tag)
        if tag in BLOCKS:
            boxes.append(_Box(node, at, tag, len(boxes), noise))
            at = len(boxes) - 1
        elif noise:
            boxes.append(_Box(node, at, tag, boxes[at].block, noise))
            at = len(boxes) - 1
        places[node.mem_id] = ~at if is_linked else at
    return boxes


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
    return _NAMED if any(map(_is_noise, names.split())) and not _MAIN_NAME.search(names) else 0


@lru_cache(4096)
def _is_noise(name: str) -> bool:
    return _NOISE_NAME.search(name) is not None


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
    return _with_outer(boxes, next((at for at, box in enumerate(boxes) if box.tag == "h1" and inside[at]), -1))


def _with_outer(boxes: list[_Box], at: int) -> set[int]:
    """The box and those around it, below the body."""
    found = set()
    while at > 0:
        found.add(at)
        at = boxes[at].parent
    return found


def _prune(boxes: list[_Box], root: int, *, guess: bool) -> None:
    """Remove noise from the root.

    If `guess`, also what is noise by its name, and lists of links; else the site's header and the lists of links
    before the first heading.
    """
    head = set[int]() if guess else _site_head(boxes)
    inside = {root}
    for at in range(root + 1, len(boxes)):
        box = boxes[at]
        if box.parent not in inside:
            continue
        if box.noise == _MARKED or at in head or (guess and (box.noise or _is_link_list(box))):
            box.node.decompose()
        else:
            inside.add(at)


def _site_head(boxes: list[_Box]) -> set[int]:
    """What stands before the first heading and is for the whole site: logo, menus. Without a heading, the header.

    A few linked words right beside the heading, such as a brand, belong to it.
    """
    title = next((at for at, box in enumerate(boxes) if box.tag == "h1" and box.all), -1)
    kept = _with_outer(boxes, title)
    near = set(sorted(kept)[-_NEAR:])
    found = set()
    for at, box in enumerate(boxes[: title if title > 0 else len(boxes)]):
        if at in kept:
            continue
        if box.parent in near and box.all < _FEW:
            near.add(at)
        elif (box.tag == "header" and box.text < _LEAST and not _is_in_content(boxes, at)) or (
            title > 0 and _is_link_list(box)
        ):
            found.add(at)
    return found


def _is_in_content(boxes: list[_Box], at: int) -> bool:
    return any(boxes[outer].tag in _CONTENT for outer in _with_outer(boxes, at))


def _is_link_list(box: _Box) -> bool:
    return box.tag in _LISTS and box.score < 0 and box.links > _MOSTLY * (box.links + box.text)
