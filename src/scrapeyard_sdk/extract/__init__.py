"""Reading pages: what the head says, structured data, products, articles; prices, numbers and dates in short texts.

Everything here works on a tree of selectolax and needs nothing else; `article` needs trafilatura.
"""

from scrapeyard_sdk.extract.dates import parse_date
from scrapeyard_sdk.extract.numbers import parse_number
from scrapeyard_sdk.extract.prices import Price, parse_price

__all__ = ["Price", "parse_date", "parse_number", "parse_price"]
