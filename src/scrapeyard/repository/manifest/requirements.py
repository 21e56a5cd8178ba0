"""The `requirements` of a manifest: names of packages with extras, versions and markers, as PEP 508 writes them.

Only a name can be asked for. A URL, a path or an option of the installer would let a scraper choose where packages come
from, which is the operator's choice (`environments.index_url`).
"""

import re

from scrapeyard.repository.manifest.values import Place

MAX_LENGTH = 500

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"
_CLAUSE = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]{0,99}"
_CLAUSES = rf"{_CLAUSE}(?:\s*,\s*{_CLAUSE})*"
_REQUIREMENT = re.compile(
    rf"{_NAME}\s*(?:\[\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\])?\s*"
    rf"(?:{_CLAUSES}|\(\s*{_CLAUSES}\s*\))?\s*(?:;(?P<marker>.+))?"
)
_VARIABLE = (
    r"(?:extra|implementation_(?:name|version)|os_name|python_(?:full_)?version|sys_platform"
    r"|platform_(?:machine|python_implementation|release|system|version))\b"
)
_TOKEN = re.compile(
    rf"""\s*(?:(?P<value>'[^'\\]*'|"[^"\\]*"|{_VARIABLE})"""
    r"|(?P<operator>===|==|~=|!=|<=|>=|<|>|not\s+in\b|in\b)|(?P<join>and\b|or\b)|(?P<bracket>[()]))\s*"
)
_KINDS = {"value": "v", "operator": "o", "join": "&"}


def check_requirement(text: str, place: Place) -> str:
    """The requirement, without spaces around it. Raises ScraperInvalid."""
    text = text.strip()
    if len(text) > MAX_LENGTH or not text.isascii() or not text.isprintable():
        raise place.fault(f"{text[:100]!r} must be at most {MAX_LENGTH} printable ASCII characters")
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise place.fault(
            f'{text[:100]!r} {_why(text)}; write a package\'s name and versions, e.g. "price-parser>=0.3"'
        )
    if found["marker"] is not None and not _is_marker(found["marker"]):
        raise place.fault(f"{text[:100]!r} has a marker that we do not read; e.g. \"tomli; python_version < '3.12'\"")
    return text


def _why(text: str) -> str:
    if text.startswith("-"):
        return "is an option of an installer"
    if "@" in text or "://" in text:
        return "names an address, and packages come from the operator's index alone"
    if text.startswith((".", "~")) or "/" in text or "\\" in text:
        return "is a path"
    return "is not a requirement"


def _is_marker(text: str) -> bool:
    """Whether it is comparisons joined by `and`, `or` and brackets: reduce the text until one comparison is left."""
    shape = _shape(text)
    before = ""
    while shape != before:
        before = shape
        shape = re.sub(r"vov|\(c\)|c&c", "c", shape)
    return shape == "c"


def _shape(text: str) -> str:
    """One letter for each token; empty if something is not a token."""
    letters, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return ""
        letters.append(_KINDS.get(token.lastgroup or "", token[0].strip()))
        at = token.end()
    return "".join(letters)
