"""TOML from outside. The parser takes time that grows with the square of a key's parts: 256 KB can take minutes."""

import re
import tomllib
from typing import Any

MAX_PARTS = 64
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}""")


def parse_toml(text: bytes) -> dict[str, Any]:
    """The document as a table. Raises ValueError, of which UnicodeDecodeError and TOMLDecodeError are kinds.

    A key of more than MAX_PARTS parts (`a.b.c…`) is refused before it is parsed; so is text that looks like one.
    """
    decoded = text.decode()
    if _LONG_KEY.search(decoded) is not None:
        raise ValueError(f"a key of more than {MAX_PARTS} parts")
    try:
        return tomllib.loads(decoded)
    except RecursionError:
        raise ValueError("nested too deeply") from None
