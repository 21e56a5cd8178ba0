"""JSON-LD as it stands in a page, and the items in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.lenient_json import Budget, read_json

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_BLOCKS = 100
MAX_ITEMS = 5000


def read_json_ld(tree: "LexborHTMLParser") -> list[Any]:
    """Every document in the page, in its order. Lists are taken apart; `@graph` stays as it is."""
    budget, found = Budget(), []
    for node in tree.css('script[type*="ld+json" i]')[:MAX_BLOCKS]:
        for document in read_json(node.text(), budget):
            found.extend(document if isinstance(document, list) else [document])
    return [each for each in found if isinstance(each, dict)]


def items(documents: list[Any]) -> Iterator[dict[str, Any]]:
    """Every item with a type, outer before inner, as far as the bound goes. Each comes once."""
    waiting, seen = list(reversed(documents)), 0
    while waiting and seen < MAX_ITEMS:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            if value.get("@type"):
                yield value
            waiting.extend(reversed([each for each in value.values() if isinstance(each, (dict, list))]))
        elif isinstance(value, list):
            waiting.extend(reversed(value[:MAX_ITEMS]))


def kinds(item: dict[str, Any]) -> set[str]:
    """The item's types without their address: `{"Product"}`."""
    said = item.get("@type")
    named = said if isinstance(said, list) else [said]
    return {each.rstrip("/").rpartition("/")[2].rpartition(":")[2] for each in named if isinstance(each, str)}
