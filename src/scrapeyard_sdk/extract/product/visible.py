"""A product from what a reader sees: the price near the heading, labelled numbers, words about stock, buttons."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from scrapeyard_sdk.extract import currencies
from scrapeyard_sdk.extract.prices import parse_price
from scrapeyard_sdk.extract.product import words
from scrapeyard_sdk.extract.product.layout import AREA, ASIDE, NOW, OLD, OTHER, PRICE, Layout, Position
from scrapeyard_sdk.extract.product.values import ProductFinding

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_BOXES = 400
_MAX_PRICE_TEXT = 60
_NEAR = 600
"""The product's own price is usually within this many nodes after the heading."""
_STOCK_TEXTS = 400
_MAX_STOCK_TEXT = 100
_BUTTONS = "button, input[type=submit], input[type=button], input[type=image], a[class], a[id]"
_MAX_BUTTONS = 1000
_MAX_TEXTS = 20_000
_MAX_SHORT = 30
_CROWD = 5
_BESIDE = 15
"""Nodes between a price and the old one that it replaces."""
_SURE = 4.0
"""The weight of an amount with its currency in a box named for a price, near the heading."""
_OF_ANOTHER = 5.0
_NUMBERS = re.compile(r"\d[\d.,' ]*")
_DIFFERENCE = re.compile(r"\(?(?:[-\u2212\u2013](?! )|\+)\s?\D?\s?\d")
"""What an option adds or takes off: `(-40.00€)`, `+ 5 €`."""
_BARE = re.compile(r"[\d.,' ]+")
_CENTS = re.compile(r"^\d{2}$")
_DIGIT = re.compile(r"\d")
_DECIMALS = re.compile(r"[.,]\d")


@dataclass(frozen=True, slots=True)
class _Offer:
    amount: Decimal
    sign: str | None
    weight: float
    name: str
    """What the box is called; empty for a text in no price box, or in one that says it is not the price."""
    card: str | None
    """The other page that the box around it shows in small."""


def seen_in(tree: "LexborHTMLParser", layout: Layout) -> ProductFinding:
    """What the page shows; counts only text near the heading and outside lists of other products."""
    finding = ProductFinding(source="page")
    best = _best(list(_offers(layout)))
    if best is not None:
        finding.price, finding.currency = best.amount, best.sign
        finding.confidence = (0.5 if best.weight >= _SURE else 0.35) if best.name else 0.2
    finding.availability = _availability(tree, layout)
    finding.confidence += 0.3 if finding.availability else 0.0
    return finding


class ShownPrices:
    """The prices that a page shows in boxes named for them or struck out, except those beside the product."""

    def __init__(self, layout: Layout) -> None:
        boxes = ((each, _price_text(layout, each)) for each in islice(layout.boxes, _MAX_BOXES))
        texts = ((each, each.text) for each in layout.texts[:_MAX_TEXTS] if each.flags & OLD)
        seen = [(place, text) for place, text in (*boxes, *texts) if text and not place.flags & ASIDE]
        self._layout = layout
        self._shown = [(place, amount) for place, text in seen if (amount := parse_price(text).amount)]

    def sale(self, listed: Decimal) -> Decimal | None:
        """The price that the page shows beside `listed` where it shows that struck out; None where it does not."""
        struck = {bool(place.flags & OLD) for place, amount in self._shown if amount == listed}
        if struck != {True}:
            return None
        best = _best(list(_offers(self._layout)))
        return best.amount if best is not None and best.sign and listed / 10 < best.amount < listed else None

    def listed(self, price: Decimal) -> Decimal | None:
        """The higher price that the page shows struck out right beside this one; None where there is none."""
        current = [place.order for place, amount in self._shown if amount == price and not place.flags & OLD]
        struck = (
            amount
            for place, amount in self._shown
            if place.flags & OLD
            and price < amount < price * 10
            and any(abs(place.order - order) <= _BESIDE for order in current)
        )
        return next(struck, None)


def _best(offers: list[_Offer]) -> _Offer | None:
    """The offer with the highest weight. Repeated prices are preferred.

    A type of box with many different prices weighs less, and one that stands in the cards of other pages much less.
    """
    offers = [offer for offer in offers if offer.weight > 0]
    times = Counter(offer.amount for offer in offers if offer.name)
    amounts: dict[str, set[Decimal]] = {}
    cards: dict[str, set[str | None]] = {}
    for offer in offers:
        amounts.setdefault(offer.name, set()).add(offer.amount)
        cards.setdefault(offer.name, {None}).add(offer.card)
    crowded = {name for name, held in amounts.items() if name and len(held) >= _CROWD}

    def compared(offer: _Offer) -> _Offer:
        is_of_another = offer.card is not None and len(cards[offer.name]) > 2
        less = (1.5 if offer.name in crowded else 0) + (_OF_ANOTHER if is_of_another else 0)
        return replace(offer, weight=offer.weight - less)

    def preference(offer: _Offer) -> float:
        again = min(max(times[offer.amount] - 1, 0), 3) if offer.name else 0
        return offer.weight + again * 0.4

    return max(map(compared, offers), key=preference, default=None)


def _offers(layout: Layout) -> Iterator[_Offer]:
    doubtful: dict[int, list[str]] = {}
    for place in islice(layout.boxes, _MAX_BOXES):
        text = _price_text(layout, place)
        if not text:
            continue
        numbers = _NUMBERS.findall(text)
        doubt = bool(words.NO_PRICE_TEXT.search(text)) or numbers in _around(place.node, doubtful)
        if doubt and len(numbers) == 1:
            doubtful[place.node.mem_id] = numbers
        if offer := _offer(layout, place, text, named=True, doubt=doubt):
            yield offer
    for place in _short_texts(layout):
        if offer := _offer(layout, place, place.text, named=False):
            yield offer


def _around(node: "LexborNode", doubtful: dict[int, list[str]]) -> list[list[str]]:
    """The numbers of the boxes right around it that say they do not have the price."""
    near = (node.parent, node.parent.parent if node.parent is not None else None)
    return [doubtful[each.mem_id] for each in near if each is not None and each.mem_id in doubtful]


def _short_texts(layout: Layout) -> Iterator[Position]:
    """Texts with a digit outside price boxes. A bare number gets the currency next to it."""
    texts = [each for each in layout.texts[:_MAX_TEXTS] if len(each.text) <= _MAX_SHORT and not each.flags & PRICE]
    for before, place, after in zip_longest([None, *texts[:-1]], texts, texts[1:]):
        if place is None or not _DIGIT.search(place.text):
            continue
        if _DECIMALS.match(place.text):
            if before is not None and _BARE.fullmatch(before.text) and place.order - before.order <= 4:
                yield replace(place, text=before.text + place.text)
            continue
        if (
            after
            and _BARE.fullmatch(place.text)
            and after.order - place.order <= 4
            and currencies.signs().match(after.text)
        ):
            yield replace(place, text=f"{place.text} {after.text}")
        else:
            yield place


def _offer(layout: Layout, place: Position, text: str, *, named: bool, doubt: bool = False) -> _Offer | None:
    price = parse_price(text)
    if price.amount is None or not 0 < price.amount < 10**9 or _DIFFERENCE.match(text):
        return None
    if not named and (price.sign is None or (len(price.sign) == 1 and price.sign.isalpha() and price.sign < "\u0500")):
        return None
    weight = _weight(layout, place, named) + (3 if price.sign else 0) - len(text) / 40
    doubt = doubt or bool(words.NO_PRICE_TEXT.search(text))
    weight -= 4 if doubt else 0
    name = f"{place.node.tag} {place.node.attributes.get('class') or ''}" if named and not doubt else ""
    return _Offer(price.amount, price.sign, weight, name, layout.card_of(place.node))


def _weight(layout: Layout, place: Position, named: bool) -> float:
    flags, weight = place.flags, 2.0 if named else 0.0
    weight += (1.5 if flags & NOW else 0) + (1 if flags & AREA else 0)
    weight -= (4 if flags & OLD else 0) + (4 if flags & OTHER else 0) + (8 if flags & ASIDE else 0)
    if layout.heading < 0:
        return weight - place.order / 10_000
    away = place.order - layout.heading
    return weight - (away / _NEAR if away >= 0 else 2 - away / _NEAR)


def _price_text(layout: Layout, place: Position) -> str | None:
    """The box's text when it is short enough to be one price, without an old price in it."""
    attributes = place.node.attributes
    if attributes.get("content") and attributes.get("itemprop") == "price":
        return attributes["content"]
    pieces: list[str] = []
    for each in place.node.traverse(include_text=True):
        if each.tag == "-text" and (text := " ".join((each.text_content or "").split())):
            flags = layout.flags_of(each.parent)
            if flags is None or (flags & OLD and not place.flags & OLD):
                continue
            pieces.append(text)
            if sum(map(len, pieces)) > _MAX_PRICE_TEXT:
                return None
    return _joined(pieces)


def _joined(pieces: list[str]) -> str | None:
    text = ""
    for piece in pieces:
        if text and text[-1].isdigit() and _CENTS.match(piece):
            text += "." + piece if not re.search(r"[.,]\d*$", text) else piece
        else:
            text += ("" if not text or text[-1] in ".," or piece[0] in ".," else " ") + piece
    return text if _DIGIT.search(text) else None


def _availability(tree: "LexborHTMLParser", layout: Layout) -> str | None:
    """From the first word about stock after the heading, else from a buy button."""
    for place in layout.after_heading(_STOCK_TEXTS):
        if len(place.text) > _MAX_STOCK_TEXT:
            continue
        if words.OUT_OF_STOCK.search(place.text):
            return "OutOfStock"
        if words.ADD_TO_CART.search(place.text) or words.IN_STOCK.search(place.text):
            return "InStock"
    return "InStock" if _can_be_bought(tree, layout) else None


def _can_be_bought(tree: "LexborHTMLParser", layout: Layout) -> bool:
    for node in tree.css(_BUTTONS)[:_MAX_BUTTONS]:
        flags = layout.flags_of(node)
        names = " ".join(
            (node.attributes.get(name) or "")[:200] for name in ("class", "id", "name", "value", "title", "aria-label")
        )
        if flags is None or flags & ASIDE or "disabled" in node.attributes:
            continue
        if words.CART_NAME.search(names) or words.ADD_TO_CART.search(names):
            return True
    return False
