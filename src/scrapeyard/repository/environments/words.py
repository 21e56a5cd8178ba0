"""What uv said, fit for people who must not see the machine it ran on: bounded, without addresses, paths, passwords."""

import re
from collections.abc import Iterable

MAX_WORDS = 2000
_URL = re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z0-9+.-]+://[^\s`'\"()<>]+")
"""Tried where a word begins, not at each letter of it: a word of 20,000 letters would take seconds."""
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+@~-]+/)*[\w.+@~-]+/?")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def cleaned(said: str, hidden: Iterable[str] = ()) -> str:
    """The same in one line without colours, URLs, absolute paths and the `hidden` words; at most 2,000 characters."""
    text = _CONTROL.sub("", said)
    text = _PATH.sub("(path)", _URL.sub("(address)", text))
    for word in hidden:
        if word:
            text = text.replace(word, "(hidden)")
    line = " ".join(text.split()).removeprefix("error: ")
    return line.replace(" cause: ", ": ")[:MAX_WORDS]
