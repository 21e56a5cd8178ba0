"""Reading pages: what the head says, structured data, products, articles, prices.

Everything here works on a tree of selectolax and needs nothing else; `article` needs trafilatura.
"""

from scrapeyard_sdk.extract.prices import Price, parse_price

__all__ = ["Price", "parse_price"]
