"""The content type of an answer that names several, as the Fetch standard extracts it."""

import re
from collections.abc import Sequence

_PARTS = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+')
_TYPE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(?:;|$)")
_CHARSET = re.compile(r';\s*charset\s*=\s*("(?:[^"\\]|\\.)*"?|[^\s;"]+)', re.IGNORECASE)


def extract_content_type(values: Sequence[str]) -> str:
    """The last value that is a type counts. Where it names no charset, that of the same type before it holds on.

    Empty when there is none. A single value is handed back as it is.
    """
    if len(values) == 1 and "," not in values[0]:
        return values[0]
    found = essence = charset = ""
    for value in (part for given in values for part in _PARTS.findall(given)):
        match = _TYPE.match(value)
        if match is None or match[1] == "*/*":
            continue
        named = _CHARSET.search(value)
        kind = match[1].lower()
        if kind != essence or named:
            charset = named[1] if named else ""
        found, essence = value.strip(), kind
        if charset and not named:
            found = f"{found}; charset={charset}"
    return found or (values[0] if values else "")
