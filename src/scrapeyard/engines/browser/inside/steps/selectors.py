"""Selectors and URL patterns, as scripts and recordings write them, in the driver's words."""

import re
from functools import lru_cache
from typing import Final

_JOINT: Final = re.compile(r"\s+>>>?>?\s+")
_ARIA: Final = re.compile(
    r"""^(?P<name>.*?)(?:\[\s*role\s*=\s*(?P<quote>["'])(?P<role>[\w-]+)(?P=quote)\s*\])?$""", re.DOTALL
)
_ARIA_NAME: Final = re.compile(r"""\[\s*name\s*=\s*(["'])(?P<name>.*?)\1\s*\]""")
_TEXT_ROLES: Final = frozenset({"StaticText", "InlineTextBox", "text", "LabelText"})
_NAMED_ROLES: Final = (
    "button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "option", "tab", "menuitem", "switch",
    "heading", "img", "listitem", "spinbutton", "slider", "cell", "columnheader", "rowheader", "row", "article",
    "dialog", "region", "form", "navigation", "treeitem", "menuitemcheckbox", "menuitemradio", "listbox", "group",
)  # fmt: skip
"""Roles that may have a name, tried where a selector gives the name alone."""


@lru_cache(maxsize=1024)
def read_selector(text: str) -> str:
    """The driver's selector. Raises ValueError for one that says nothing."""
    parts = [_read_part(part.strip()) for part in _JOINT.split(text)]
    if not all(parts):
        raise ValueError("a part of the selector is empty")
    return " >> ".join(parts)


def _read_part(part: str) -> str:
    kind, slash, rest = part.partition("/")
    if not slash:
        return part
    match kind:
        case "aria":
            return _read_aria(rest)
        case "text":
            return f"internal:text={_quote(rest)}i"
        case "xpath":
            return f"xpath={rest}"
        case "pierce" | "css":
            return rest
        case _:
            return part


def _read_aria(text: str) -> str:
    found = _ARIA.match(text)
    name, role = (found["name"].strip(), found["role"]) if found else (text, None)
    if named := _ARIA_NAME.search(name):
        name = named["name"]
    if role in _TEXT_ROLES:
        return f"internal:text={_quote(name)}s"
    if role:
        return f"internal:role={role}" + (f"[name={_quote(name)}s]" if name else "")
    first, *others = (f"internal:role={each}[name={_quote(name)}s]" for each in _NAMED_ROLES)
    others += [f"internal:label={_quote(name)}s", f"css=[aria-label={_quote(name)}]"]  # a mere text has no name
    return first + "".join(f" >> internal:or={_quote(other)}" for other in others)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@lru_cache(maxsize=1024)
def read_pattern(pattern: str) -> re.Pattern[str]:
    """`*` stands for any characters but `/`, `**` for any. One that begins with `*/` matches at any depth."""
    if pattern.startswith("*/"):
        pattern = "*" + pattern
    pieces = re.split(r"(\*+)", pattern)
    return re.compile("".join(_read_piece(piece) for piece in pieces), re.DOTALL)


def _read_piece(piece: str) -> str:
    if not piece.startswith("*"):
        return re.escape(piece)
    return ".*" if len(piece) > 1 else "[^/]*"
