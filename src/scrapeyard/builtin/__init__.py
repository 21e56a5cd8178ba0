"""Built-in scrapers: our own code, run in the worker without a child. Here are their ids alone: a process that parses
pages imports this package, and needs nothing else of it."""

from collections.abc import Mapping
from typing import Any

PAGE = "builtin/page"
"""What runs when a call gives only a URL."""
PRODUCT = "builtin/product"
SELECT = "builtin/select"
"""What runs when a call gives a URL and `fields`."""
EXTRACT = "builtin/extract"
LIST = "builtin/list"
ECHO = "builtin/echo"
MAP = "builtin/map"
ACTIONS = "builtin/actions"
REPLAY = "builtin/replay"
SEARCH = "builtin/search"
"""Where there is an outside engine for it."""
DOCUMENT = "builtin/document"
"""A page, steps, data and a summary in one visit."""


def default_for(given: Mapping[str, Any], default: str) -> str:
    """The scraper of a call that names none: `builtin/select` if its input has `fields`, otherwise the default."""
    return SELECT if "fields" in given else default
