"""What the address of a page says: the number of an item is often there, and sometimes nowhere else."""

import re
from urllib.parse import parse_qsl, unquote, urlsplit

_TOKEN = re.compile(r"(?:[a-z]\d{1,6}[a-z])?([A-Za-z]{0,4}\d{5,20}|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{8,14})")
_KEYS = frozenset(
    {"sku", "pid", "id", "productid", "product_id", "itemid", "item_id", "item", "p", "asin", "goodsno", "code"}
)


def code_in(url: str) -> str | None:
    """The last token like an item's number: five digits or more, or capitals mixed with digits; None without one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    asked = [value for name, value in parse_qsl(parts.query)[:50] if name.lower() in _KEYS]
    segments = [segment for segment in unquote(parts.path).split("/") if segment]
    for text in (*asked, *reversed(segments)):
        tokens = [token for piece in re.split(r"[^A-Za-z0-9]+", text[:300]) if (token := _TOKEN.fullmatch(piece))]
        if tokens:
            return tokens[-1].group(1)
    return None
