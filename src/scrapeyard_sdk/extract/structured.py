"""Everything a page says in a form made for machines."""

from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.json_ld import read_json_ld
from scrapeyard_sdk.extract.meta import base_of, read_meta
from scrapeyard_sdk.extract.scopes import read_microdata, read_rdfa

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser


def read_structured(tree: "LexborHTMLParser", url: str) -> dict[str, Any]:
    """Items of JSON-LD, microdata and RDFa in one shape, and the Open Graph table. Empty where there are none.

    Open Graph has no types to speak of and is a table of names; the others are lists of items with `@type`.
    """
    base = base_of(tree, url)
    return {
        "json_ld": read_json_ld(tree),
        "microdata": read_microdata(tree, base),
        "rdfa": read_rdfa(tree, base),
        "opengraph": read_meta(tree, url)["opengraph"],
    }
